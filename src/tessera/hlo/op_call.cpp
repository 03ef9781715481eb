#include "tessera/hlo/op_call.h"

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/ops/expansion.h"

namespace tessera::hlo {

namespace {

/// Of every op that has an expansion and no entry.
constinit const Emission kByExpansion = {nullptr, nullptr, "", Numbers::AsTheyAre,
                                         Source::Expansion};

/// As the op's expansion says.
void write_expansion(Writing& w) {
  Builder builder;
  std::vector<tessera::Value> ins;
  for (int i = 0; i < w.num_in(); ++i) ins.push_back(builder.batch(text(i), w.operand(i).type));
  const std::vector<tessera::Value> outs = expansion(w.call, ins);
  const Graph graph = builder.finish();
  const auto leaves = [&](const Node& leaf) {
    for (std::size_t i = 0; i < ins.size(); ++i) {
      if (&graph.node(ins[i].id().node) == &leaf) return w.in(static_cast<int>(i));
    }
    throw Broken("an expansion with an input of its own");
  };
  const Emitter::Known known = w.e.graph(graph, leaves);
  for (const tessera::Value& out : outs) w.out(known.at(out.id()));
}

Values written(Emitter& e, const Graph& graph, NodeId id, const Emission& entry, Values ins) {
  const bool wide = entry.numbers == Numbers::Wide;
  for (Value& in : ins) in = wide ? e.code.wide(in) : in;
  Writing w(e, graph, id, entry, std::move(ins));
  entry.write == nullptr ? write_expansion(w) : entry.write(w);
  for (std::size_t i = 0; wide && i < w.outs().size(); ++i) {
    Value& out = w.outs()[i];
    if (is_float(out.element())) out = e.code.convert(out, w.result_element(static_cast<int>(i)));
  }
  return std::move(w.outs());
}

/// The node as a function that nodes of equal text share; nothing where it is short.
std::optional<Values> called(Emitter& e, const Graph& graph, NodeId id, const Emission& entry,
                             const Values& ins) {
  Code body(e.code.functions(), e.code.products());
  Emitter inner(body, e.mesh, e.options);
  Values parameters, arguments = ins;
  for (const Value& in : ins)
    parameters.emplace_back(body, text("%a", parameters.size()), in.type());
  if (e.microbatch) inner.microbatch = Value(body, "%m", {Element::I64, {}});
  // A body of several ops has keys of its own.
  const bool has_key = graph.node(id).op->attrs.find("key") >= 0;
  if (has_key) inner.key = Value(body, "%key", {Element::U64, {}});
  const Values outs = written(inner, graph, id, entry, parameters);
  const bool long_op = entry.source != Source::Primitive && body.lines() > e.options.lines_of_call;
  if (!long_op && body.written().size() <= e.options.bytes_of_call) return std::nullopt;
  const auto add = [&](const Value& parameter, const Value& argument) {
    if (body.written().find(parameter.name()) == std::string::npos) return;
    parameters.push_back(parameter);
    arguments.push_back(argument);
  };
  if (e.microbatch) add(*inner.microbatch, *e.microbatch);
  if (has_key) add(*inner.key, e.key_of(graph.node(id)));
  std::vector<Type> types;
  std::vector<std::string> heads;
  for (const Value& parameter : parameters)
    heads.push_back(text(parameter, ": ", parameter.type()));
  for (const Value& out : outs) types.push_back(out.type());
  const std::string whole = text("(", join(heads), ") -> (", join(types), ") {\n", body.written(),
                                 "  return ", join(outs), " : ", join(types), "\n}");
  return e.code.call(e.code.functions().add(whole), arguments, types);
}

}  // namespace

const Emission* find_emission(const OpDef& op) {
  for (const auto theme : {elementwise_emissions(), reduction_emissions(), product_emissions(),
                           move_emissions(), index_emissions(), random_emissions(),
                           model_emissions(), attention_emissions(), collective_emissions()}) {
    for (const Emission& entry : theme) {
      if (entry.op == &op) return &entry;
    }
  }
  return op.expand == nullptr ? nullptr : &kByExpansion;
}

Values emit_op(Emitter& e, const Graph& graph, NodeId id, const Values& ins) {
  const Node& node = graph.node(id);
  const Emission* entry = find_emission(*node.op);
  require(entry != nullptr, "op '", node.op->name, "' has no form in StableHLO yet; give ",
          "--device cpu, or a model and an optimizer without it");
  for (const Result& result : node.results) {
    require(result.type.layout.plain(), "op '", node.op->name, "' makes a ", result.type,
            ", which only the device that packed it can read; give --device cpu");
  }
  if (e.options.lines_of_call > 0) {
    if (std::optional<Values> outs = called(e, graph, id, *entry, ins)) return *std::move(outs);
  }
  return written(e, graph, id, *entry, ins);
}

}  // namespace tessera::hlo
