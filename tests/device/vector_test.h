#pragma once
/// A device with the vector kernels alone: a test sees which ops they take and which are left to
/// the reference.

#include <hwy/targets.h>

#include "device/kernel_test.h"
#include "tessera/device/cpu/vector.h"

namespace tessera::testing {

class VectorDevice final : public Device {
 public:
  explicit VectorDevice(int threads) : pool_(threads, -1) {}
  std::string name() const override { return "vector"; }
  std::unique_ptr<Kernel> make_kernel(const KernelRequest& request) override {
    for (const cpu::KernelEntry& entry : cpu::vector_kernels()) {
      if (!entry.is_for(request.call.op())) continue;
      if (std::unique_ptr<Kernel> kernel = entry.make(request, pool_)) return kernel;
    }
    return cpu::make_reference_kernel(request);
  }
  bool accepts_strides(const OpDef& op, int operand) const override {
    return cpu::vector_accepts_strides(op, operand);
  }
  void* allocate(Memory, std::int64_t) override { return nullptr; }
  void release(void*) override {}
  void fill(void*, std::byte, std::int64_t) override {}
  void copy(void*, const void*, std::int64_t) override {}
  void expect_copies(std::int64_t) override {}
  std::uint64_t start_copy(void*, const void*, std::int64_t) override { return 0; }
  void wait_copy(std::uint64_t) override {}

 private:
  cpu::Pool pool_;
};

inline KernelSetting in_place(int operand) {
  KernelSetting out;
  out.in_place = operand;
  return out;
}

inline KernelSetting strided(std::vector<Shape> strides) {
  KernelSetting out;
  out.strides = std::move(strides);
  return out;
}

/// Kernels made while it lives do without some instruction sets of this machine.
class Without {
 public:
  explicit Without(std::int64_t targets) { hwy::DisableTargets(targets); }
  ~Without() { hwy::DisableTargets(0); }
  Without(const Without&) = delete;
  Without& operator=(const Without&) = delete;
};

/// As expect_like_reference, on 1, 2 and 3 threads, each with other instructions; the kernel must
/// be `kernel`.
inline void expect_vector(std::string_view kernel, const OpDef& op, const Attrs& attrs,
                          const std::vector<HostTensor>& ins, Tolerance tolerance,
                          const KernelSetting& setting = {}) {
  constexpr std::int64_t kAvx512 = HWY_AVX3 | HWY_AVX3_DL,
                         kAll = kAvx512 | HWY_AVX2 | HWY_SSE4 | HWY_SSSE3;
  struct {
    int threads;
    const char* instructions;
    std::int64_t without;
  } const cases[] = {{1, "the best", 0}, {2, "AVX2", kAvx512}, {3, "the baseline", kAll}};
  for (const auto& c : cases) {
    SCOPED_TRACE(
        text(op.name, " on ", c.threads, " threads with ", c.instructions, " instructions"));
    const Without without(c.without);
    VectorDevice device(c.threads);
    EXPECT_EQ(expect_like_reference(device, op, attrs, ins, tolerance, setting), kernel);
  }
}

}  // namespace tessera::testing
