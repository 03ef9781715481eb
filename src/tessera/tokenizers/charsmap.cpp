#include "tessera/tokenizers/charsmap.h"

#include <array>

#include "tessera/base/unicode.h"
#include "tessera/base/utf8.h"
#include "tessera/tokenizers/normalizers.h"

namespace tessera::tokenizer {

namespace {

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::size_t kUnitBytes = 4;

std::uint32_t little_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t out = 0;
  for (std::size_t i = 0; i < kUnitBytes; ++i)
    out |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return out;
}

// The fields of a unit of a double array (Darts-clone).
bool has_leaf(std::uint32_t unit) { return ((unit >> 8) & 1) != 0; }
std::uint32_t leaf_value(std::uint32_t unit) { return unit & 0x7FFF'FFFF; }
std::uint32_t unit_label(std::uint32_t unit) { return unit & 0x8000'00FF; }
std::uint32_t unit_offset(std::uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); }

}  // namespace

Charsmap::Charsmap(std::string_view bytes, const JsonPart& part) {
  if (bytes.empty()) return;
  const std::uint64_t size = bytes.size() < kUnitBytes ? 0 : little_endian(bytes, 0);
  if (bytes.size() < kUnitBytes || size % kUnitBytes != 0 || size == 0 ||
      size > bytes.size() - kUnitBytes)
    part.bad("precompiled_charsmap has ", bytes.size(), " bytes and says that its trie has ", size,
             "; restore the file");
  for (std::size_t at = 0; at < size; at += kUnitBytes)
    units_.push_back(little_endian(bytes, kUnitBytes + at));
  replacements_ = bytes.substr(kUnitBytes + size);
}

Charsmap::Match Charsmap::find(std::string_view text, bool shortest) const {
  Match out;
  if (units_.empty()) return out;
  std::size_t node = unit_offset(units_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == 0) break;
    node ^= byte;
    if (node >= units_.size() || unit_label(units_[node]) != byte) break;
    const std::uint32_t unit = units_[node];
    node ^= unit_offset(unit);
    if (!has_leaf(unit)) continue;
    if (node >= units_.size()) break;
    const std::size_t begin = leaf_value(units_[node]);
    std::string_view rest;
    if (begin < replacements_.size()) rest = std::string_view(replacements_).substr(begin);
    out = {i + 1, rest.substr(0, rest.find('\0'))};
    if (shortest) break;
  }
  return out;
}

std::string bytes_of_base64(std::string_view text, const JsonPart& part) {
  std::string out;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    if (c == '=' || c == '\n' || c == '\r' || c == ' ') continue;
    const std::size_t digit = kBase64.find(c);
    if (digit == kBase64.npos) part.bad("a text has a byte that is not base64; restore the file");
    bits = (bits << 6) | static_cast<std::uint32_t>(digit);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    out += static_cast<char>(static_cast<unsigned char>((bits >> held) & 0xFF));
  }
  return out;
}

std::string base64_of_bytes(std::string_view bytes) {
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i)
      bits = bits << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    for (std::size_t i = 0; i < 4; ++i)
      out += at + i <= bytes.size() ? kBase64[(bits >> (18 - 6 * i)) & 63] : '=';
  }
  return out;
}

/// Each grapheme cluster of less than 6 bytes as a whole, else each of its characters: the shortest
/// rule that it begins with replaces all of it, whatever is behind. So the reference has it.
Normalizer make_precompiled(const JsonPart& part) {
  constexpr std::size_t kLongCluster = 6;
  const Charsmap map(bytes_of_base64(part.text("precompiled_charsmap"), part), part);
  return [map](NormalizedText& text) {
    std::string out;
    const std::string_view all = text.text;
    for (std::size_t at = 0; at < all.size();) {
      const std::string_view cluster = all.substr(at, grapheme_size(all.substr(at)));
      at += cluster.size();
      const Charsmap::Match whole =
          cluster.size() < kLongCluster ? map.shortest(cluster) : Charsmap::Match{};
      if (whole.size > 0) {
        out += whole.replacement;
        continue;
      }
      for (std::size_t i = 0; i < cluster.size();) {
        const std::size_t size =
            std::max<std::size_t>(1, static_cast<std::size_t>(code_point_at(cluster, i).size));
        const Charsmap::Match one = map.shortest(cluster.substr(i, size));
        out += one.size > 0 ? one.replacement : cluster.substr(i, size);
        i += size;
      }
    }
    text.text = std::move(out);
  };
}

}  // namespace tessera::tokenizer
