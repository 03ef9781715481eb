#include "tessera/tensor/host_tensor.h"

#include <cstring>
#include <new>

#include "tessera/tensor/element.h"
#include "tessera/tensor/sixteen_bit.h"

namespace tessera {

namespace {

constexpr std::align_val_t kAlignment{64};

}  // namespace

HostTensor::HostTensor(TensorType type) : type_(std::move(type)) {
  const std::size_t size = static_cast<std::size_t>(type_.bytes());
  bytes_ =
      std::shared_ptr<std::byte>(static_cast<std::byte*>(::operator new(size + 64, kAlignment)),
                                 [](std::byte* p) { ::operator delete(p, kAlignment); });
  std::memset(bytes_.get(), 0, size + 64);
}

HostTensor HostTensor::clone() const {
  HostTensor out(type_);
  std::memcpy(out.bytes_.get(), bytes_.get(), static_cast<std::size_t>(type_.bytes()));
  return out;
}

double element(DType dtype, const void* data, std::int64_t i) {
  switch (dtype) {
    case DType::F32: return static_cast<const float*>(data)[i];
    case DType::F64: return static_cast<const double*>(data)[i];
    case DType::I32: return static_cast<const std::int32_t*>(data)[i];
    case DType::I64: return static_cast<double>(static_cast<const std::int64_t*>(data)[i]);
    case DType::Bool: return static_cast<const std::uint8_t*>(data)[i] != 0;
    case DType::BF16: return from_bf16(static_cast<const std::uint16_t*>(data)[i]);
    case DType::F16: return from_f16(static_cast<const std::uint16_t*>(data)[i]);
  }
  return 0;
}

void set_element(DType dtype, void* data, std::int64_t i, double value) {
  switch (dtype) {
    case DType::F32: static_cast<float*>(data)[i] = static_cast<float>(value); break;
    case DType::F64: static_cast<double*>(data)[i] = value; break;
    case DType::I32: static_cast<std::int32_t*>(data)[i] = static_cast<std::int32_t>(value); break;
    case DType::I64: static_cast<std::int64_t*>(data)[i] = static_cast<std::int64_t>(value); break;
    case DType::Bool: static_cast<std::uint8_t*>(data)[i] = value != 0; break;
    case DType::BF16:
      static_cast<std::uint16_t*>(data)[i] = to_bf16(static_cast<float>(value));
      break;
    case DType::F16:
      static_cast<std::uint16_t*>(data)[i] = to_f16(static_cast<float>(value));
      break;
  }
}

double HostTensor::at(std::int64_t i) const { return element(type_.dtype, bytes_.get(), i); }

void HostTensor::set(std::int64_t i, double value) {
  set_element(type_.dtype, bytes_.get(), i, value);
}

HostTensor HostTensor::cast(DType dtype) const {
  HostTensor out(dtype, type_.shape);
  for (std::int64_t i = 0; i < numel(); ++i) out.set(i, at(i));
  return out;
}

}  // namespace tessera
