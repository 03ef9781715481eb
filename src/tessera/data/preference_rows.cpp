#include "tessera/data/preference_rows.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <variant>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/encoded_lines.h"
#include "tessera/data/preferences.h"

namespace tessera {

namespace {

/// Turns answers with their prompts into tokens.
class AnswerEncoder {
 public:
  AnswerEncoder(const Tokenizer& tokenizer, const DialogueRules& rules)
      : tokenizer_(tokenizer), rules_(rules) {}

  DialogueTokens encode(const Preference::Answered& answered) {
    const auto* const dialogue = std::get_if<Dialogue>(&answered);
    if (dialogue == nullptr) return of_text(std::get<AnsweredText>(answered));
    // Who gives texts alone needs no chat template.
    if (!dialogues_) dialogues_.emplace(tokenizer_, rules_.loss, rules_.day);
    return dialogues_->encode(*dialogue);
  }

 private:
  DialogueTokens of_text(const AnsweredText& given) const {
    DialogueTokens out =
        tokens_of_spans(tokenizer_, given.text, {{given.prompt, given.text.size()}}, rules_.loss);
    if (std::ranges::count(out.counts, 1) == 0)
      fail(Fault::Data, "the tokenizer makes no token of the answer; give it another text");
    std::vector<std::int32_t> before;
    for (const FramePart& part : tokenizer_.frame().single) {
      if (part.text >= 0) break;
      before.push_back(part.id);
    }
    out.ids.insert(out.ids.begin(), before.begin(), before.end());
    out.counts.insert(out.counts.begin(), before.size(), 0);
    const std::optional<std::int32_t> eos = tokenizer_.special_tokens().eos;
    if (!eos)
      fail(Fault::Data, "the tokenizer has no token that ends a text (eos_token), so a model ",
           "could not learn where answers end; give one that has it");
    if (out.ids.back() != *eos) {
      out.ids.push_back(*eos);
      out.counts.push_back(1);
    }
    return out;
  }

  const Tokenizer& tokenizer_;
  const DialogueRules& rules_;
  std::optional<DialogueEncoder> dialogues_;
};

void add_preference(const Preference& given, AnswerEncoder& encoder, const DialogueRules& rules,
                    EncodedLines& out) {
  DialogueTokens chosen = encoder.encode(given.chosen), rejected = encoder.encode(given.rejected);
  const auto whole = chosen.ids.size() + rejected.ids.size();
  const auto fits_in = [&](DialogueTokens& made, const char* key) {
    return fits(made, rules, text("the prompt with the answer in \"", key, "\""), "such answers");
  };
  const bool has_chosen = fits_in(chosen, "chosen"), has_rejected = fits_in(rejected, "rejected"),
             cut = chosen.ids.size() + rejected.ids.size() < whole;
  out.cut += cut;
  if (!has_chosen || !has_rejected) {
    if (!cut)
      fail(Fault::Data, "an answer has no token behind the first one of its text, which nothing ",
           "predicts; give it a prompt");
    ++out.without_answer;
    return;
  }
  out.same += given.same;
  out.add(chosen);
  out.add(rejected);
}

EncodedLines encode_preferences(const std::vector<std::string>& paths, const RowsChoice& choice,
                                const Tokenizer& tokenizer) {
  return encode_lines(paths, 2, [&]() -> EncodeLine {
    const auto encoder = std::make_shared<AnswerEncoder>(tokenizer, choice.dialogues);
    return [&rules = choice.dialogues, encoder](std::string_view line, const LinePlace& place,
                                                EncodedLines& out) {
      const Preference preference = preference_of(line, place);
      at_place(place, [&] { add_preference(preference, *encoder, rules, out); });
    };
  });
}

std::string notice_of(const EncodedLines& given, const EncodedLines& apart) {
  const std::int64_t same = given.same + apart.same;
  std::vector<std::string> out = {notice_of_cut(given, apart, "preference")};
  if (same > 0)
    out.push_back(text(counted(same, "preference"), same == 1 ? " has" : " have",
                       " the same answer as chosen and rejected, which teaches nothing"));
  std::erase(out, "");
  return join(out, "; ");
}

}  // namespace

Dataset load_preferences(const RowsChoice& choice, const Vocabulary& vocabulary) {
  const Tokenizer* const tokenizer = vocabulary.made_elsewhere();
  require(tokenizer != nullptr, "preferences are written in the tokens of a tokenizer; give a ",
          "model's folder with --init-from, or a tokenizer with --tokenizer-name-or-path");
  EncodedLines given = encode_preferences(choice.paths, choice, *tokenizer), apart;
  if (!choice.valid_paths.empty())
    apart = encode_preferences(choice.valid_paths, choice, *tokenizer);
  return {.vocabulary = vocabulary,
          .content = texts_of_rows(choice, given, apart, "preference"),
          .digest = given.digest,
          .held_out_digest = apart.digest,
          .notice = notice_of(given, apart)};
}

Dataset load_preferences(const RowsChoice& choice, const VocabularyChoice& vocabulary) {
  require(vocabulary.kind == VocabularyKind::Tokenizer, "preferences are written in the tokens of ",
          "a tokenizer, but vocabulary is ", to_text(vocabulary.kind),
          "; give a model's folder with --init-from, or a tokenizer with ",
          "--tokenizer-name-or-path");
  return load_preferences(choice, Vocabulary::of(vocabulary, ""));
}

}  // namespace tessera
