#pragma once
/// The kernels of a program: calls that are alike, as those of blocks that repeat, share one. For
/// lower.cpp.

#include <memory>
#include <unordered_map>
#include <vector>

#include "tessera/plan/plan.h"

namespace tessera {

class KernelTable {
 public:
  explicit KernelTable(Device& device) : device_(device) {}

  /// A call of the kernel, with what it computes and costs; places are still to be filled in.
  Call call(const KernelRequest& request);

 private:
  struct Made {
    std::vector<Shape> in_strides;
    std::vector<ShardInfo> ins, outs;
    std::uint64_t key, seed;
    std::int64_t coordinate;
    Call call;
  };
  static bool alike(const Made& made, const KernelRequest& request);

  Device& device_;
  std::unordered_map<std::uint64_t, std::vector<Made>> made_;  // by hash
};

}  // namespace tessera
