#include "tessera/passes/op_decisions.h"

#include <algorithm>

#include "tessera/base/index.h"
#include "tessera/ir/op_paths.h"

namespace tessera {

namespace {

class Reader {
 public:
  Reader(const Graph& graph, NodeId id, const OpPin& pin, const Axes& axes)
      : node_(graph.node(id)), rule_(graph.factors(id)), pin_(pin), axes_(axes) {
    for (int a = 0; a < axes.count(); ++a) out_.choices.push_back(kReplicate);
    require(pin.ins.size() <= rule_.ins.size(), "op '", pin.op, "' has ", rule_.ins.size(),
            " operands, but ", pin.ins.size(), " are pinned");
    require(pin.outs.size() <= rule_.outs.size(), "op '", pin.op, "' has ", rule_.outs.size(),
            " results, but ", pin.outs.size(), " are pinned");
  }

  OpDecision read() {
    for (std::size_t i = 0; i < pin_.ins.size(); ++i) operand(i);
    for (std::size_t i = 0; i < pin_.ins.size(); ++i) agrees(i);
    for (std::size_t r = 0; r < pin_.outs.size(); ++r) made_in_parts(r);
    for (std::size_t r = 0; r < rule_.outs.size(); ++r) makes_runs(static_cast<int>(r));
    for (std::size_t r = 0; r < pin_.outs.size(); ++r) {
      require(pin_.outs[r].dims.size() == rule_.outs[r].size(), "op '", pin_.op, "': result ", r,
              " has ", rule_.outs[r].size(), " dims, but is pinned to ", pin_.outs[r]);
      require_sums(pin_.outs[r], node_.results[r].type, text("op '", pin_.op, "': result ", r));
      out_.outs.push_back(axes_.read(pin_.outs[r]));
    }
    return std::move(out_);
  }

 private:
  void operand(std::size_t i) {
    require(pin_.ins[i].dims.size() == rule_.ins[i].size(), "op '", pin_.op, "': operand ", i,
            " has ", rule_.ins[i].size(), " dims, but is pinned to ", pin_.ins[i]);
    const Choices factors = factors_on_axes(rule_, rule_.ins[i], axes_.read(pin_.ins[i]), axes_);
    for (int a = 0; a < axes_.count(); ++a) {
      const Choice f = factors[at(a)];
      if (axes_.is_time(a) || f == kReplicate) continue;
      const bool cut = f >= 0 && may_shard(*node_.op, rule_.list[at(f)].kind);
      require(cut, "op '", pin_.op, "' cannot shard a dim of operand ", i, " along axis '",
              axes_[a].name, "' as ", pin_.ins[i], ": its rule is ", rule_);
      Choice& pinned = out_.choices[at(a)];
      require(pinned == kReplicate || pinned == f, "op '", pin_.op,
              "' is pinned to shard two of its factors (", rule_.list[at(f)].name, " and ",
              rule_.list[at(std::max<Choice>(pinned, 0))].name, ") along axis '", axes_[a].name,
              "': its rule is ", rule_);
      pinned = f;
    }
  }

  /// A factor is sharded alike wherever it occurs.
  void agrees(std::size_t i) const {
    const AxisPlacements have = axes_.read(pin_.ins[i]);
    for (int a = 0; a < axes_.count(); ++a) {
      const Choice f = out_.choices[at(a)];
      require(f < 0 || have[at(a)] >= 0 || !rule_.has(rule_.ins[i], f), "op '", pin_.op,
              "': operand ", i, " is pinned to ", pin_.ins[i], ", but another operand has '",
              f < 0 ? "" : rule_.list[at(f)].name, "' along axis '", axes_[a].name,
              "': its rule is ", rule_);
    }
  }

  /// A dim that no operand has is made in the parts in which it is to be kept.
  void made_in_parts(std::size_t r) {
    if (pin_.outs[r].dims.size() != rule_.outs[r].size()) return;  // refused where it is read
    const Choices factors = factors_on_axes(rule_, rule_.outs[r], axes_.read(pin_.outs[r]), axes_);
    for (int a = 0; a < axes_.count(); ++a) {
      const Choice f = factors[at(a)];
      if (f < 0 || axes_.is_time(a) || out_.choices[at(a)] != kReplicate) continue;
      const bool in_operands =
          std::any_of(rule_.ins.begin(), rule_.ins.end(),
                      [&](const Factors::Dims& dims) { return rule_.has(dims, f); });
      const std::int64_t cut = cut_by(f) * axes_[a].size;
      const Factor& factor = rule_.list[at(f)];
      if (!in_operands && may_shard(*node_.op, factor.kind) && factor.size % cut == 0)
        out_.choices[at(a)] = f;
    }
  }
  std::int64_t cut_by(Choice f) const {
    std::int64_t out = 1;
    for (int a = 0; a < axes_.count(); ++a) {
      if (out_.choices[at(a)] == f) out *= axes_[a].size;
    }
    return out;
  }

  /// Requires that the op leaves on a rank one run of each dim of the result.
  void makes_runs(int r) const {
    const Factors::Dims& dims = rule_.outs[at(r)];
    const Choices left =
        factors_on_axes(rule_, dims, natural(rule_, out_.choices, r, axes_), axes_);
    for (int a = 0; a < axes_.count(); ++a) {
      const Choice f = out_.choices[at(a)];
      require(f < 0 || !rule_.has(dims, f) || left[at(a)] == f, "op '", pin_.op,
              "' is pinned to shard '", f < 0 ? "" : rule_.list[at(f)].name, "' along axis '",
              axes_[a].name, "', behind a factor of its result ", r,
              " that is not cut to the end: its rule is ", rule_);
    }
  }

  const Node& node_;
  Factors rule_;
  const OpPin& pin_;
  const Axes& axes_;
  OpDecision out_;
};

}  // namespace

void require_sums(const Sharding& pin, const TensorType& type, std::string_view what) {
  for (const Partial& partial : pin.partial)
    require(type.dtype != DType::Bool || partial.monoid != Monoid::Sum, what, " is a ", type,
            ", but is pinned to ", pin, ", a sum along '", partial.axis,
            "'; there are no sums of bools: pin it whole or cut, or cast it to i32 first");
}

bool may_shard(const OpDef& op, FactorKind kind) {
  return kind != FactorKind::Whole && (kind != FactorKind::Stat || op.expand != nullptr);
}

OpDecisions::OpDecisions(const Graph& graph, const Strategy& strategy, const Axes& axes) {
  if (strategy.ops.empty()) return;
  const std::vector<std::string> paths = op_paths(graph);
  std::map<std::string_view, NodeId> ids;
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (!paths[at(id)].empty() && !graph.node(id).op->traits.leaf) ids.emplace(paths[at(id)], id);
  }
  std::vector<std::string> wrong;
  for (const OpPin& pin : strategy.ops) {
    const auto found = ids.find(pin.op);
    // A program without this op (one that only evaluates, say) has nothing to decide.
    if (found == ids.end()) continue;
    try {
      decisions_[found->second] = Reader(graph, found->second, pin, axes).read();
    } catch (const Error& error) {
      wrong.push_back(error.what());
    }
  }
  require(wrong.empty(), join(wrong, "\n"));
}

}  // namespace tessera
