#include "tessera/tensor/shard_copy.h"

#include <cstring>

#include "tessera/base/error.h"

namespace tessera {

void each_run(const Shape& logical, const Sharding& sharding, const Mesh& mesh,
              const Coordinates& at, const std::function<void(const ShardRun&)>& visit) {
  const int ndim = logical.ndim();
  if (ndim == 0) return visit({0, 0, 1});
  std::vector<Extent> extents;
  for (int d = 0; d < ndim; ++d)
    extents.push_back(extent(logical[d], sharding.dims[static_cast<std::size_t>(d)], mesh, at));
  for (const Extent& e : extents) {
    if (e.valid == 0) return;
  }
  const Shape strides = logical.strides(), local = local_shape(logical, sharding, mesh).strides();
  Shape index = Shape::of(ndim, 0);
  while (true) {
    ShardRun run{0, 0, extents.back().valid};
    for (int d = 0; d < ndim; ++d) {
      run.whole += (extents[static_cast<std::size_t>(d)].start + index[d]) * strides[d];
      run.shard += index[d] * local[d];
    }
    visit(run);
    int d = ndim - 1;  // the last dim is the run
    while (d-- > 0) {
      if (++index[d] < extents[static_cast<std::size_t>(d)].valid) break;
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

void cut_shard(std::span<const std::byte> whole, const Shape& logical, DType dtype,
               const Sharding& sharding, const Mesh& mesh, const Coordinates& at,
               std::span<std::byte> shard) {
  const auto size = static_cast<std::size_t>(size_of(dtype));
  std::memset(shard.data(), 0, shard.size());
  each_run(logical, sharding, mesh, at, [&](const ShardRun& run) {
    std::memcpy(shard.data() + static_cast<std::size_t>(run.shard) * size,
                whole.data() + static_cast<std::size_t>(run.whole) * size,
                static_cast<std::size_t>(run.count) * size);
  });
}

void paste_shard(std::span<const std::byte> shard, const Shape& logical, DType dtype,
                 const Sharding& sharding, const Mesh& mesh, const Coordinates& at,
                 std::span<std::byte> whole) {
  const auto size = static_cast<std::size_t>(size_of(dtype));
  each_run(logical, sharding, mesh, at, [&](const ShardRun& run) {
    std::memcpy(whole.data() + static_cast<std::size_t>(run.whole) * size,
                shard.data() + static_cast<std::size_t>(run.shard) * size,
                static_cast<std::size_t>(run.count) * size);
  });
}

}  // namespace tessera
