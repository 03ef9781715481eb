#include "tessera/data/unknown_tokens.h"

#include <algorithm>

#include "tessera/base/format.h"
#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/data/question_rows.h"

namespace tessera {

std::string notice_of_unknown_tokens(const Dataset& data) {
  const Tokenizer* const made = data.vocabulary.made_elsewhere();
  if (made == nullptr) return "";
  const SpecialTokens& has = made->special_tokens();
  // That of GPT-2 ends documents, too.
  if (!has.unk || has.unk == has.eos || has.unk == has.bos) return "";
  std::int64_t all = 0, unknown = 0;
  const auto count = [&](std::span<const std::int32_t> ids) {
    all += std::ssize(ids);
    unknown += std::ranges::count(ids, *has.unk);
  };
  const std::vector<TextFile>* files = nullptr;
  if (const Texts* const texts = data.find_texts()) {
    count(texts->tokens.all());
    files = &texts->files;
  }
  if (const EncodedQuestions* const questions = data.questions()) {
    for (const EncodedQuestions::Context& context : questions->contexts) count(context.tokens.ids);
    for (const EncodedQuestions::Entry& entry : questions->all) count(entry.ids);
    files = &questions->files;
  }
  if (2 * unknown <= all) return "";
  return text(format("%.0f", 100.0 * static_cast<double>(unknown) / static_cast<double>(all)),
              " % of the tokens of ", name_of(*files), " are ", made->token(*has.unk).value_or(""),
              ", the unknown ", "token; give a tokenizer for this language and kind of text");
}

}  // namespace tessera
