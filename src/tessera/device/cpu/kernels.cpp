#include "tessera/device/cpu/kernels.h"

#include <algorithm>
#include <vector>

#include "tessera/device/cpu/attention.h"
#include "tessera/device/cpu/few_rows.h"
#include "tessera/device/cpu/grouped.h"
#include "tessera/device/cpu/matmul.h"
#include "tessera/device/cpu/packed.h"
#include "tessera/device/cpu/vector.h"

namespace tessera::cpu {

namespace {

ShardInfo whole(const Shape& shape) {
  return {shape, Shape::of(shape.ndim(), 0), Shape::of(shape.ndim(), 0), shape};
}

}  // namespace

std::span<const KernelEntry> kernel_list() {
  static const std::vector<KernelEntry> all = [] {
    std::vector<KernelEntry> out;
    for (const std::span<const KernelEntry> family :
         {packed_kernels(), few_rows_kernels(), matmul_kernels(), grouped_kernels(),
          attention_kernels(), vector_kernels()}) {
      out.insert(out.end(), family.begin(), family.end());
    }
    return out;
  }();
  return all;
}

Shape strides_of(const KernelRequest& request, int i) {
  const auto at = static_cast<std::size_t>(i);
  const Shape& shape = request.call.in(i).shape;
  const bool given =
      at < request.in_strides.size() && request.in_strides[at].ndim() == shape.ndim();
  return given ? request.in_strides[at] : shape.strides();
}

bool is_dense(const KernelRequest& request, int i) {
  const Shape &shape = request.call.in(i).shape, strides = strides_of(request, i);
  const Shape dense = shape.strides();
  for (int d = 0; d < shape.ndim(); ++d) {
    if (shape[d] > 1 && strides[d] != dense[d]) return shape.numel() == 0;
  }
  return true;
}

ShardInfo in_shard(const KernelRequest& request, int i) {
  const auto at = static_cast<std::size_t>(i);
  return at < request.ins.size() ? request.ins[at] : whole(request.call.in(i).shape);
}

ShardInfo out_shard(const KernelRequest& request, int i) {
  const auto at = static_cast<std::size_t>(i);
  return at < request.outs.size() ? request.outs[at] : whole(request.call.out(i).shape);
}

Shape offset_at(const ShardInfo& shard, std::int64_t microbatch) {
  Shape out = shard.offset;
  for (int d = 0; d < out.ndim(); ++d) out[d] += microbatch * shard.step[d];
  return out;
}

Shape valid_at(const ShardInfo& shard, const Shape& shape, const Shape& offset) {
  Shape out = shape;
  for (int d = 0; d < out.ndim(); ++d) {
    const std::int64_t room = shard.room.ndim() > 0 ? std::min(shard.room[d], shape[d]) : shape[d];
    out[d] = std::clamp(shard.limit[d] - offset[d], std::int64_t{0}, room);
  }
  return out;
}

}  // namespace tessera::cpu
