#pragma once
/// Shards in host memory: cut out of a whole tensor, and put back.

#include <cstddef>
#include <functional>
#include <span>

#include "tessera/tensor/sharding.h"
#include "tessera/tensor/type.h"

namespace tessera {

/// A run of elements that are contiguous in the whole and in the shard; offsets in elements.
struct ShardRun {
  std::int64_t whole = 0, shard = 0, count = 0;
};

/// Calls `visit` for all runs of the shard that the rank at `at` holds, in the order of the whole;
/// padding is in none.
void each_run(const Shape& logical, const Sharding& sharding, const Mesh& mesh,
              const Coordinates& at, const std::function<void(const ShardRun&)>& visit);

/// `shard` from `whole`; padding becomes zero. Both row-major, dense.
void cut_shard(std::span<const std::byte> whole, const Shape& logical, DType dtype,
               const Sharding& sharding, const Mesh& mesh, const Coordinates& at,
               std::span<std::byte> shard);
/// The part of `whole` that the shard holds.
void paste_shard(std::span<const std::byte> shard, const Shape& logical, DType dtype,
                 const Sharding& sharding, const Mesh& mesh, const Coordinates& at,
                 std::span<std::byte> whole);

}  // namespace tessera
