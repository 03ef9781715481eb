#pragma once
/// A device with the vector kernels alone: a test sees which ops they take and which are left to
/// the reference.

#include "device/kernel_test.h"
#include "tessera/device/cpu/vector.h"

namespace tessera::testing {

class VectorDevice final : public Device {
 public:
  explicit VectorDevice(int threads) : pool_(threads, -1) {}
  std::string name() const override { return "vector"; }
  std::unique_ptr<Kernel> make_kernel(const KernelRequest& request) override {
    for (const cpu::KernelEntry& entry : cpu::vector_kernels()) {
      if (entry.op != &request.call.op()) continue;
      if (std::unique_ptr<Kernel> kernel = entry.make(request, pool_)) return kernel;
    }
    return cpu::make_reference_kernel(request);
  }
  bool accepts_strides(const OpDef& op, int operand) const override {
    return cpu::vector_accepts_strides(op, operand);
  }
  void* allocate(std::int64_t) override { return nullptr; }
  void release(void*) override {}

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

/// As expect_like_reference, on 1, 2 and 3 threads; the kernel must be `kernel`.
inline void expect_vector(std::string_view kernel, const OpDef& op, const Attrs& attrs,
                          const std::vector<HostTensor>& ins, Tolerance tolerance,
                          const KernelSetting& setting = {}) {
  for (const int threads : {1, 2, 3}) {
    SCOPED_TRACE(text(op.name, " on ", threads, " threads"));
    VectorDevice device(threads);
    EXPECT_EQ(expect_like_reference(device, op, attrs, ins, tolerance, setting), kernel);
  }
}

}  // namespace tessera::testing
