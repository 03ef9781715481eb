#pragma once
/// Tokenizers of other programs, as users have them on disk: text to the same token ids.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/tokenizers/text_frame.h"

namespace tessera {

/// The files that make a tokenizer, by what they are: "tokenizer.json", "tokenizer_config.json",
/// "special_tokens_map.json", "vocab.txt", "vocab.json", "merges.txt", "tokenizer.model",
/// "chat_template.jinja".
using TokenizerFiles = std::map<std::string, std::string>;

/// Ids of tokens with a role. Those that `tokenizer_config.json` and `special_tokens_map.json`
/// name; without these, special tokens with the usual names, as [CLS] or </s>.
struct SpecialTokens {
  std::optional<std::int32_t> pad, unk, cls, sep, mask, bos, eos;
  friend bool operator==(const SpecialTokens&, const SpecialTokens&) = default;
};

struct EncodeOptions {
  /// Special tokens stand around the text, as the post-processor says.
  bool add_special_tokens = true;
  /// Special tokens that are spelled in the text become their ids; else they are text as any other.
  bool find_special_tokens = true;
};

/// Ids, and of each to which text of a pair it belongs.
struct Encoding {
  std::vector<std::int32_t> ids, type_ids;
};

/// Bytes [begin, end) of a text.
struct ByteSpan {
  std::int64_t begin = 0, end = 0;
  friend bool operator==(const ByteSpan&, const ByteSpan&) = default;
};

/// Ids, and of each the part of the text that it stands for.
struct SpannedIds {
  std::vector<std::int32_t> ids;
  std::vector<ByteSpan> spans;
};

/// A tokenizer that was made by another program. A plain value that never changes; several threads
/// may use it at a time.
///
/// Ids equal those of the Hugging Face library `tokenizers`; tests/golden/README.md says how that
/// was compared, docs/reference/tokenizers.md what is left out. Bytes that are not UTF-8 are U+FFFD,
/// as replaced_utf8() has it.
class Tokenizer {
 public:
  /// Reads a file, or of a folder what is there first: tokenizer.json; vocab.txt of BERT;
  /// vocab.json and merges.txt of GPT-2; a .model of SentencePiece. Nothing is fetched from
  /// anywhere. Errors: Fault::Data: no such file; one that is damaged, with the place; parts that
  /// this program does not have, by their names.
  static Tokenizer load(const std::string& path);
  /// Whether a folder has the files of one.
  static bool is_in(const std::string& folder);
  /// Of files that were read before; `where` names them in messages.
  static Tokenizer of(TokenizerFiles files, const std::string& where);

  const TokenizerFiles& files() const;
  /// What a user should know: settings of the files that are not used.
  const std::vector<std::string>& notices() const;

  std::vector<std::int32_t> encode(std::string_view text, const EncodeOptions& options = {}) const;
  Encoding encode_pair(std::string_view first, std::string_view second,
                       const EncodeOptions& options = {}) const;
  /// What its post-processor puts around one text and around two, and which end of a text is cut.
  /// Errors: Fault::Data: a text is not there, or there twice.
  TextFrame frame() const;
  /// encode() of each text, by so many threads.
  std::vector<std::vector<std::int32_t>> encode_batch(std::span<const std::string> texts,
                                                      int threads,
                                                      const EncodeOptions& options = {}) const;

  /// encode() of a text without special tokens around it, and where each token stands: from the
  /// first to the last character that it has a part of, blanks at both ends left out. What stands
  /// for nothing in the text, as a blank before its first word, has no bytes. The places are those
  /// of tokenizers (its trim_offsets is on), where a normalizer changes one character at a time.
  /// Errors: Fault::Data: text that is not UTF-8; a normalizer that cannot be followed.
  SpannedIds encode_spans(std::string_view text) const;

  /// The text of ids. Ids that no token has are passed over, as the reference does.
  std::string decode(std::span<const std::int32_t> ids, bool skip_special_tokens = false) const;

  /// One above the greatest id: the rows that a model's table needs.
  std::int32_t size() const;
  std::optional<std::int32_t> id_of(std::string_view token) const;
  std::optional<std::string> token(std::int32_t id) const;
  bool is_special(std::int32_t id) const;
  const SpecialTokens& special_tokens() const;

 private:
  struct Parts;
  explicit Tokenizer(std::shared_ptr<const Parts> parts);
  std::shared_ptr<const Parts> parts_;
};

}  // namespace tessera
