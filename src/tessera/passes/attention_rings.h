#pragma once
/// Which attention of a region is computed block by block, and how. For ring_attention.cpp.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tessera/ops/attention.h"
#include "tessera/passes/ring_attention.h"

namespace tessera {

inline constexpr int kTime = 1;  // the dim of queries, keys and values that is cut

/// A node whose keys and values travel.
struct AttentionRing {
  std::string axis;
  std::vector<std::int64_t> steps;  // in which some rank sees its block: 0 first
  double pairs = 0;                 // of a query and a key that it sees, in a call: mean of ranks
  std::vector<NodeId> scatters;     // of the gradients of keys and of values
  /// What a rank has of the tokens at a time: one run, or two halves in a zigzag.
  std::vector<Half> halves = {Half::None};
};
using AttentionRings = std::map<NodeId, AttentionRing>;

AttentionRings find_attention_rings(const Graph& graph, const RingLimits& limits);

inline bool is_gradient(const Node& node) { return node.op == &kAttentionGrad; }
/// The operand that is q; k and v follow it.
inline std::size_t first_of(const Node& node) { return is_gradient(node) ? 1 : 0; }
/// Its operand that is a mask, if there is one.
inline std::size_t mask_of(const Node& node) { return is_gradient(node) ? 6 : 3; }

}  // namespace tessera
