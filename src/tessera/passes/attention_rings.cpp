#include "tessera/passes/attention_rings.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>

#include "tessera/base/index.h"
#include "tessera/ops/attention_sight.h"
#include "tessera/ops/collective.h"
#include "tessera/passes/rewrite.h"

namespace tessera {

namespace {

/// Finds the rings of a region.
class Rings {
 public:
  Rings(const Graph& graph, const RingLimits& limits)
      : graph_(graph), limits_(limits), users_(graph) {
    for (const Output& output : graph.outputs()) leaving_.insert(output.value);
  }

  AttentionRings find() const {
    AttentionRings out;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (std::optional<AttentionRing> ring = at(id); ring && is_all_that_reads(id))
        out.emplace(id, *ring);
    }
    return out;
  }

 private:
  const std::vector<std::string>& cuts(ValueId v, int dim) const {
    return graph_.result(v).placement->sharding.dims[tessera::at(dim)];
  }

  /// As if nothing else read what it gathers.
  std::optional<AttentionRing> at(NodeId id) const {
    const Node& node = graph_.node(id);
    if (node.op != &kAttention && node.op != &kAttentionGrad) return std::nullopt;
    const std::size_t q = first_of(node);
    const std::optional<std::string> axis = gathered_along(node.inputs[q + 1]);
    if (!axis || gathered_along(node.inputs[q + 2]) != axis) return std::nullopt;
    if (cuts(node.inputs[q], kTime) != std::vector{*axis}) return std::nullopt;
    const OpCall call = graph_.call(id);
    if (call.flag_or("of_logsumexp", false)) return std::nullopt;
    if (call.flag("mask")) {
      const ValueId mask = node.inputs[mask_of(node)];
      if (!cuts(mask, graph_.type(mask).ndim() - 1).empty()) return std::nullopt;
    }
    AttentionRing out{*axis, {}, 0, {}};
    if (is_gradient(node) && !find_scatters(id, out)) return std::nullopt;
    find_steps(call, graph_.type(node.inputs[q]).shape[kTime],
               graph_.type(node.inputs[q + 1]).shape[kTime], out);
    return out;
  }

  /// The axis along which an even cut of the value's time is joined.
  std::optional<std::string> gathered_along(ValueId v) const {
    const Node& node = graph_.node(v.node);
    if (node.op != &kAllGather || leaving_.contains(v)) return std::nullopt;
    const OpCall call = graph_.call(v.node);
    const std::string axis(call.string("axes"));
    const Result& part = graph_.result(node.inputs[0]);
    const std::int64_t n = graph_.mesh().size(axis);
    const bool fits = call.integer("dim") == kTime && n > 1 &&
                      part.placement->sharding.dims[kTime] == std::vector{axis} &&
                      part.type.shape[kTime] * n == part.logical[kTime];
    return fits ? std::optional(axis) : std::nullopt;
  }

  bool is_all_that_reads(NodeId id) const {
    const Node& node = graph_.node(id);
    for (std::size_t i = first_of(node) + 1; i < first_of(node) + 3; ++i) {
      for (const NodeId user : users_(node.inputs[i].node)) {
        if (!at(user)) return false;
      }
    }
    return true;
  }

  /// What sums up the gradients of keys and values, and nothing else reads.
  bool find_scatters(NodeId id, AttentionRing& ring) const {
    const std::span<const NodeId> users = users_(id);
    for (int result = 1; result < 3; ++result) {
      const ValueId gradient{id, result};
      const auto reads = [&](NodeId user) {
        const ValueIds& ins = graph_.node(user).inputs;
        return std::ranges::find(ins, gradient) != ins.end();
      };
      if (leaving_.contains(gradient) || std::ranges::count_if(users, reads) != 1) return false;
      const NodeId scatter = *std::ranges::find_if(users, reads);
      if (graph_.node(scatter).op != &kReduceScatter) return false;
      const OpCall call = graph_.call(scatter);
      if (call.string("axes") != ring.axis || call.integer("dim") != kTime ||
          parse_monoid(call.string("monoid")) != Monoid::Sum)
        return false;
      ring.scatters.push_back(scatter);
    }
    return true;
  }

  /// Of `s` queries on each rank, and `t` keys on all.
  void find_steps(const OpCall& call, std::int64_t s, std::int64_t t, AttentionRing& ring) const {
    const Sight sight = sight_of(call);
    const std::int64_t n = graph_.mesh().size(ring.axis), keys = t / n;
    for (std::int64_t i = 0; i < n; ++i) {
      // The block lies i blocks back, or n - i blocks ahead on the i first ranks.
      const bool behind = i == 0 || -sight.first > (i - 1) * keys,
                 ahead = i > 0 && sight.last > (n - i - 1) * keys;
      if (behind || ahead) ring.steps.push_back(i);
    }
    const bool later_see_more = sight.looks_back_far() && !sight.looks_ahead_far() && s == keys;
    if (later_see_more && s % 2 == 0 && s / 2 >= limits_.least_half)
      ring.halves = {Half::Even, Half::Odd};
    const std::size_t calls = ring.steps.size() * ring.halves.size() * ring.halves.size();
    ring.pairs = sight.pairs(s, t) / static_cast<double>(calls);
  }

  const Graph& graph_;
  const RingLimits& limits_;
  const Users users_;
  std::set<ValueId> leaving_;
};

}  // namespace

AttentionRings find_attention_rings(const Graph& graph, const RingLimits& limits) {
  return Rings(graph, limits).find();
}

}  // namespace tessera
