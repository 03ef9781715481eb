#include "tessera/files/event_record.h"

#include <array>
#include <bit>

namespace tessera {

namespace {

constexpr std::uint32_t kCastagnoli = 0x82F63B78;  // bits reversed

constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> out{};
  for (std::uint32_t byte = 0; byte < out.size(); ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kCastagnoli : 0);
    out[byte] = crc;
  }
  return out;
}
constexpr std::array<std::uint32_t, 256> kCrcTable = crc_table();

/// Little-endian.
template <typename Unsigned>
void put_fixed(std::string& out, Unsigned value) {
  for (std::size_t i = 0; i < sizeof value; ++i)
    out += static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
}

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7F) | 0x80);
  out += static_cast<char>(value);
}

/// How the value of a field is written in protobuf.
enum class Wire : std::uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

void put_key(std::string& out, std::uint64_t field, Wire wire) {
  put_varint(out, field << 3 | static_cast<std::uint64_t>(wire));
}

void put_bytes(std::string& out, std::uint64_t field, std::string_view bytes) {
  put_key(out, field, Wire::Bytes);
  put_varint(out, bytes.size());
  out += bytes;
}

void put_integer(std::string& out, std::uint64_t field, std::int64_t value) {
  put_key(out, field, Wire::Varint);
  put_varint(out, static_cast<std::uint64_t>(value));
}

// Numbers of fields.
constexpr std::uint64_t kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSession = 7;
constexpr std::uint64_t kValueOfSummary = 1, kTag = 1, kSimpleValue = 2;
constexpr std::uint64_t kStatusOfSession = 1;
constexpr std::int64_t kStart = 1;  // of a session

std::string begun_event(double wall_time) {
  std::string out;
  put_key(out, kWallTime, Wire::Fixed64);
  put_fixed(out, std::bit_cast<std::uint64_t>(wall_time));
  return out;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char c : bytes)
    crc = kCrcTable[(crc ^ static_cast<unsigned char>(c)) & 0xFF] ^ (crc >> 8);
  return ~crc;
}

std::uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xA282EAD8U;
}

std::string framed(std::string_view data) {
  std::string out;
  put_fixed(out, std::uint64_t{data.size()});
  put_fixed(out, masked_crc32c(out));
  out += data;
  put_fixed(out, masked_crc32c(data));
  return out;
}

std::string version_event(double wall_time) {
  std::string out = begun_event(wall_time);
  put_bytes(out, kFileVersion, "brain.Event:2");
  return out;
}

std::string restart_event(double wall_time, std::int64_t step) {
  std::string out = begun_event(wall_time), session;
  put_integer(out, kStep, step);
  put_integer(session, kStatusOfSession, kStart);
  put_bytes(out, kSession, session);
  return out;
}

std::string scalars_event(double wall_time, std::int64_t step,
                          std::span<const ScalarValue> values) {
  std::string out = begun_event(wall_time), summary;
  put_integer(out, kStep, step);
  for (const ScalarValue& scalar : values) {
    std::string value;
    put_bytes(value, kTag, scalar.tag);
    put_key(value, kSimpleValue, Wire::Fixed32);
    put_fixed(value, std::bit_cast<std::uint32_t>(scalar.value));
    put_bytes(summary, kValueOfSummary, value);
  }
  put_bytes(out, kSummary, summary);
  return out;
}

}  // namespace tessera
