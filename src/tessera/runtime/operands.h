#pragma once
/// Memory for trials of kernels.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tessera/device/device.h"
#include "tessera/plan/plan.h"

namespace tessera {

/// Memory of a device for the length of a trial.
class Operands {
 public:
  Operands(Device& device, const std::vector<TensorType>& types) : device_(device) {
    std::int64_t bytes = 0;
    for (const TensorType& type : types) {
      offsets_.push_back(bytes);
      bytes += aligned(type.bytes());
    }
    base_ = static_cast<std::byte*>(device.allocate(Memory::Device, bytes));
    constexpr std::byte kSmall{0x3c};  // f32 0.0115: sums and products of it stay finite
    device.fill(base_, kSmall, bytes);
  }
  ~Operands() { device_.release(base_); }
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  void* at(std::size_t i) const { return base_ + offsets_[i]; }

 private:
  Device& device_;
  std::vector<std::int64_t> offsets_;
  std::byte* base_ = nullptr;
};

}  // namespace tessera
