#include <algorithm>
#include <cstring>

#include "tessera/device/cpu/grain.h"
#include "tessera/device/cpu/vector_families.h"
#include "tessera/ops/collective.h"
#include "tessera/ops/reference.h"
#include "tessera/tensor/element.h"

namespace tessera::cpu {

namespace {

/// Writes what lies beyond the logical extent alone: the rest is copied only where the result does
/// not lie in the operand.
class ClearPadding final : public Kernel {
 public:
  ClearPadding(const KernelRequest& request, Pool& pool)
      : pool_(&pool),
        shape_(request.call.in(0).shape),
        shard_(in_shard(request, 0)),
        size_(size_of(request.call.in(0).dtype)) {
    for (const std::int64_t d : request.call.integers("dims")) dims_.push_back(static_cast<int>(d));
    const DType dtype = request.call.in(0).dtype;
    const Monoid monoid = parse_monoid(request.call.string("monoid"));
    if (is_16_bit(dtype)) {
      set_element(dtype, value_, 0, identity_of<float>(monoid));
    } else {
      with_element(dtype, [&](auto zero) {
        const auto value = identity_of<decltype(zero)>(monoid);
        std::memcpy(value_, &value, sizeof(value));
      });
    }
  }

  std::string_view name() const override { return "cpu:clear_padding"; }

  void run(const KernelArgs& args) const override {
    const auto* from = static_cast<const std::byte*>(args.ins[0]);
    auto* to = static_cast<std::byte*>(args.outs[0]);
    if (from != to) {
      pool_->split(shape_.numel() * size_, kGrainBytes, [&](std::int64_t begin, std::int64_t end) {
        std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin));
      });
    }
    const Shape valid = valid_at(shard_, shape_, offset_at(shard_, args.microbatch));
    for (const int d : dims_) clear(to, d, valid[d]);
  }

 private:
  /// Of the dims before `dim`, one run each: what lies behind `valid`.
  void clear(std::byte* to, int dim, std::int64_t valid) const {
    const std::int64_t inner = shape_.strides()[dim], row = shape_[dim] * inner;
    const std::int64_t count = row - valid * inner;
    if (count == 0 || row == 0) return;
    const std::int64_t grain = std::max<std::int64_t>(1, kGrainBytes / (count * size_));
    pool_->split(shape_.numel() / row, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t o = begin; o < end; ++o)
        fill(to + (o * row + valid * inner) * size_, count);
    });
  }

  void fill(std::byte* to, std::int64_t count) const {
    for (std::int64_t i = 0; i < count; ++i)
      std::memcpy(to + i * size_, value_, static_cast<std::size_t>(size_));
  }

  Pool* pool_;
  Shape shape_;
  ShardInfo shard_;
  std::int64_t size_;
  std::vector<int> dims_;
  std::byte value_[8] = {};
};

}  // namespace

std::unique_ptr<Kernel> make_clear_padding(const KernelRequest& request, Pool& pool) {
  if (!is_dense(request, 0)) return nullptr;
  return std::make_unique<ClearPadding>(request, pool);
}

}  // namespace tessera::cpu
