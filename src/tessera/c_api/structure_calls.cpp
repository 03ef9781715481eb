/// What a graph is made of beside ops: inputs, parameters, scopes, strategies of ops, gradients,
/// updates, outputs.

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/c_api/graph_calls.h"
#include "tessera/c_api/optimizer_words.h"
#include "tessera/passes/grad.h"
#include "tessera/shard/shard.h"

namespace tessera {

namespace {

using MadeValues = std::vector<Value>;

/// Runs `work` outside of all scopes.
template <typename Work>
Value at_top(Builder& builder, const Work& work) {
  const Mark mark = builder.mark();
  builder.set_mark({});
  const Value out = work();
  builder.set_mark(mark);
  return out;
}

Value samples_seen(CallArguments& c) {
  if (!c.graph.samples.valid()) {
    c.graph.samples = at_top(c.graph.builder, [&] {
      return c.graph.builder.state("data.samples", {DType::I64, {}, {}}, Role::Counter, {},
                                   c.where);
    });
  }
  return c.graph.samples;
}

MadeValues parameters_of_graph(Builder& builder) {
  MadeValues out;
  for (const State& state : builder.so_far().states()) {
    if (state.role == Role::Parameter) out.emplace_back(builder, state.value);
  }
  return out;
}

/// A loss is a number that something can be learnt from.
Value loss_of_call(CallArguments& c) {
  const Value out = c.value("loss");
  require(out.ndim() == 0 && is_float(out.dtype()), c.what(), ": the loss is ", out.type(),
          "; give one float, as of mean() or cross_entropy_mean()");
  return out;
}

MadeValues batch_input(CallArguments& c) {
  const std::string name = c.plain_name("name");
  for (const Node& node : c.graph.builder.so_far().nodes()) {
    require(node.op != &kBatch || std::get<std::string>(node.attrs[0]) != name, "batch input '",
            name, "' is declared twice; give one of them another name");
  }
  return {at_top(c.graph.builder, [&] {
    return c.graph.builder.batch(name, {c.need<DType>("dtype"), c.need<Shape>("shape"), {}},
                                 c.where);
  })};
}

MadeValues parameter_of_graph(CallArguments& c) {
  const auto shape = c.need<Shape>("shape");
  return {c.graph.builder.state(c.plain_name("name"), {DType::F32, shape, {}}, Role::Parameter,
                                c.init().of(shape), c.where)};
}

MadeValues begin_scope(CallArguments& c) {
  const std::string name = c.plain_name("name");
  std::optional<int> stage;
  c.get("stage", stage);
  std::string share;
  c.get("share_states", share);
  std::optional<Recompute> recompute;
  if (c.find("recompute") != nullptr) c.get_word("recompute", kRecomputes, recompute.emplace());
  auto scope = std::make_unique<Scope>(c.graph.builder, name, c.where);
  if (stage) scope->stage(*stage);
  if (recompute) scope->recompute(*recompute);
  if (!share.empty()) scope->share_states(share);
  Mark mark = c.graph.builder.mark();
  mark.where = {};  // each call in it says where it is
  c.graph.builder.set_mark(std::move(mark));
  c.graph.scopes.push_back(std::move(scope));
  return {};
}

MadeValues end_scope(CallArguments& c) {
  require(!c.graph.scopes.empty(), "end_scope: no scope is open");
  c.graph.scopes.pop_back();
  return {};
}

MadeValues gradients_of(CallArguments& c) {
  const Value loss = loss_of_call(c);
  MadeValues of = parameters_of_graph(c.graph.builder);
  if (c.find("of") != nullptr) of = c.values("of");
  for (const Value& each : of) {
    require(c.graph.builder.node(each).op == &kState, c.what(), ": of has ", to_text(each.id()),
            ", which is no parameter; gradients are those of parameters");
  }
  require(!of.empty(), c.what(), ": the graph has no parameters; declare one");
  return gradients(loss, of);
}

MadeValues add_update(CallArguments& c) {
  const Value loss = loss_of_call(c);
  const std::int64_t batch = c.integer("samples");
  require(batch >= 1, c.what(), ": samples is ", batch, "; give those of a step, at least 1");
  OptimizerConfig optimizer = optimizer_of(c.part("optimizer"));
  optimizer.loss_scale.on = c.flag("loss_scale");
  const MadeValues parameters = parameters_of_graph(c.graph.builder);
  require(!parameters.empty(), "the optimizer has nothing to update: the graph has no parameters; ",
          "declare one, or leave the optimizer out");
  const Value samples = samples_seen(c);
  Value scale;
  if (optimizer.loss_scale.on)
    scale =
        at_top(c.graph.builder, [&] { return loss_scale(c.graph.builder, optimizer.loss_scale); });
  const MadeValues grads = gradients(scale.valid() ? loss * scale : loss, parameters);
  const UpdateResult out = update(parameters, grads, loss, samples, batch, optimizer, scale);
  MadeValues made = {out.lr, out.grad_norm, out.ok};
  if (scale.valid()) made.push_back(scale);
  return made;
}

MadeValues add_output(CallArguments& c) {
  const std::string name = c.plain_name("name");
  for (const Output& output : c.graph.builder.so_far().outputs()) {
    require(output.kind != Output::Kind::Metric || output.name != name, "output '", name,
            "' is given twice; give one of them another name");
  }
  c.graph.builder.output(Output::Kind::Metric, name, c.value("value"));
  return {};
}

/// {"sizes": [2, 4], "names": ["dp", "mp"], "dims": [["dp"], ["mp"]]}, where a dim without names is
/// whole.
TensorLayout layout_of_json(CallFields fields) {
  const DeviceLayout on(fields.need<std::vector<std::int64_t>>("sizes"),
                        fields.need<std::vector<std::string>>("names"));
  std::vector<DeviceLayout::Dim> dims;
  for (auto& names : fields.need<std::vector<std::vector<std::string>>>("dims"))
    dims.emplace_back("None").aliases =
        names.empty() ? std::vector<std::string>{"None"} : std::move(names);
  fields.finish();
  return on.of(dims);
}

/// Splits or layouts of operands, and of results.
MadeValues shard_op(CallArguments& c) {
  const Value value = c.value("value");
  const auto layouts = [&](const char* name) {
    std::vector<TensorLayout> out;
    for (const CallJson& each : *c.find(name))
      out.push_back(layout_of_json({each, c.what() + ": " + name}));
    return out;
  };
  const CallJson* ins = c.find("ins");
  const bool by_layout =
      ins != nullptr && ins->is_array() && !ins->empty() && (*ins)[0].is_object();
  if (!by_layout) return {shard(value, c.need<Splits>("ins"), c.need<Splits>("outs"))};
  require(c.find("outs") != nullptr && c.find("outs")->is_array(), c.what(),
          ": outs is no list; give layouts, or leave it out");
  return {shard(value, layouts("ins"), layouts("outs"))};
}

constexpr GraphCall kStructureCalls[] = {
    {"batch", "name shape dtype=\"f32\"", batch_input},
    {"parameter", "name shape init={\"kind\":\"normal\",\"value\":0.02}", parameter_of_graph,
     "state"},
    {"samples_seen", "", [](CallArguments& c) -> MadeValues { return {samples_seen(c)}; }, "state"},
    {"scope", "name stage=null recompute=null share_states=null", begin_scope},
    {"end_scope", "", end_scope},
    {"stage", "value k",
     [](CallArguments& c) -> MadeValues { return {c.value("value").stage(c.need<int>("k"))}; }},
    {"shard", "value ins outs=[]", shard_op},
    {"set_name", "value name",
     [](CallArguments& c) -> MadeValues {
       const Value value = c.value("value");
       c.graph.builder.set_name(value, c.plain_name("name"));
       return {value};
     }},
    {"gradients", "loss of=null", gradients_of, "grad"},
    {"update", "loss optimizer samples loss_scale=false", add_update},
    {"output", "name value", add_output},
};

}  // namespace

std::span<const GraphCall> structure_calls() { return kStructureCalls; }

}  // namespace tessera
