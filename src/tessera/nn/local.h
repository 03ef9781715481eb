#pragma once
/// Code for one rank: the user says what moves.

#include <functional>
#include <string_view>
#include <vector>

#include "tessera/ir/builder.h"

namespace tessera {

/// The ranks of a layout, and what they do together. A value inside of local() has one leading dim
/// per axis of the layout, and behind them the dims of what one rank holds: [dp, mp, rows,
/// columns]. Ops that take leading dims (products, elementwise ops, norms over the last dims) act
/// on each rank's part. Dims below are those of a rank's part, from 0, or from the end where
/// negative.
///
/// Each collective has its transpose as gradient, so a loss of such values is differentiated like
/// any other: the gradient is that of one device, and nothing has to be synchronised by hand.
class LocalRanks {
 public:
  LocalRanks(DeviceLayout layout, DeviceMatrix sizes, std::vector<std::string> axes);

  std::int64_t size(std::string_view axis) const;
  /// The sum along `axis`, on each of its ranks.
  Value all_reduce(Value x, std::string_view axis) const;
  /// The parts of all ranks along `axis`, joined on `dim`.
  Value all_gather(Value x, std::string_view axis, int dim) const;
  /// The sum along `axis`, of which each rank keeps its part of `dim`. Errors: a dim that the axis
  /// does not divide.
  Value reduce_scatter(Value x, std::string_view axis, int dim) const;
  /// Joined on `gather`, cut on `scatter`. Errors: as of reduce_scatter.
  Value all_to_all(Value x, std::string_view axis, int gather, int scatter) const;
  /// What rank `root` along `axis` holds.
  Value broadcast(Value x, std::string_view axis, std::int64_t root) const;

  // For local().
  Value scatter_in(Value whole, const TensorLayout& layout) const;
  Value gather_out(Value x, const TensorLayout& layout) const;

 private:
  int lead() const { return static_cast<int>(axes_.size()); }
  int index(std::string_view axis) const;
  int dim_of(Value x, int dim) const;
  Value lie(Value x) const;
  Value first_of(Value x, int axis) const;
  Value split(Value x, int dim, std::int64_t parts) const;

  DeviceLayout layout_;
  DeviceMatrix sizes_;
  std::vector<std::string> axes_;
};

/// Runs `body` on the shards of `inputs` that `ins` say, and puts its results together as `outs`
/// say; all layouts are on one matrix of named axes. A result that is whole along an axis is that
/// of the axis' first rank. Compile with the strategy of ParallelMode::HybridParallel.
///
/// Errors: layouts on several matrices, or as many layouts as there are values; dims that axes do
/// not divide.
using LocalBody =
    std::function<std::vector<Value>(const LocalRanks& ranks, const std::vector<Value>& inputs)>;
std::vector<Value> local(const LocalBody& body, const std::vector<Value>& inputs,
                         const std::vector<TensorLayout>& ins,
                         const std::vector<TensorLayout>& outs);

}  // namespace tessera
