#include "tessera/train/step.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "tessera/base/text.h"
#include "tessera/ir/strategy.h"
#include "tessera/nn/init.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/passes/grad.h"
#include "tessera/passes/rewrite.h"

namespace tessera {

namespace {

/// Errors: Fault::Usage: none is trained; a pattern that matches none.
std::vector<Value> trained_parameters(Builder& builder, const OptimizerConfig& optimizer) {
  std::vector<Value> out;
  std::vector<std::string> paths;
  for (const State& state : builder.so_far().states()) {
    if (state.role != Role::Parameter) continue;
    paths.push_back(state.path);
    if (trains(optimizer, state.path)) out.emplace_back(builder, state.value);
  }
  for (const std::string& pattern : optimizer.frozen) {
    const auto is_like = [&](const std::string& path) { return matches(pattern, path); };
    require(std::ranges::any_of(paths, is_like), "freeze: no parameter matches '", pattern, "'; ",
            near_paths(pattern, paths), "; '*' stands for any characters");
  }
  require(!out.empty(), "freeze ", join(optimizer.frozen), " leaves none of the ", paths.size(),
          " parameters to train; give other patterns");
  return out;
}

/// A state that programs without layers declare.
Value declared(Builder& builder, const State& state, const TensorType& type) {
  builder.set_mark({"", Phase::Update, -1, {}});
  return builder.state(state.path, type, state.role, state.init);
}

/// Writes the first value of a state.
Value begin_state(Builder& builder, const State& state, const TensorType& type) {
  const Value old = declared(builder, state, type),
              first = first_value(builder, state.init, type, state.path);
  builder.next(old, first);
  return first;
}

/// States that begin as a parameter does.
bool begins_as_parameter(const State& state) {
  return state.role == Role::Copy || state.role == Role::Reference;
}

/// Makes a copy of what a parameter is.
void begin_copy(Builder& builder, const State& copy, const TensorType& type, Value parameter) {
  const Value old = declared(builder, copy, type);
  builder.next(old, cast(parameter, type.dtype));
}

void follow(const BufferStep& step, Value made) {
  Builder& builder = step.buffer.builder();
  const Mark outer = builder.mark();
  builder.set_mark({builder.node(step.buffer).block, Phase::Update, -1, Where::here()});
  builder.next(step.buffer, select(made, step.next(), step.buffer));
  builder.set_mark(outer);
}

}  // namespace

Graph train_step(const Task& task, const OptimizerConfig& optimizer, std::int64_t batch) {
  Builder builder;
  const TaskValues inputs = inputs_of(task, builder, batch);
  const Value samples = builder.state("data.samples", {DType::I64, {}, {}}, Role::Counter, {});

  const Measured measured = task.measure(inputs, {.step = samples});
  const std::vector<Mean>& means = measured.means;
  const Value loss = loss_of(task, means);
  const std::vector<Value> weights = trained_parameters(builder, optimizer);
  const Value scale = optimizer.loss_scale.on ? loss_scale(builder, optimizer.loss_scale) : Value();
  const std::vector<Value> grads = gradients(scale.valid() ? loss * scale : loss, weights);
  const UpdateResult result = update(weights, grads, loss, samples, batch, optimizer, scale);

  for (const BufferStep& step : measured.buffers) follow(step, result.ok);

  builder.output(Output::Kind::Metric, "loss", loss);
  for (std::size_t i = 0; i < means.size(); ++i) {
    if (task.means[i].name != kLossMean)
      builder.output(Output::Kind::Metric, task.means[i].name, means[i].value());
  }
  for (std::size_t i = 0; i < measured.tokens_per_expert.size(); ++i)
    builder.output(Output::Kind::Metric, router_metric(static_cast<std::int64_t>(i)),
                   measured.tokens_per_expert[i]);
  builder.output(Output::Kind::Metric, "grad_norm", result.grad_norm);
  builder.output(Output::Kind::Metric, "lr", result.lr);
  builder.output(Output::Kind::Metric, "ok", result.ok);
  if (scale.valid()) builder.output(Output::Kind::Metric, "loss_scale", scale);
  return builder.finish();
}

Graph train_step(const ModelConfig& model, const OptimizerConfig& optimizer, std::int64_t batch,
                 std::int64_t length) {
  ModelConfig cut = model;
  cut.positions = model.most_positions();
  cut.context = length;
  return train_step(task_of(cut), optimizer, batch);
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

std::string router_metric(std::int64_t router) { return text("tokens_per_expert ", router); }
std::string sum_metric(const TaskMean& mean) { return "sum of " + mean.name; }
std::string count_metric(const TaskMean& mean) { return "count of " + mean.name; }
std::string prediction_metric(std::string_view name) { return text("prediction of ", name); }

Graph evaluate_step(const Task& task, std::int64_t batch) {
  Builder builder;
  const Measured measured = task.measure(inputs_of(task, builder, batch), {});
  for (std::size_t i = 0; i < measured.means.size(); ++i) {
    builder.output(Output::Kind::Metric, sum_metric(task.means[i]), measured.means[i].sum);
    builder.output(Output::Kind::Metric, count_metric(task.means[i]), measured.means[i].count);
  }
  for (const NamedValue& prediction : measured.predictions)
    builder.output(Output::Kind::Metric, prediction_metric(prediction.name), prediction.value);
  return builder.finish();
}

std::int64_t prefill_length(const TextWriting& writing) {
  constexpr std::int64_t kMost = 64;  // enough rows for products to run near their best rate
  return std::min(kMost, writing.context);
}

Graph write_step(const TextWriting& writing, std::int64_t batch, std::int64_t length) {
  Builder builder;
  const Value ids = builder.batch("ids", {DType::I32, {batch, length}, {}});
  Pass pass;
  pass.position = builder.batch("position", {DType::I32, {}, {}});
  pass.wanted = builder.batch("wanted", {DType::I32, {}, {}});
  pass.context = writing.context;
  pass.room = writing.context + prefill_length(writing) - 1;
  builder.output(Output::Kind::Metric, "logits", writing.logits(ids, pass));
  return builder.finish();
}

Graph read_step(const TextWriting& writing, std::int64_t batch) {
  Builder builder;
  writing.read_source(builder.batch("source", {DType::I32, {batch, writing.source}, {}}));
  return builder.finish();
}

Graph begin_step(std::span<const Graph> writing) {
  Builder builder;
  std::set<std::string> known;
  for (const Graph& graph : writing) {
    for (const State& state : graph.states()) {
      if (state.role == Role::Cache && known.insert(state.path).second)
        begin_state(builder, state, graph.type(state.value));
    }
  }
  return builder.finish();
}

Graph reorder_step(const Graph& write) {
  Builder builder;
  Value rows;
  for (const State& state : write.states()) {
    if (state.role != Role::Cache || !write.output(Output::Kind::Next, state.path).valid())
      continue;
    const TensorType& type = write.type(state.value);
    const std::int64_t batch = type.shape[0];
    if (!rows.valid()) rows = builder.batch("rows", {DType::I32, {batch}, {}});
    const Value cache = builder.state(state.path, type, state.role, state.init);
    builder.next(cache, gather(rows, cache));
  }
  return builder.finish();
}

Graph initialise(const Graph& step, const std::function<bool(const State&)>& read) {
  Builder builder;
  std::multimap<std::string_view, const State*> copies;  // by the path of what they are copies of
  for (const State& state : step.states()) {
    if (begins_as_parameter(state)) copies.emplace(parameter_path(state), &state);
  }
  // A copy is made while its parameter's first value is there: of an offloaded one it soon is not.
  for (const State& state : step.states()) {
    if (begins_as_parameter(state) || (read && read(state))) continue;
    const Value first = begin_state(builder, state, step.type(state.value));
    const auto [copy, end] = copies.equal_range(state.path);
    for (auto it = copy; it != end; ++it)
      begin_copy(builder, *it->second, step.type(it->second->value), first);
  }
  return builder.finish();
}

Graph copy_step(std::span<const Graph* const> programs) {
  Builder builder;
  std::map<std::string_view, const State*> parameters;
  std::set<std::string_view> made;
  for (const Graph* program : programs) {
    for (const State& state : program->states()) {
      if (state.role == Role::Parameter) parameters.emplace(state.path, &state);
    }
    for (const State& copy : program->states()) {
      if (copy.role != Role::Copy || !made.insert(copy.path).second) continue;
      const State& parameter = *parameters.at(parameter_path(copy));
      const TensorType& type = program->type(copy.value);
      begin_copy(builder, copy, type, declared(builder, parameter, {DType::F32, type.shape, {}}));
    }
  }
  return builder.finish();
}

}  // namespace tessera
