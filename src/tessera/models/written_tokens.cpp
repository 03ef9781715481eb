#include "tessera/models/written_tokens.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

namespace tessera {

namespace {

/// A new line where the vocabulary has it; else what a tokenizer begins texts with.
std::int32_t start_token(const Vocabulary& vocabulary) {
  try {
    const Tokens newline = vocabulary.encode("\n");
    if (!newline.empty()) return newline.front();
    const Tokenizer* made = vocabulary.made_elsewhere();
    if (made == nullptr) return 0;  // ids that are written as numbers have none
    const SpecialTokens& special = made->special_tokens();
    return special.bos.value_or(special.cls.value_or(0));
  } catch (const Error&) {
    return 0;
  }
}

}  // namespace

Beginning beginning_of(const TextWriting& writing, const Vocabulary& vocabulary, Tokens text) {
  Beginning out;
  if (writing.source > 0) {
    out.source = std::move(text);
    if (writing.first) out.source.insert(out.source.begin(), *writing.first);
    if (writing.end) out.source.push_back(*writing.end);
  } else {
    out.prompt = std::move(text);
  }
  if (writing.first) out.prompt.insert(out.prompt.begin(), *writing.first);
  if (writing.start) out.prompt.insert(out.prompt.begin(), *writing.start);
  if (out.prompt.empty()) out.prompt.push_back(start_token(vocabulary));
  return out;
}

WrittenTokens::WrittenTokens(const Vocabulary& of, const TextWriting& writing)
    : vocabulary(static_cast<std::int32_t>(of.size())), end(writing.end) {
  for (const char& letter : writing.never) {
    try {
      const Tokens ids = of.encode({&letter, 1});
      if (of.decode(ids) == std::string_view(&letter, 1))  // to a tokenizer it may be a blank
        never.insert(never.end(), ids.begin(), ids.end());
    } catch (const Error&) {  // the vocabulary lacks it
    }
  }
  // Special tokens may be among the vocabulary's own.
  if (writing.source > 0) never.push_back(writing.pad);
  for (const std::optional<std::int32_t>& special : {writing.start, writing.first, writing.end})
    if (special) never.push_back(*special);
  std::erase_if(never, [&](std::int32_t id) { return id >= vocabulary; });
}

std::vector<double> WrittenTokens::choices(std::vector<double> logits) const {
  const std::optional<double> of_end =
      end ? std::optional(logits[static_cast<std::size_t>(*end)]) : std::nullopt;
  logits.resize(std::min(logits.size(), static_cast<std::size_t>(vocabulary)));
  for (const std::int32_t id : never)
    logits[static_cast<std::size_t>(id)] = -std::numeric_limits<double>::infinity();
  if (of_end) logits.push_back(*of_end);
  return logits;
}

}  // namespace tessera
