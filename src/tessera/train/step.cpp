#include "tessera/train/step.h"

#include "tessera/nn/init.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/passes/grad.h"
#include "tessera/passes/rewrite.h"

namespace tessera {

namespace {

Value tokens(Builder& builder, std::string_view name, std::int64_t batch, std::int64_t length) {
  return builder.batch(name, {DType::I32, {batch, length}, {}});
}

std::vector<Value> parameters(Builder& builder) {
  std::vector<Value> out;
  for (const State& state : builder.so_far().states()) {
    if (state.role == Role::Parameter) out.emplace_back(builder, state.value);
  }
  return out;
}

}  // namespace

Graph train_step(const ModelConfig& model, const OptimizerConfig& optimizer, std::int64_t batch,
                 std::int64_t length) {
  Builder builder;
  const Value ids = tokens(builder, "ids", batch, length),
              labels = tokens(builder, "labels", batch, length);
  const Value samples = builder.state("data.samples", {DType::I64, {}, {}}, Role::Counter, {});

  const Value logits = find_model(model.family).logits(model, ids, samples);
  const Loss loss = token_loss(logits, labels);
  const std::vector<Value> weights = parameters(builder);
  const std::vector<Value> grads = gradients(loss.mean, weights);
  const UpdateResult result = update(weights, grads, loss.mean, samples, batch, optimizer);

  builder.output(Output::Kind::Metric, "loss", loss.mean);
  builder.output(Output::Kind::Metric, "grad_norm", result.grad_norm);
  builder.output(Output::Kind::Metric, "lr", result.lr);
  builder.output(Output::Kind::Metric, "ok", result.ok);
  return builder.finish();
}

Graph with_gradients(const Graph& step) {
  Rewrite all(step);
  for (NodeId id = 0; id < step.size(); ++id) all.copy(id);
  for (NodeId id = 0; id < step.size(); ++id) {
    const Node& node = step.node(id);
    if (node.op == &kGradient)
      all.to().output(Output::Kind::Metric, text("gradient ", std::get<std::string>(node.attrs[0])),
                      all({id, 0}));
  }
  return all.finish();
}

Graph evaluate_step(const ModelConfig& model, std::int64_t batch, std::int64_t length) {
  Builder builder;
  const Value ids = tokens(builder, "ids", batch, length),
              labels = tokens(builder, "labels", batch, length);
  const Loss loss = token_loss(find_model(model.family).logits(model, ids, {}), labels);
  builder.output(Output::Kind::Metric, "loss_sum", loss.sum);
  builder.output(Output::Kind::Metric, "labels", loss.count);
  return builder.finish();
}

Graph sample_step(const ModelConfig& model, std::int64_t length) {
  Builder builder;
  const Value ids = tokens(builder, "ids", 1, length);
  const Value position = builder.batch("position", {DType::I32, {}, {}});
  const Value logits = find_model(model.family).logits(model, ids, {});
  builder.output(Output::Kind::Metric, "logits", dynamic_slice(logits, 1, position, 1));
  return builder.finish();
}

Graph initialise(const Graph& step) {
  Builder builder;
  builder.set_mark({"", Phase::Update, -1, {}});
  for (const State& state : step.states()) {
    const TensorType& type = step.type(state.value);
    const Value old = builder.state(state.path, type, state.role, state.init);
    builder.next(old, first_value(builder, state.init, type, state.path));
  }
  return builder.finish();
}

}  // namespace tessera
