#pragma once
/// Which nodes of a region are computed in strips, and along which dims. For strips.cpp.

#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/ir/cut.h"
#include "tessera/passes/rewrite.h"

namespace tessera {

constexpr int kUncut = -1;  // the dim of a value that is not cut

/// A sum of strips that would be rounded to 16 bits for each of them.
bool is_rounded(const Node& node, const CutDims& cut);

/// The nodes of a region that are computed in strips, because they read or make a large value, or
/// lie between such nodes; and along which dims their values are cut.
class StripNodes {
 public:
  StripNodes(const Graph& graph, ValueId value);

  /// False where something cannot be cut.
  bool find(int dim);

  bool has(NodeId id) const { return cuts_[static_cast<std::size_t>(id)].has_value(); }
  const CutDims& cut(NodeId id) const { return *cuts_[static_cast<std::size_t>(id)]; }
  /// True of a node that a node in strips depends on.
  bool is_before(NodeId id) const { return before_[static_cast<std::size_t>(id)]; }
  bool is_read_outside(ValueId v) const;
  /// Bytes of the sums that are made in f32 here and in 16 bits without strips.
  std::int64_t wide_bytes() const;
  /// Bytes of operands that are not cut and are free after their last reader: gathered parameters,
  /// and their 16-bit copies if the region runs `once` in a step. At most the bytes of the sums.
  std::int64_t operand_bytes(bool once) const;

 private:
  bool is_free_after(ValueId v, bool once) const;
  bool is_large(ValueId v) const;
  bool add(NodeId id);
  int factor_of(NodeId id, const Factors& rule) const;
  bool is_padded(ValueId v, int dim) const;
  void add_between();
  bool complete() const;

  const Graph& graph_;
  const ValueId value_;
  const Users users_;
  ValueTable<int> dims_;                      // by which values are cut
  std::vector<std::optional<CutDims>> cuts_;  // per node; nullopt: not in strips
  std::vector<bool> before_;
  std::vector<NodeId> open_;
};

}  // namespace tessera
