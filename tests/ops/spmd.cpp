#include "ops/spmd.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/ops/expansion.h"

namespace tessera::test {

namespace {

/// Which axes an operand's dim brings to its factors: a major factor takes axes until it is sharded
/// to the end.
void bring(const Factors& rule, const std::vector<int>& fs, const Axes& axes, const Mesh& mesh,
           Assignment& to) {
  std::size_t next = 0;
  for (const int f : fs) {
    const std::int64_t size = rule.list[static_cast<std::size_t>(f)].size;
    std::int64_t n = 1;
    Axes taken;
    while (next < axes.size() && (fs.size() == 1 || n < size)) {
      n *= mesh.size(axes[next]);
      taken.push_back(axes[next++]);
    }
    if (!taken.empty()) to[f] = taken;
  }
}

/// An assignment that the rule admits, near the one that operands bring: what it does not admit is
/// left out, minor factors first.
Assignment legal(const Factors& rule, Assignment wanted, const Mesh& mesh) {
  while (!is_admitted(rule, wanted, mesh)) wanted.erase(std::prev(wanted.end()));
  return wanted;
}

Assignment brought(const Factors& rule, const std::vector<Held>& ins, const Mesh& mesh) {
  Assignment out;
  std::set<std::string> taken;
  for (std::size_t i = 0; i < ins.size(); ++i) {
    Assignment one;
    for (std::size_t d = 0; d < rule.ins[i].size(); ++d)
      bring(rule, rule.ins[i][d], ins[i].sharding.dims[d], mesh, one);
    for (const auto& [f, axes] : one) {
      const bool free = std::none_of(axes.begin(), axes.end(),
                                     [&](const std::string& axis) { return taken.contains(axis); });
      if (out.contains(f) || !free) continue;
      out[f] = axes;
      taken.insert(axes.begin(), axes.end());
    }
  }
  return legal(rule, out, mesh);
}

}  // namespace

bool is_slice(const Sharding& from, const Sharding& to) {
  for (std::size_t d = 0; d < from.dims.size(); ++d) {
    const Axes &have = from.dims[d], &need = to.dims[d];
    if (have.size() > need.size() || !std::equal(have.begin(), have.end(), need.begin()))
      return false;
  }
  return true;
}

std::vector<Held> Spmd::run(const Graph& graph, NodeId id, const std::vector<Held>& ins,
                            const Assignment& assignment) {
  const Factors rule = graph.factors(id);
  for (std::size_t i = 0; i < ins.size(); ++i) {
    const Sharding need = sharding_of(rule.ins[i], assignment);
    if (is_slice(ins[i].sharding, need)) continue;
    moved.push_back(text(graph.node(id).op->name, ": operand ", i, " lies at ", ins[i].sharding,
                         ", the node takes ", need));
  }
  if (needs_expansion(rule, assignment)) {
    std::vector<Held> operands;
    for (std::size_t i = 0; i < ins.size(); ++i)
      operands.push_back({ins[i].whole, sharding_of(rule.ins[i], assignment)});
    return run_expansion(graph, id, operands);
  }
  ++nodes;
  Tensors wholes;
  for (const Held& in : ins) wholes.push_back(in.whole);
  const Tensors outs = run_on_ranks(graph, id, wholes, mesh, assignment, garbage);
  std::vector<Held> out;
  for (std::size_t j = 0; j < outs.size(); ++j)
    out.push_back({outs[j], sharding_of(rule.outs[j], assignment)});
  return out;
}

std::vector<Held> Spmd::run_expansion(const Graph& graph, NodeId id, const std::vector<Held>& ins) {
  Builder builder;
  std::vector<Value> operands;
  for (std::size_t i = 0; i < ins.size(); ++i)
    operands.push_back(builder.batch(text("in", i), graph.type(graph.node(id).inputs[i])));
  const std::vector<Value> outs = expansion(graph.call(id), operands);
  for (std::size_t j = 0; j < outs.size(); ++j)
    builder.output(Output::Kind::Metric, text("out", j), outs[j]);
  const Graph expanded = builder.finish();
  std::map<ValueId, Held> known;
  for (std::size_t i = 0; i < ins.size(); ++i) known.emplace(operands[i].id(), ins[i]);
  run_all(expanded, known);
  std::vector<Held> out;
  for (const Output& output : expanded.outputs()) out.push_back(known.at(output.value));
  return out;
}

void Spmd::run_all(const Graph& graph, std::map<ValueId, Held>& known) {
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (known.contains({id, 0})) continue;
    if (node.op == &kConstant) {
      HostTensor value = HostTensor::scalar<double>(std::get<double>(node.attrs[0]));
      if (node.type().dtype != DType::F32) value = value.cast(node.type().dtype);
      known.emplace(ValueId{id, 0}, Held{value, Sharding::replicated(0)});
      continue;
    }
    std::vector<Held> ins;
    for (const ValueId input : node.inputs) ins.push_back(known.at(input));
    std::vector<Held> outs = run(graph, id, ins, brought(graph.factors(id), ins, mesh));
    for (std::size_t j = 0; j < outs.size(); ++j)
      known.emplace(ValueId{id, static_cast<std::int32_t>(j)}, std::move(outs[j]));
    if (has_failed()) {
      ADD_FAILURE() << "in " << tessera::describe(graph, id);
      return;
    }
  }
}

}  // namespace tessera::test
