#include "tessera/tokenizers/bpe.h"

#include <array>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/tokenizers/text_pieces.h"

namespace tessera {

namespace {

constexpr std::int32_t kNone = -1;

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
  static constexpr std::int32_t kMost = 256 + 68;
  static constexpr auto kByte = [] {
    std::array<std::int32_t, kMost> out{};
    for (std::int32_t& byte : out) byte = kNone;
    for (std::int32_t byte = 0; byte < 256; ++byte)
      out[kByteNames.character[static_cast<std::size_t>(byte)]] = byte;
    return out;
  }();
  const std::size_t before = bytes.size();
  for (std::size_t at = 0; at < printed.size();) {
    const CodePoint c = code_point_at(printed, at);
    if (c.size == 0 || c.value >= kMost || kByte[c.value] == kNone) {
      bytes.resize(before);
      return false;
    }
    bytes += static_cast<char>(static_cast<unsigned char>(kByte[c.value]));
    at += static_cast<std::size_t>(c.size);
  }
  return true;
}

Bpe::Bpe() : tokens_(kBytes) {
  for (int byte = 0; byte < kBytes; ++byte) {
    const std::string token(1, static_cast<char>(static_cast<unsigned char>(byte)));
    const std::int32_t id = id_of_byte(static_cast<unsigned char>(byte));
    tokens_[static_cast<std::size_t>(id)] = token;
    ids_.emplace(token, id);
  }
}

bool Bpe::add(std::int32_t left, std::int32_t right) {
  if (table_.find(left, right) != nullptr) return false;
  std::string spelled = token(left) + token(right);
  const auto [at, added] = ids_.emplace(spelled, static_cast<std::int32_t>(tokens_.size()));
  if (added) tokens_.push_back(std::move(spelled));
  table_.add(left, right, {static_cast<std::int32_t>(merges_.size()), at->second});
  merges_.push_back({left, right, at->second});
  return true;
}

std::string Bpe::merges_text() const {
  std::string out;
  for (const Merge& merge : merges_) {
    for (const std::int32_t id : {merge.left, merge.right}) {
      for (const char c : token(id)) append_utf8(out, printed_byte(static_cast<unsigned char>(c)));
      out += ' ';
    }
    out.back() = '\n';
  }
  return out;
}

Bpe Bpe::from_merges_text(std::string_view lines) {
  Bpe out;
  std::int64_t number = 0;
  while (!lines.empty()) {
    ++number;
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    const std::size_t blank = line.find(' ');
    const auto id_of = [&](std::string_view printed) {
      std::string bytes;
      const auto at = append_printed_bytes(printed, bytes) ? out.ids_.find(bytes) : out.ids_.end();
      return at == out.ids_.end() ? kNone : at->second;
    };
    const std::int32_t left = id_of(line.substr(0, blank)),
                       right = blank == line.npos ? kNone : id_of(line.substr(blank + 1));
    if (left == kNone || right == kNone)
      fail(Fault::Data, "merge ", number, ", '", line.substr(0, 60),
           "', is not two tokens that are known before it");
    if (!out.add(left, right))
      fail(Fault::Data, "merge ", number, ", '", line.substr(0, 60), "', is there before");
  }
  return out;
}

std::vector<std::int32_t> Bpe::encode(std::string_view text) const {
  std::vector<std::int32_t> out;
  out.reserve(text.size() / 3);
  MergeTable::Scratch scratch;
  std::unordered_map<std::string_view, std::pair<std::size_t, std::size_t>> before;  // in `out`
  while (!text.empty()) {
    const std::string_view piece = take_piece(text);
    const auto [known, added] = before.try_emplace(piece, out.size(), 0);
    auto& [begin, count] = known->second;
    if (added) {
      for (const char c : piece) out.push_back(id_of_byte(static_cast<unsigned char>(c)));
      table_.apply(out, begin, scratch);
      count = out.size() - begin;
    } else {
      for (std::size_t i = 0; i < count; ++i) out.push_back(out[begin + i]);
    }
  }
  return out;
}

}  // namespace tessera
