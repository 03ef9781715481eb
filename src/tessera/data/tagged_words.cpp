#include "tessera/data/tagged_words.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/files/conll_comments.h"
#include "tessera/files/json_fault.h"
#include "tessera/files/json_lines.h"
#include "tessera/files/other_kinds.h"
#include "tessera/files/unpack.h"
#include "tessera/tokenizers/json_part.h"

namespace tessera {

namespace {

using nlohmann::json;
using tokenizer::JsonPart;

constexpr std::string_view kBetweenDocuments = "-DOCSTART-";
constexpr const char* kWordKeys[] = {"tokens", "words"};
constexpr const char* kTagKeys[] = {"ner_tags", "tags", "pos_tags", "chunk_tags"};

std::string place_text(const LinePlace& place) {
  return text("'", *place.path, "' line ", place.line);
}

void require_utf8(std::string_view line, const LinePlace& place) {
  if (const std::size_t bad = find_invalid_utf8(line); bad != std::string_view::npos)
    fail(Fault::Data, place_text(place), ", byte ", bad + 1,
         " is not UTF-8; convert the file to UTF-8");
}

/// The last column of a line, which is all of a word's line where `none` have tags.
void add_tagged_word(const std::vector<std::string_view>& columns, bool none,
                     const LinePlace& place, TaggedSentence& sentence) {
  if (columns.size() < 2 && !none)
    fail(Fault::Data, place_text(place), " has one column, '",
         printable(columns.front().substr(0, 60)),
         "', where a word and its tag are expected; give each line a word and a tag, and an empty "
         "line ",
         "between sentences");
  if (none && columns.size() > 1)
    fail(Fault::Data, place_text(place), " has ", columns.size(),
         " columns, but the first word of the file has one; give all words tags, or none");
  sentence.words.emplace_back(columns.front());
  if (!none) sentence.tags.emplace_back(trim(columns.back()));
}

/// Files of CoNLL-U and GermEval, whose words are in the second column.
void refuse_numbered_words(const std::vector<TaggedSentence>& all, std::size_t columns) {
  const auto is_numbered = [](const TaggedSentence& sentence) {
    return sentence.words.front() == "1" || sentence.words.front().starts_with("1-");
  };
  const auto longest =
      std::ranges::max_element(all, {}, [](const TaggedSentence& s) { return s.words.size(); });
  if (columns < 3 || all.empty() || longest->words.size() < 2 || longest->words.back() == "1" ||
      !std::ranges::all_of(all, is_numbered))
    return;
  fail(
      Fault::Data, "'", all.front().path, "' line ", all.front().line,
      ": the first column numbers the words of each sentence, as in CoNLL-U and GermEval, but the ",
      "word must come first and its tag last; cut -f2,4 FILE keeps the second ",
      "and the fourth column");
}

std::vector<TaggedSentence> parse_conll(std::string_view bytes, const std::string& path,
                                        bool may_lack_tags) {
  std::vector<TaggedSentence> out;
  const ConllLines lines(bytes);
  bool within = false, words_alone = false;
  std::int64_t number = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t end = std::min(bytes.find('\n', at), bytes.size());
    const std::string_view line = trim(bytes.substr(at, end - at));
    at = end + 1;
    const LinePlace place{&path, ++number};
    if (line.empty() || starts_with(line, kBetweenDocuments)) {
      within = false;
      continue;
    }
    require_utf8(line, place);
    if (lines.is_comment(line, within, path, number)) continue;
    const std::vector<std::string_view> columns = conll_columns(line);
    if (out.empty()) words_alone = may_lack_tags && columns.size() == 1;
    if (!within) out.push_back({{}, {}, path, number});
    within = true;
    add_tagged_word(columns, words_alone, place, out.back());
  }
  refuse_numbered_words(out, lines.columns());
  return out;
}

std::string found_key(const json& object, std::span<const char* const> known, const char* what,
                      const LinePlace& place) {
  for (const char* const key : known) {
    if (object.contains(key)) return key;
  }
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  fail(Fault::Data, place_text(place), " has no key ", join(known, " or "), " with its ", what,
       keys.empty() ? text("; the object is empty")
                    : text("; its keys are ", column_names_text(keys)),
       "; give the key of the ", what);
}

/// Under `key`; where that is empty, under one of the usual.
bool has_tags(const json& object, const std::string& key) {
  if (!key.empty()) return object.contains(key);
  return std::ranges::any_of(kTagKeys, [&](const char* usual) { return object.contains(usual); });
}

std::vector<std::string> list_of(const json& object, const std::string& key,
                                 const LinePlace& place) {
  const auto found = object.find(key);
  if (found == object.end())
    fail(Fault::Data, place_text(place), " has no key '", printable(key),
         "', which is a list in other lines; give it to every line");
  std::vector<std::string> out;
  const auto bad = [&](const json& value) {
    fail(Fault::Data, place_text(place), ": key '", printable(key), "' is ",
         printable(JsonPart::shown(value)), " where a list of texts or whole numbers is expected");
  };
  if (!found->is_array()) bad(*found);
  for (const json& item : *found) {
    if (!item.is_string() && !item.is_number_integer()) bad(item);
    out.push_back(item.is_string() ? item.get<std::string>() : item.dump());
  }
  return out;
}

std::vector<std::string> tags_of(const json& object, const std::string& key,
                                 const LinePlace& place) {
  std::vector<std::string> out = list_of(object, key, place);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = std::string(trim(out[i]));
    if (out[i].empty())
      fail(Fault::Data, place_text(place), ": tag ", i + 1, " of '", printable(key),
           "' is empty; give each word a tag, like O");
    if (out[i] == "-100")
      fail(Fault::Data, place_text(place), ": tag ", i + 1, " of '", printable(key),
           "' is -100, which other programs use for no tag; give each word a tag");
  }
  return out;
}

