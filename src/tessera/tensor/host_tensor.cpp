#include "tessera/tensor/host_tensor.h"

#include <bit>
#include <cstring>
#include <new>

#include "tessera/tensor/element.h"

namespace tessera {

namespace {

constexpr std::align_val_t kAlignment{64};

float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// Round to nearest, ties to even; NaN stays NaN.
std::uint16_t to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<std::uint16_t>((bits >> 16) | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

float from_f16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  const std::uint32_t exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000 | (mantissa << 13));
  if (exponent == 0) {
    const float value = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -value : value;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

/// Round to nearest, ties to even; overflow becomes infinity.
std::uint16_t to_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value), sign = (bits >> 16) & 0x8000;
  const std::uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return static_cast<std::uint16_t>(sign | 0x7E00);
  if (magnitude >= 0x477FF000) return static_cast<std::uint16_t>(sign | 0x7C00);
  if (magnitude < 0x38800000) {
    // Subnormal: adding 0.5 aligns the last kept bit with the last bit of the sum.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000));
  }
  const std::uint32_t rounded = magnitude + 0xFFF + ((magnitude >> 13) & 1) - 0x38000000;
  return static_cast<std::uint16_t>(sign | (rounded >> 13));
}

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

double HostTensor::at(std::int64_t i) const { return element(type_.dtype, bytes_.get(), i); }

void HostTensor::set(std::int64_t i, double value) {
  std::byte* p = bytes_.get();
  switch (type_.dtype) {
    case DType::F32: reinterpret_cast<float*>(p)[i] = static_cast<float>(value); break;
    case DType::F64: reinterpret_cast<double*>(p)[i] = value; break;
    case DType::I32:
      reinterpret_cast<std::int32_t*>(p)[i] = static_cast<std::int32_t>(value);
      break;
    case DType::I64:
      reinterpret_cast<std::int64_t*>(p)[i] = static_cast<std::int64_t>(value);
      break;
    case DType::Bool: reinterpret_cast<std::uint8_t*>(p)[i] = value != 0; break;
    case DType::BF16:
      reinterpret_cast<std::uint16_t*>(p)[i] = to_bf16(static_cast<float>(value));
      break;
    case DType::F16:
      reinterpret_cast<std::uint16_t*>(p)[i] = to_f16(static_cast<float>(value));
      break;
  }
}

HostTensor HostTensor::cast(DType dtype) const {
  HostTensor out(dtype, type_.shape);
  for (std::int64_t i = 0; i < numel(); ++i) out.set(i, at(i));
  return out;
}

}  // namespace tessera
