#pragma once
/// Reads protobuf's wire format: what the options of a compiler are written in.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tessera::pjrt {

struct WireField {
  int number = 0;
  std::uint64_t value = 0;  // of a varint, or the 8 bytes of a double
  std::string_view bytes;
};

inline std::optional<std::uint64_t> read_varint(std::string_view& bytes) {
  std::uint64_t out = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (bytes.empty()) return std::nullopt;
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    out |= static_cast<std::uint64_t>(byte & 0x7f) << (shift < 64 ? shift : 63);
    if (byte < 0x80) return out;
  }
  return std::nullopt;
}

/// Nothing where the bytes are no message.
inline std::optional<std::vector<WireField>> read_message(std::string_view bytes) {
  std::vector<WireField> out;
  while (!bytes.empty()) {
    const std::optional<std::uint64_t> tag = read_varint(bytes);
    if (!tag) return std::nullopt;
    WireField& field = out.emplace_back();
    field.number = static_cast<int>(*tag >> 3);
    if ((*tag & 7) == 0) {
      const std::optional<std::uint64_t> value = read_varint(bytes);
      if (!value) return std::nullopt;
      field.value = *value;
    } else if ((*tag & 7) == 1 && bytes.size() >= 8) {
      for (std::size_t i = 0; i < 8; ++i) {
        field.value |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
      }
      bytes.remove_prefix(8);
    } else if ((*tag & 7) == 2) {
      const std::optional<std::uint64_t> size = read_varint(bytes);
      if (!size || *size > bytes.size()) return std::nullopt;
      field.bytes = bytes.substr(0, *size);
      bytes.remove_prefix(*size);
    } else {
      return std::nullopt;
    }
  }
  return out;
}

}  // namespace tessera::pjrt
