#include "tessera/tensor/convert_floats.h"

#include <cstdint>
#include <cstring>

#include "tessera/base/error.h"
#include "tessera/tensor/sixteen_bit.h"

namespace tessera {

namespace {

float load(DType dtype, const std::byte* at) {
  if (dtype == DType::F32) {
    float out = 0;
    std::memcpy(&out, at, sizeof out);
    return out;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return dtype == DType::BF16 ? from_bf16(bits) : from_f16(bits);
}

void store(DType dtype, float value, std::byte* at) {
  if (dtype == DType::F32) {
    std::memcpy(at, &value, sizeof value);
    return;
  }
  const std::uint16_t bits = dtype == DType::BF16 ? to_bf16(value) : to_f16(value);
  std::memcpy(at, &bits, sizeof bits);
}

}  // namespace

void convert_floats(DType from, std::span<const std::byte> values, DType to,
                    std::span<std::byte> out) {
  const auto known = [](DType d) { return d == DType::F32 || is_16_bit(d); };
  const auto size = static_cast<std::size_t>(size_of(from)),
             wide = static_cast<std::size_t>(size_of(to));
  check(known(from) && known(to) && values.size() / size == out.size() / wide, "floats of ", from,
        " become ", to, ": ", values.size(), " bytes, ", out.size());
  if (from == to) {
    std::memcpy(out.data(), values.data(), out.size());
    return;
  }
  for (std::size_t i = 0; i < out.size() / wide; ++i)
    store(to, load(from, values.data() + i * size), out.data() + i * wide);
}

}  // namespace tessera
