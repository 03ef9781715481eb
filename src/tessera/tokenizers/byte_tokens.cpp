#include "tessera/tokenizers/byte_tokens.h"

#include <array>

#include "tessera/base/text.h"
#include "tessera/base/utf8.h"

namespace tessera {

namespace {

constexpr bool prints(int byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

/// By byte: its id, and the character that stands for it.
struct ByteNames {
  std::array<std::int32_t, 256> id{};
  std::array<char32_t, 256> character{};
};
constexpr ByteNames kByteNames = [] {
  ByteNames out;
  std::int32_t next = 0;
  for (const bool printing : {true, false}) {
    char32_t beyond = 256;
    for (int byte = 0; byte < 256; ++byte) {
      if (prints(byte) != printing) continue;
      const auto i = static_cast<std::size_t>(byte);
      out.id[i] = next++;
      out.character[i] = printing ? static_cast<char32_t>(byte) : beyond++;
    }
  }
  return out;
}();

}  // namespace

std::int32_t id_of_byte(unsigned char byte) { return kByteNames.id[byte]; }
char32_t printed_byte(unsigned char byte) { return kByteNames.character[byte]; }

bool append_printed_bytes(std::string_view printed, std::string& bytes) {
  static constexpr std::int32_t kMost = 256 + 68, kNoByte = -1;
  static constexpr auto kByte = [] {
    std::array<std::int32_t, kMost> out{};
    for (std::int32_t& byte : out) byte = kNoByte;
    for (std::int32_t byte = 0; byte < 256; ++byte)
      out[kByteNames.character[static_cast<std::size_t>(byte)]] = byte;
    return out;
  }();
  const std::size_t before = bytes.size();
  for (std::size_t at = 0; at < printed.size();) {
    const CodePoint c = code_point_at(printed, at);
    if (c.size == 0 || c.value >= kMost || kByte[c.value] == kNoByte) {
      bytes.resize(before);
      return false;
    }
    bytes += static_cast<char>(static_cast<unsigned char>(kByte[c.value]));
    at += static_cast<std::size_t>(c.size);
  }
  return true;
}

}  // namespace tessera
