/// A device that is only described: what plans for machines are made from that are not here.

#include "tessera/base/error.h"
#include "tessera/device/cpu/strides.h"
#include "tessera/device/device.h"

namespace tessera {

namespace {

/// Of any op and any shapes.
class DescribedKernel final : public Kernel {
 public:
  std::string_view name() const override { return "described"; }
  void run(const KernelArgs&) const override {
    check(false, "a kernel of a device that is only described was run");
  }
};

class DescribedDevice final : public Device {
 public:
  std::string name() const override { return "described"; }

  std::unique_ptr<Kernel> make_kernel(const KernelRequest&) override {
    return std::make_unique<DescribedKernel>();
  }

  /// Its kernels would read what those of processors read, so its values lie as theirs do.
  bool accepts_strides(const OpDef& op, int operand) const override {
    return cpu::accepts_strides(op, operand);
  }

  std::shared_ptr<std::byte> allocate_for_several(std::int64_t bytes) override {
    return {static_cast<std::byte*>(allocate(Memory::Device, bytes)), [](std::byte*) {}};
  }
  void* allocate(Memory, std::int64_t bytes) override {
    fail(Fault::Usage, "a device that is only described has no memory, so ", bytes,
         " bytes cannot be allocated; plan for it, but run on a device of this machine");
  }

  // Nothing can be in a pool of this device: there are none.
  void release(void*) override { refuse(); }
  void fill(void*, std::byte, std::int64_t) override { refuse(); }
  void copy(void*, const void*, std::int64_t) override { refuse(); }
  void expect_copies(std::int64_t) override { refuse(); }
  std::uint64_t start_copy(void*, const void*, std::int64_t) override {
    refuse();
    return 0;
  }
  void wait_copy(std::uint64_t) override { refuse(); }

 private:
  static void refuse() { check(false, "a device that is only described was used"); }
};

}  // namespace

std::unique_ptr<Device> make_described_device() { return std::make_unique<DescribedDevice>(); }

}  // namespace tessera