json object_in_line(std::string_view line, const LinePlace& place) {
  require_utf8(line, place);
  json out = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (out.is_discarded())
    fail(Fault::Data, place_text(place), ": ",
         json_fault(line,
                    "an object in each line, like {\"tokens\": [\"EU\"], \"ner_tags\": "
                    "[\"B-ORG\"]}"));
  if (!out.is_object())
    fail(Fault::Data, place_text(place),
         " is not a JSON object; give a file with an object in each ",
         "line, like {\"tokens\": [\"EU\"], \"ner_tags\": [\"B-ORG\"]}");
  return out;
}

std::vector<TaggedSentence> parse_json_lines(std::string_view bytes, const std::string& path,
                                             TaggedWordsOptions keys) {
  std::vector<TaggedSentence> out;
  std::optional<bool> words_alone;
  const LineBlock block{std::string(bytes), &path, 1};
  for_each_line(block, [&](std::string_view line, const LinePlace& place) {
    const json object = object_in_line(line, place);
    if (keys.words_key.empty()) keys.words_key = found_key(object, kWordKeys, "words", place);
    if (!words_alone) words_alone = keys.may_lack_tags && !has_tags(object, keys.tags_key);
    if (*words_alone) {
      if (has_tags(object, keys.tags_key))
        fail(Fault::Data, place_text(place), " has tags, but the first object of the file has ",
             "none; give all sentences tags, or none");
      TaggedSentence sentence{list_of(object, keys.words_key, place), {}, path, place.line};
      if (!sentence.words.empty()) out.push_back(std::move(sentence));
      return;
    }
    if (keys.tags_key.empty()) keys.tags_key = found_key(object, kTagKeys, "tags", place);
    TaggedSentence sentence{list_of(object, keys.words_key, place),
                            tags_of(object, keys.tags_key, place), path, place.line};
    if (sentence.words.size() != sentence.tags.size())
      fail(Fault::Data, place_text(place), " has ", counted(std::ssize(sentence.words), "word"),
           " in '", printable(keys.words_key), "' and ", counted(std::ssize(sentence.tags), "tag"),
           " in '", printable(keys.tags_key), "'; give each word a tag");
    if (!sentence.words.empty()) out.push_back(std::move(sentence));
  });
  return out;
}

}  // namespace

std::vector<TaggedSentence> parse_tagged_words(std::string_view bytes, const std::string& path,
                                               const TaggedWordsOptions& options) {
  refuse_other_kind(bytes, path);
  if (bytes.starts_with(kByteOrderMark)) bytes.remove_prefix(kByteOrderMark.size());
  std::vector<TaggedSentence> out =
      (options.format ? options.format : table_format(path)) == TableFormat::JsonLines
          ? parse_json_lines(bytes, path, options)
          : parse_conll(bytes, path, options.may_lack_tags);
  if (out.empty())
    fail(Fault::Data, "'", path, "' has no sentence; give a file with a word and its tag on each ",
         "line, or a .jsonl file of JSON lines");
  return out;
}

std::vector<TaggedSentence> read_tagged_words(const std::string& path,
                                              const TaggedWordsOptions& options) {
  return parse_tagged_words(read_contents(path), path, options);
}

}  // namespace tessera
