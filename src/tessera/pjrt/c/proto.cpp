#include "tessera/pjrt/c/proto.h"

#include <bit>

namespace tessera::pjrt::c {

namespace {

enum class WireKind : std::uint64_t { Varint = 0, EightBytes = 1, Bytes = 2 };

void put_tag(std::string& out, int field, WireKind kind) {
  put_varint(out, static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(kind));
}

}  // namespace

void put_varint(std::string& out, std::uint64_t value) {
  for (; value > 0x7f; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  out += static_cast<char>(value);
}

void put_number(std::string& out, int field, std::int64_t value) {
  put_tag(out, field, WireKind::Varint);
  put_varint(out, static_cast<std::uint64_t>(value));
}

void put_double(std::string& out, int field, double value) {
  put_tag(out, field, WireKind::EightBytes);
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int byte = 0; byte < 8; ++byte) out += static_cast<char>(bits >> (8 * byte) & 0xff);
}

void put_bytes(std::string& out, int field, std::string_view bytes) {
  put_tag(out, field, WireKind::Bytes);
  put_varint(out, bytes.size());
  out += bytes;
}

void put_numbers(std::string& out, int field, std::span<const std::int64_t> values) {
  std::string packed;
  for (const std::int64_t value : values) put_varint(packed, static_cast<std::uint64_t>(value));
  put_bytes(out, field, packed);
}

}  // namespace tessera::pjrt::c
