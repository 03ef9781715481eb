#include "tessera/base/md5.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace tessera {

namespace {

using Md5State = std::array<std::uint32_t, 4>;

constexpr int kShifts[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

/// floor(2^32 |sin(i + 1)|)
std::array<std::uint32_t, 64> md5_table() {
  std::array<std::uint32_t, 64> out{};
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<std::uint32_t>(
        std::floor(std::fabs(std::sin(static_cast<double>(i + 1))) * 4294967296.0));
  return out;
}

void add_block(Md5State& state, const unsigned char* block) {
  static const std::array<std::uint32_t, 64> kTable = md5_table();
  std::array<std::uint32_t, 16> words{};
  for (std::size_t i = 0; i < 64; ++i)
    words[i / 4] |= static_cast<std::uint32_t>(block[i]) << (8 * (i % 4));
  auto [a, b, c, d] = state;
  for (std::size_t i = 0; i < 64; ++i) {
    std::uint32_t mixed = 0;
    std::size_t word = i;
    switch (i / 16) {
      case 0: mixed = (b & c) | (~b & d); break;
      case 1: mixed = (d & b) | (~d & c), word = 5 * i + 1; break;
      case 2: mixed = b ^ c ^ d, word = 3 * i + 5; break;
      default: mixed = c ^ (b | ~d), word = 7 * i; break;
    }
    const std::uint32_t sum = a + mixed + kTable[i] + words[word % 16];
    a = d, d = c, c = b;
    b += std::rotl(sum, kShifts[i / 16][i % 4]);
  }
  state[0] += a, state[1] += b, state[2] += c, state[3] += d;
}

}  // namespace

std::string md5_text(std::string_view bytes) {
  std::string padded(bytes);
  padded += '\x80';
  while (padded.size() % 64 != 56) padded += '\0';
  const std::uint64_t bits = std::uint64_t{8} * bytes.size();
  for (int i = 0; i < 8; ++i) padded += static_cast<char>(bits >> (8 * i) & 0xff);
  Md5State state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  for (std::size_t at = 0; at < padded.size(); at += 64)
    add_block(state, reinterpret_cast<const unsigned char*>(padded.data()) + at);
  std::string out;
  for (const std::uint32_t word : state) {
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t byte = word >> (8 * i) & 0xff;
      out += "0123456789abcdef"[byte >> 4];
      out += "0123456789abcdef"[byte & 15];
    }
  }
  return out;
}

}  // namespace tessera
