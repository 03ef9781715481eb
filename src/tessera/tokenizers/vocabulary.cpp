#include "tessera/tokenizers/vocabulary.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/tokenizers/bpe.h"
#include "tessera/tokenizers/byte_tokens.h"
#include "tessera/tokenizers/recorded_files.h"

namespace tessera {

namespace {

constexpr int kVersion = 1;
constexpr std::size_t kMaxNamed = 8;

/// By code point up to the largest known; -1: unknown.
using KnownIds = std::vector<std::int32_t>;
using tokenizer::files_of_json;
using tokenizer::json_of_files;
bool is_known(const KnownIds& ids, char32_t c) { return c < ids.size() && ids[c] >= 0; }
[[noreturn]] void fail_unknown(const Vocabulary& vocabulary, const KnownIds& ids,
                               std::string_view utf8, std::size_t offset);
std::u32string sorted_distinct(std::string_view utf8);
constexpr std::string_view kBlanksBetweenIds = " \t\n\r";

}  // namespace

Vocabulary Vocabulary::bytes() { return {VocabularyKind::Bytes, {}}; }

Vocabulary Vocabulary::characters(std::string_view utf8) {
  if (utf8.empty())
    fail(Fault::Data,
         "an empty text has no characters to make a vocabulary of; give a longer text");
  return {VocabularyKind::Characters, sorted_distinct(utf8)};
}

Vocabulary Vocabulary::bpe(std::string_view utf8, std::int64_t size) {
  return Vocabulary(Bpe::learn(utf8, size));
}

Vocabulary Vocabulary::tokenizer(Tokenizer made) {
  Vocabulary out(VocabularyKind::Tokenizer, {});
  out.tokenizer_ = std::move(made);
  return out;
}

Vocabulary Vocabulary::ids(std::int64_t size) {
  require(size >= 1 && size <= std::numeric_limits<int>::max(), "a vocabulary of ", size,
          " ids; give 1 to ", std::numeric_limits<int>::max());
  Vocabulary out(VocabularyKind::Ids, {});
  out.num_ids_ = static_cast<int>(size);
  return out;
}

std::vector<std::int32_t> ids_in_text(std::string_view text, std::int64_t below) {
  std::vector<std::int32_t> out;
  for (std::size_t at = text.find_first_not_of(kBlanksBetweenIds); at != std::string_view::npos;
       at = text.find_first_not_of(kBlanksBetweenIds, at)) {
    const std::size_t end = std::min(text.find_first_of(kBlanksBetweenIds, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    std::int64_t id = -1;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || stop != word.data() + word.size() || id < 0 || id >= below)
      fail(Fault::Data, "word '", printable(word.substr(0, 40)), "' at byte ", at,
           " of the text is not an id from 0 to ", below - 1,
           "; give ids separated by blanks, like ", "\"17 4 250\"");
    out.push_back(static_cast<std::int32_t>(id));
    at = end;
  }
  return out;
}

Vocabulary Vocabulary::of(const VocabularyChoice& choice, std::string_view utf8) {
  if (choice.kind == VocabularyKind::Tokenizer) return tokenizer(load_tokenizer(choice.tokenizer));
  if (choice.kind == VocabularyKind::Bpe) return bpe(utf8, choice.size);
  return choice.kind == VocabularyKind::Bytes ? bytes() : characters(utf8);
}

Vocabulary::Vocabulary(VocabularyKind kind, std::u32string characters)
    : kind_(kind), characters_(std::move(characters)) {
  if (!characters_.empty()) id_of_.assign(characters_.back() + 1, -1);
  for (std::size_t i = 0; i < characters_.size(); ++i)
    id_of_[characters_[i]] = static_cast<std::int32_t>(i);
}

Vocabulary::Vocabulary(Bpe learned)
    : kind_(VocabularyKind::Bpe), bpe_(std::make_shared<const Bpe>(std::move(learned))) {}

bool operator==(const Vocabulary& a, const Vocabulary& b) {
  if (a.kind_ != b.kind_ || a.characters_ != b.characters_ || a.num_ids_ != b.num_ids_)
    return false;
  if (a.bpe_ && *a.bpe_ != *b.bpe_) return false;
  return !a.tokenizer_ || a.tokenizer_->files() == b.tokenizer_->files();
}

std::optional<PairTokens> Vocabulary::pair_tokens() const {
  if (!tokenizer_) return std::nullopt;
  const SpecialTokens& has = tokenizer_->special_tokens();
  const std::optional<std::int32_t> begin = has.cls ? has.cls : has.bos,
                                    end = has.sep ? has.sep : has.eos;
  if (!has.pad || !begin || !end || !has.mask) return std::nullopt;
  return PairTokens{*has.pad, *begin, *end, *has.mask};
}

int Vocabulary::size() const {
  if (tokenizer_) return tokenizer_->size();
  if (bpe_) return static_cast<int>(bpe_->size());
  if (kind_ == VocabularyKind::Ids) return num_ids_;
  return kind_ == VocabularyKind::Bytes ? static_cast<int>(kByteTokens)
                                        : static_cast<int>(characters_.size());
}

std::vector<std::int32_t> Vocabulary::encode(std::string_view utf8) const {
  if (bpe_) return bpe_->encode(utf8);
  if (tokenizer_) return tokenizer_->encode(utf8, {.add_special_tokens = false});
  if (kind_ == VocabularyKind::Ids) return ids_in_text(utf8, num_ids_);
  std::vector<std::int32_t> ids;
  ids.reserve(utf8.size());
  if (kind_ == VocabularyKind::Bytes) {
    for (const char c : utf8) ids.push_back(static_cast<unsigned char>(c));
    return ids;
  }
  for (std::size_t at = 0; at < utf8.size();) {
    const CodePoint c = code_point_at(utf8, at);
    if (c.size == 0 || !is_known(id_of_, c.value)) fail_unknown(*this, id_of_, utf8, at);
    ids.push_back(id_of_[c.value]);
    at += static_cast<std::size_t>(c.size);
  }
  return ids;
}

SpannedIds Vocabulary::encode_spans(std::string_view utf8) const {
  if (tokenizer_) return tokenizer_->encode_spans(utf8);
  SpannedIds out{encode(utf8), {}};
  std::int64_t at = 0;
  for (const std::int32_t id : out.ids) {
    const std::int64_t end = at + std::ssize(decode({&id, 1}));
    out.spans.push_back({at, end});
    at = end;
  }
  return out;
}

std::string Vocabulary::decode(std::span<const std::int32_t> ids) const {
  if (tokenizer_) return tokenizer_->decode(ids);
  std::string out;
  for (const std::int32_t id : ids) {
    if (kind_ == VocabularyKind::Ids) {
      out += text(" ", id);
    } else if (id < 0 || id >= size()) {
      append_utf8(out, U'\uFFFD');
    } else if (bpe_) {
      out += bpe_->token(id);
    } else if (kind_ == VocabularyKind::Bytes) {
      out += static_cast<char>(static_cast<unsigned char>(id));
    } else {
      append_utf8(out, characters_[static_cast<std::size_t>(id)]);
    }
  }
  return out;
}

std::string Vocabulary::decode_text(std::span<const std::int32_t> ids) const {
  return replaced_utf8(decode(ids));
}

std::string Vocabulary::to_json() const {
  nlohmann::ordered_json out = {{"format", "tessera vocabulary"},
                                {"version", kVersion},
                                {"kind", to_text(kind_)},
                                {"size", size()}};
  if (kind_ == VocabularyKind::Characters) {
    std::string all;
    for (const char32_t c : characters_) append_utf8(all, c);
    out["characters"] = all;
  }
  if (bpe_) out["merges"] = bpe_->merges_text();
  if (tokenizer_) out["files"] = json_of_files(tokenizer_->files());
  return out.dump() + "\n";
}

Vocabulary Vocabulary::from_json(std::string_view json, const std::string& where) {
  const auto bad = [&](const auto&... parts) {
    fail(Fault::Checkpoint, "vocabulary '", where, "': ", parts...,
         "; restore the file, or make it again from the model's training text");
  };
  const nlohmann::json in = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!in.is_object()) bad("not a vocabulary file");
  // Neither copied nor shown where it is a list or an object: it may be nested deeper than a stack.
  const nlohmann::json none;
  const auto field = [&](const char* key) -> const nlohmann::json& {
    const auto found = in.find(key);
    return found == in.end() || found->is_structured() ? none : *found;
  };
  if (field("format") != "tessera vocabulary") bad("not a vocabulary file");
  if (field("version") != kVersion)
    bad("version is ", field("version").dump(), " but this program reads ", kVersion);
  if (field("kind") == to_text(VocabularyKind::Bytes)) {
    const Vocabulary out = bytes();
    if (field("size") != out.size())
      bad("it says size ", field("size").dump(), " but there are ", out.size(), " bytes");
    return out;
  }
  if (field("kind") == to_text(VocabularyKind::Ids)) {
    const nlohmann::json& size = field("size");
    if (!size.is_number_unsigned() || size.get<std::uint64_t>() < 1 ||
        size.get<std::uint64_t>() > std::numeric_limits<int>::max())
      bad("its size ", size.dump(), " is not a number of ids");
    return ids(size.get<std::int64_t>());
  }
  if (field("kind") == to_text(VocabularyKind::Bpe)) {
    if (!field("merges").is_string()) bad("it has no \"merges\"");
    try {
      Vocabulary out(Bpe::from_merges_text(field("merges").get_ref<const std::string&>()));
      if (field("size") == out.size()) return out;
      bad("it says size ", field("size").dump(), " but has merges for ", out.size(), " tokens");
    } catch (const Error& error) {
      if (error.fault() == Fault::Checkpoint) throw;
      bad(error.what());
    }
  }
  if (field("kind") == to_text(VocabularyKind::Tokenizer)) {
    try {
      const auto files = in.find("files");
      Vocabulary out =
          tokenizer(Tokenizer::of(files_of_json(files == in.end() ? none : *files), where));
      if (field("size") == out.size()) return out;
      bad("it says size ", field("size").dump(), " but its tokenizer has ids up to ",
          out.size() - 1);
    } catch (const Error& error) {
      if (error.fault() == Fault::Checkpoint) throw;
      bad(error.what());
    }
  }
  if (field("kind") != to_text(VocabularyKind::Characters))
    bad("kind ", field("kind").dump(),
        " is none of \"bytes\", \"characters\", \"bpe\", \"tokenizer\" and \"ids\"");
  if (!field("characters").is_string()) bad("it has no \"characters\"");
  const std::string& utf8 = field("characters").get_ref<const std::string&>();
  // The ids are the order of the characters, so a file in another order belongs to another model.
  std::u32string characters;
  for (std::size_t at = 0; at < utf8.size();) {
    const CodePoint c = code_point_at(utf8, at);
    if (c.size == 0 || (at > 0 && c.value <= characters.back()))
      bad("its characters are not distinct and in the order of their code points");
    characters += c.value;
    at += static_cast<std::size_t>(c.size);
  }
  if (characters.empty()) bad("it has no \"characters\"");
  if (field("size") != characters.size())
    bad("it says size ", field("size").dump(), " but holds ", characters.size(), " characters");
  return {VocabularyKind::Characters, std::move(characters)};
}

std::string_view to_text(VocabularyKind kind) {
  constexpr std::string_view kNames[] = {"bytes", "characters", "bpe", "tokenizer", "ids"};
  return kNames[static_cast<std::size_t>(kind)];
}

namespace {

std::u32string sorted_distinct(std::string_view utf8) {
  std::u32string out;
  std::vector<bool> seen;  // by code point, up to the largest
  for (std::size_t at = 0; at < utf8.size();) {
    const CodePoint c = code_point_at(utf8, at);
    if (c.size == 0) {
      fail(Fault::Data, "byte ", at,
           " of the text is not UTF-8; convert it, or use the byte vocabulary");
    }
    if (c.value >= seen.size()) seen.resize(c.value + 1);
    if (!seen[c.value]) out += c.value;
    seen[c.value] = true;
    at += static_cast<std::size_t>(c.size);
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// "'é', U+00E9", or the number alone where it is a control.
std::string shown_character(char32_t c) {
  if (c < 0x20 || c == 0x7F) return code_point_text(c);
  std::string bytes;
  append_utf8(bytes, c);
  return text("'", bytes, "', ", code_point_text(c));
}

/// ", nor are 'é', U+00E9; 'ü', U+00FC and 3 more": what else of the text it lacks, or "".
std::string others_unknown(const KnownIds& ids, std::string_view utf8, char32_t first) {
  std::set<char32_t> others;
  for (std::size_t at = 0; at < utf8.size();) {
    const CodePoint c = code_point_at(utf8, at);
    if (c.size == 0) break;
    if (c.value != first && !is_known(ids, c.value)) others.insert(c.value);
    at += static_cast<std::size_t>(c.size);
  }
  if (others.empty()) return "";
  std::vector<std::string> named;
  for (const char32_t c : others) {
    if (named.size() < kMaxNamed) named.push_back(shown_character(c));
  }
  return text(others.size() == 1 ? ", nor is " : ", nor are ", join(named, "; "),
              others.size() > kMaxNamed ? text(" and ", others.size() - kMaxNamed, " more") : "");
}

void fail_unknown(const Vocabulary& vocabulary, const KnownIds& ids, std::string_view utf8,
                  std::size_t offset) {
  const CodePoint c = code_point_at(utf8, offset);
  const std::string place = text("character ", count_characters(utf8.substr(0, offset)), " (byte ",
                                 offset, ") of the text");
  if (c.size == 0) fail(Fault::Data, place, " is not UTF-8; convert the text");
  fail(Fault::Data, place, ", ", shown_character(c.value), ", is not in the vocabulary of ",
       vocabulary.size(), " characters", others_unknown(ids, utf8.substr(offset), c.value),
       "; remove it, or train on a text that has it");
}

}  // namespace

}  // namespace tessera
