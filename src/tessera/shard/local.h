#pragma once
/// local(): code that is written for one rank, with collectives called by hand.

#include <functional>
#include <string_view>
#include <vector>

#include "tessera/ir/builder.h"
#include "tessera/shard/device_matrix.h"

namespace tessera {

/// The collectives that `body` of local() can call.
///
/// A value inside local() is one tensor over all ranks: one leading dim per axis of the layout,
/// then the dims of the part that one rank holds, as in [dp, mp, rows, columns]. Ops that allow
/// leading dims (products, elementwise ops, norms over the last dims) compute each rank's part. The
/// `dim` arguments below count the dims of a rank's part, from 0, or from the end if negative.
///
/// The gradient of each collective is its transpose. So a loss is differentiated as usual: the
/// gradient is that of one device, and nothing has to be synchronised by hand.
class LocalRanks {
 public:
  LocalRanks(DeviceLayout layout, DeviceMatrix sizes, std::vector<std::string> axes);

  std::int64_t size(std::string_view axis) const;
  /// The sum along `axis`, on each of its ranks.
  Value all_reduce(Value x, std::string_view axis) const;
  /// The parts of all ranks along `axis`, joined on `dim`.
  Value all_gather(Value x, std::string_view axis, int dim) const;
  /// The sum along `axis`; each rank keeps its part of `dim`. Errors: a dim that the axis does not
  /// divide.
  Value reduce_scatter(Value x, std::string_view axis, int dim) const;
  /// Gathers dim `gather` and splits dim `scatter`. Errors: as reduce_scatter.
  Value all_to_all(Value x, std::string_view axis, int gather, int scatter) const;
  /// The part of the rank with coordinate `root` along `axis`, on all its ranks.
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

/// Calls `body` with the shards of `inputs` that the layouts `ins` describe, and puts its results
/// together as the layouts `outs` describe: one layout per value, all on the same matrix of named
/// axes. If a result is replicated along an axis, the part of the first rank is taken. Compile with
/// the strategy of ParallelMode::HybridParallel.
///
/// Errors: layouts on different matrices; another number of layouts than of values; dims that axes
/// do not divide.
using LocalBody =
    std::function<std::vector<Value>(const LocalRanks& ranks, const std::vector<Value>& inputs)>;
std::vector<Value> local(const LocalBody& body, const std::vector<Value>& inputs,
                         const std::vector<TensorLayout>& ins,
                         const std::vector<TensorLayout>& outs);

}  // namespace tessera
