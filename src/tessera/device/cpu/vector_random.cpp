/// Random tensors: the words of each Philox block are used by its four elements.

#include <algorithm>
#include <cmath>

#include "tessera/base/philox.h"
#include "tessera/device/cpu/vector_families.h"
#include "tessera/ops/random.h"

namespace tessera::cpu {

namespace {

constexpr std::int64_t kRandomGrain = 1024;  // elements; a multiple of the four of a block

/// The four numbers of a block of elements.
using Block = void (*)(std::uint64_t key, std::uint64_t block, std::uint64_t step, float* out);

void normal_block(std::uint64_t key, std::uint64_t block, std::uint64_t step, float* out) {
  const PhiloxBlock words = philox(key, block, step);
  const NormalPair a = normal_pair(words[0], words[1]), b = normal_pair(words[2], words[3]);
  out[0] = a.even, out[1] = a.odd, out[2] = b.even, out[3] = b.odd;
}

void truncated_normal_block(std::uint64_t key, std::uint64_t block, std::uint64_t step,
                            float* out) {
  normal_block(key, block, step, out);
  for (std::uint64_t i = 0; i < 4; ++i) {
    if (std::abs(out[i]) > 2.0f) out[i] = truncated_normal_number(key, 4 * block + i, step);
  }
}

void uniform_block(std::uint64_t key, std::uint64_t block, std::uint64_t step, float* out) {
  const PhiloxBlock words = philox(key, block, step);
  for (std::size_t i = 0; i < 4; ++i) out[i] = unit_float(words[i]);
}

Block block_of(const OpDef& op) {
  if (&op == &kRandomNormal) return normal_block;
  return &op == &kRandomUniform ? uniform_block : truncated_normal_block;
}

/// Numbers of `count` elements from `first` on, which may lie within a block.
void fill_run(Block block, std::uint64_t key, std::uint64_t step, std::int64_t first,
              std::int64_t count, float* out) {
  for (std::int64_t i = first, end = first + count; i < end;) {
    float four[4];
    block(key, static_cast<std::uint64_t>(i) / 4, step, four);
    const std::int64_t behind = std::min(end, (i / 4 + 1) * 4);
    out = std::copy(four + i % 4, four + i % 4 + (behind - i), out);
    i = behind;
  }
}

class RandomKernel final : public Kernel {
 public:
  RandomKernel(Block block, const Shape& shape, const ShardInfo& shard, std::uint64_t key,
               Pool& pool)
      : block_(block), shape_(shape), shard_(shard), key_(key), pool_(pool) {
    // The last dims that are whole, and the one before, are one run of logical indices.
    outer_ = shape.ndim();
    while (outer_ > 0 && (outer_ == shape.ndim() || shape[outer_] == shard.global[outer_]))
      run_ *= shape[--outer_];
  }
  std::string_view name() const override { return "cpu:random"; }

  void run(const KernelArgs& args) const override {
    const auto step = static_cast<std::uint64_t>(*static_cast<const std::int64_t*>(args.ins[0]));
    float* const out = static_cast<float*>(args.outs[0]);
    const Shape offset = offset_at(shard_, args.microbatch), strides = shard_.global.strides();
    std::int64_t begin_of_all = 0;
    for (int d = 0; d < shape_.ndim(); ++d) begin_of_all += offset[d] * strides[d];
    pool_.split(shape_.numel(), kRandomGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end;) {
        const std::int64_t row = i / run_, behind = std::min(end, (row + 1) * run_);
        std::int64_t first = begin_of_all + i % run_;
        for (std::int64_t d = outer_ - 1, left = row; d >= 0; left /= shape_[int(d--)])
          first += left % shape_[int(d)] * strides[int(d)];
        fill_run(block_, key_, step, first, behind - i, out + i);
        i = behind;
      }
    });
  }

 private:
  Block block_;
  Shape shape_;
  ShardInfo shard_;
  std::int64_t run_ = 1;  // elements whose logical indices follow each other
  int outer_ = 0;         // dims before these
  std::uint64_t key_;
  Pool& pool_;
};

}  // namespace

std::unique_ptr<Kernel> make_random(const KernelRequest& request, Pool& pool) {
  const TensorType& type = request.call.out(0);
  if (type.dtype != DType::F32 || request.call.in(0).dtype != DType::I64) return nullptr;
  return std::make_unique<RandomKernel>(block_of(request.call.op()), type.shape,
                                        out_shard(request, 0), request.key, pool);
}

}  // namespace tessera::cpu
