#include <algorithm>
#include <cstring>

#include "tessera/device/cpu/grain.h"
#include "tessera/device/cpu/vector_copy.h"
#include "tessera/device/cpu/vector_families.h"

namespace tessera::cpu {

namespace {

/// Writes the window alone: the rest is copied only where the result does not lie in the operand.
class DynamicUpdate final : public Kernel {
 public:
  DynamicUpdate(const KernelRequest& request, Pool& pool) : pool_(&pool) {
    const TensorType &x = request.call.in(0), &update = request.call.in(1);
    const int dim = static_cast<int>(request.call.integer("dim")), size = size_of(x.dtype);
    const Shape strides = x.shape.strides();
    window_ = StridedCopy(update.shape, strides_of(request, 1), strides, size);
    bytes_ = x.bytes();
    last_ = x.shape[dim] - update.shape[dim];
    step_bytes_ = strides[dim] * size;
  }

  std::string_view name() const override { return "cpu:dynamic_update"; }

  void run(const KernelArgs& args) const override {
    const auto* from = static_cast<const std::byte*>(args.ins[0]);
    auto* to = static_cast<std::byte*>(args.outs[0]);
    if (from != to) {
      pool_->split(bytes_, kGrainBytes, [&](std::int64_t begin, std::int64_t end) {
        std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin));
      });
    }
    const std::int64_t start =
        std::clamp<std::int64_t>(*static_cast<const std::int32_t*>(args.ins[2]), 0, last_);
    window_.run(static_cast<const std::byte*>(args.ins[1]), to + start * step_bytes_, *pool_);
  }

 private:
  Pool* pool_;
  StridedCopy window_;
  std::int64_t bytes_, last_, step_bytes_;  // of x; the last start; of one step along the dim
};

}  // namespace

std::unique_ptr<Kernel> make_dynamic_update(const KernelRequest& request, Pool& pool) {
  if (!is_dense(request, 0)) return nullptr;
  return std::make_unique<DynamicUpdate>(request, pool);
}

}  // namespace tessera::cpu
