#pragma once
/// A tokenizer.json of a few words, for runs from columns of tables.

#include <nlohmann/json.hpp>
#include <string>

#include "tessera/base/text.h"

namespace tessera {

/// "what", "is", "it", "and", and numbers below 50, with [CLS] and [SEP] around texts, as BERT's.
inline std::string word_tokenizer() {
  using nlohmann::json;
  json vocabulary = {{"[PAD]", 0}, {"[UNK]", 1}, {"[CLS]", 2}, {"[SEP]", 3}, {"what", 4}};
  for (const char* word : {"is", "it", "and"}) vocabulary[word] = vocabulary.size();
  for (int i = 0; i < 50; ++i) vocabulary[text(i)] = vocabulary.size();
  const auto special = [](const char* token, int type) {
    return json{{"SpecialToken", {{"id", token}, {"type_id", type}}}};
  };
  const json a = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
             b = {{"Sequence", {{"id", "B"}, {"type_id", 1}}}};
  json out = {{"version", "1.0"},
              {"pre_tokenizer", {{"type", "Whitespace"}}},
              {"model", {{"type", "WordLevel"}, {"vocab", vocabulary}, {"unk_token", "[UNK]"}}}};
  out["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", {special("[CLS]", 0), a, special("[SEP]", 0)}},
      {"pair", {special("[CLS]", 0), a, special("[SEP]", 0), b, special("[SEP]", 1)}},
      {"special_tokens",
       {{"[CLS]", {{"id", "[CLS]"}, {"ids", {2}}, {"tokens", {"[CLS]"}}}},
        {"[SEP]", {{"id", "[SEP]"}, {"ids", {3}}, {"tokens", {"[SEP]"}}}}}}};
  return out.dump();
}

}  // namespace tessera
