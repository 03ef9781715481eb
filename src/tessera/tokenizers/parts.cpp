#include "tessera/tokenizers/parts.h"

#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/tokenizers/normalizers.h"

namespace tessera {

namespace {

constexpr std::int64_t kLongestWord = std::int64_t{1} << 30;  // places in it are 32-bit numbers

}  // namespace

using tokenizer::Ids;
using tokenizer::Piece;

void Tokenizer::Parts::append(std::string_view text, const EncodeOptions& options, Scratch& scratch,
                              Ids& out) const {
  std::string repaired;
  if (find_invalid_utf8(text) != std::string_view::npos) {
    repaired = replaced_utf8(text);
    text = repaired;
  }
  const auto on_token = [&](std::int32_t id, std::size_t, std::size_t) { out.push_back(id); };
  const bool find = options.find_special_tokens;
  added.split(
      text, false, find,
      [&](std::size_t begin, std::size_t end) {
        tokenizer::NormalizedText part{std::string(text.substr(begin, end - begin))};
        if (normalizer) normalizer(part);
        added.split(
            part.text, true, find,
            [&](std::size_t from, std::size_t to) {
              append_piece({std::string_view(part.text).substr(from, to - from),
                            begin == 0 && from == 0 && part.keeps_start},
                           scratch, out);
            },
            on_token);
      },
      on_token);
}

void Tokenizer::Parts::append_piece(const Piece& piece, Scratch& scratch, Ids& out) const {
  if (!pre_tokenizer.split) return append_word(piece.text, scratch, out);
  pre_tokenizer.split(piece, [&](const Piece& word) { append_word(word.text, scratch, out); });
}

void Tokenizer::Parts::append_word(std::string_view word, Scratch& scratch, Ids& out) const {
  if (word.empty()) return;
  if (std::ssize(word) > kLongestWord)
    fail(Fault::Data, "a piece of ", bytes_text(std::ssize(word)),
         " would be encoded at once, but the maximum is ", bytes_text(kLongestWord),
         "; give several texts, or a tokenizer that splits them");
  const auto from_model = [&] {
    if (!pre_tokenizer.prints) return model->encode(word, scratch.model, out);
    scratch.printed.clear();
    tokenizer::print_bytes(word, scratch.printed);
    model->encode(scratch.printed, scratch.model, out);
  };
  if (word.size() > tokenizer::WordCache::kLongest) return from_model();
  const std::uint64_t hash = hash64(word);
  if (scratch.words.append(word, hash, out)) return;
  const std::size_t before = out.size();
  from_model();
  scratch.words.add(word, hash, std::span<const std::int32_t>(out).subspan(before));
}

void Tokenizer::Parts::fill(const tokenizer::Template& form,
                            std::span<const std::string_view> texts, const EncodeOptions& options,
                            Scratch& scratch, Ids& out, Ids* types) const {
  for (const tokenizer::TemplatePart& part : form) {
    if (part.text >= 0) {
      append(texts[static_cast<std::size_t>(part.text)], options, scratch, out);
    } else if (options.add_special_tokens) {
      out.push_back(part.id);
    }
    if (types != nullptr) types->resize(out.size(), part.type);
  }
}

std::unique_ptr<Tokenizer::Parts::Scratch> Tokenizer::Parts::take_scratch() const {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return std::make_unique<Scratch>();
  std::unique_ptr<Scratch> out = std::move(free_.back());
  free_.pop_back();
  return out;
}

void Tokenizer::Parts::give_back(std::unique_ptr<Scratch> scratch) const {
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(scratch));
}

}  // namespace tessera
