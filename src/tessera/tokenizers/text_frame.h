#pragma once
/// What stands around the one or two texts of a sample: [CLS] A [SEP] B [SEP], and the like.

#include <cstdint>
#include <span>
#include <vector>

namespace tessera {

/// A text, or a token.
struct FramePart {
  int text = -1;          // 0: the first text, 1: the second, -1: the token `id`
  std::int32_t id = 0;    // of a token
  std::int32_t type = 0;  // of its tokens, for models that tell texts apart by it
  friend bool operator==(const FramePart&, const FramePart&) = default;
};

struct TextFrame {
  std::vector<FramePart> single = {{.text = 0}};  // of one text
  std::vector<FramePart> pair = {{.text = 0}, {.text = 1, .type = 1}};
  bool keeps_end = false;  // texts that are too long lose their beginning, not their end

  const std::vector<FramePart>& of(std::size_t texts) const { return texts == 1 ? single : pair; }
  /// It has tokens of its own.
  bool adds_tokens() const;
  /// Tokens that stand around so many texts, 1 or 2.
  std::int64_t around(std::size_t texts) const;
};

/// [CLS] A [SEP] and [CLS] A [SEP] B [SEP], whose second part has type 1; with `doubled`, as
/// RoBERTa's, A [SEP] [SEP] B without types.
TextFrame text_frame(std::int32_t cls, std::int32_t sep, bool doubled);

/// How many tokens are kept of each of two texts, so that both fit into `room`: the longer one is
/// cut, and where both are longer than half of it, both to that. Source: the strategy longest_first
/// of Hugging Face's tokenizers, truncate_encodings in src/utils/truncation.rs.
struct KeptTokens {
  std::int64_t first = 0, second = 0;
};
KeptTokens longest_first(std::int64_t first, std::int64_t second, std::int64_t room);

/// The tokens of a sample, and their types.
struct FramedTexts {
  std::vector<std::int32_t> ids, types;
};
/// `texts` are one or two; they are cut to `room` tokens with those around, which fit.
FramedTexts framed(const TextFrame& frame, std::span<const std::span<const std::int32_t>> texts,
                   std::int64_t room);

}  // namespace tessera
