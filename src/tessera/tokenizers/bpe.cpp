#include "tessera/tokenizers/bpe.h"

#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/tokenizers/byte_tokens.h"
#include "tessera/tokenizers/text_pieces.h"

namespace tessera {

namespace {

constexpr std::int32_t kNone = -1;

}  // namespace

Bpe::Bpe() : tokens_(kByteTokens) {
  for (int byte = 0; byte < kByteTokens; ++byte) {
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
           "', is not two tokens known before it");
    if (!out.add(left, right))
      fail(Fault::Data, "merge ", number, ", '", line.substr(0, 60), "', is a duplicate");
  }
  return out;
}

std::vector<std::int32_t> Bpe::encode(std::string_view text) const {
  std::vector<std::int32_t> out;
  out.reserve(text.size() / 3);
  MergeScratch scratch;
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
