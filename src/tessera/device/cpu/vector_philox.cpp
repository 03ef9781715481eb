#include "tessera/device/cpu/vector_philox.h"

#include <algorithm>
#include <cmath>

#include "tessera/gemm/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/device/cpu/vector_philox.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "tessera/device/cpu/vector_philox_blocks.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {

void words(std::uint64_t key, std::uint64_t step, std::uint64_t first, std::int64_t blocks,
           std::uint32_t* out) {
  const PhiloxBlocks philox_blocks(key, step);
  const auto at = [&](std::int64_t i) { return first + static_cast<std::uint64_t>(i); };
  std::int64_t i = 0;
  for (; i + PhiloxBlocks::many() <= blocks; i += PhiloxBlocks::many())
    philox_blocks.many_words(at(i), out + 4 * i);
  for (; i + PhiloxBlocks::few() <= blocks; i += PhiloxBlocks::few())
    philox_blocks.few_words(at(i), out + 4 * i);
  for (; i < blocks; ++i) {
    const PhiloxBlock block = philox(key, at(i), step);
    std::copy(block.begin(), block.end(), out + 4 * i);
  }
}

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

HWY_EXPORT(words);

void philox_words(std::uint64_t key, std::uint64_t step, std::uint64_t first_block,
                  std::int64_t blocks, std::uint32_t* out) {
  HWY_DYNAMIC_DISPATCH(words)(key, step, first_block, blocks, out);
}

std::int32_t keep_threshold(double p) {
  return static_cast<std::int32_t>(std::ceil(std::ldexp(static_cast<float>(p), 24)));
}

}  // namespace tessera::cpu
#endif
