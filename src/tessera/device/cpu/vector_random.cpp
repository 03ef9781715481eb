/// Random tensors whole: the words of each Philox block are used by its four elements.

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

class RandomKernel final : public Kernel {
 public:
  RandomKernel(Block block, std::int64_t numel, std::uint64_t key, Pool& pool)
      : block_(block), numel_(numel), key_(key), pool_(pool) {}
  std::string_view name() const override { return "cpu:random"; }

  void run(const KernelArgs& args) const override {
    const auto step = static_cast<std::uint64_t>(*static_cast<const std::int64_t*>(args.ins[0]));
    float* const out = static_cast<float*>(args.outs[0]);
    pool_.split(numel_, kRandomGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; i += 4) {
        float four[4];
        block_(key_, static_cast<std::uint64_t>(i) / 4, step, four);
        std::copy_n(four, std::min<std::int64_t>(4, end - i), out + i);
      }
    });
  }

 private:
  Block block_;
  std::int64_t numel_;
  std::uint64_t key_;
  Pool& pool_;
};

/// The logical index is the position in the buffer.
bool is_whole(const KernelRequest& request) {
  const ShardInfo shard = out_shard(request, 0);
  const Shape zeros = Shape::of(shard.global.ndim(), 0);
  return shard.global == request.call.out(0).shape && shard.offset == zeros && shard.step == zeros;
}

}  // namespace

std::unique_ptr<Kernel> make_random(const KernelRequest& request, Pool& pool) {
  const TensorType& type = request.call.out(0);
  if (type.dtype != DType::F32 || request.call.in(0).dtype != DType::I64 || !is_whole(request))
    return nullptr;
  return std::make_unique<RandomKernel>(block_of(request.call.op()), type.numel(), request.key,
                                        pool);
}

}  // namespace tessera::cpu
