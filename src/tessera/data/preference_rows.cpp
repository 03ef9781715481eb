#include "tessera/data/preference_rows.h"

#include <algorithm>
#include <optional>
#include <variant>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/encoded_lines.h"
#include "tessera/data/preferences.h"

namespace tessera {

namespace {

struct EncodedPreferences {
  EncodedLines rows = {.columns = 2};
  std::int64_t cut = 0, without_answer = 0;  // the second left out, as their answers were cut off
  std::int64_t same = 0;                     // both answers are the same
};

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

/// Cuts what is too long, where that is not refused; false: no answer is left.
bool fits(DialogueTokens& made, const char* key, const DialogueRules& rules, bool& cut) {
  const auto most =
      static_cast<std::size_t>(rules.context) + 1;  // the last token is only predicted
  if (rules.context > 0 && made.ids.size() > most) {
    if (!rules.cut_long)
      fail(Fault::Data, "the prompt with the answer in \"", key, "\" has ", made.ids.size(),
           " tokens, more than the ", most, " that the context of ", rules.context,
           " holds; give a larger context (--seq-length), leave the line out, or cut such answers ",
           "with --long-dialogues cut");
    made.ids.resize(most);
    made.counts.resize(most);
    cut = true;
  }
  return std::count(made.counts.begin() + 1, made.counts.end(), 1) > 0;
}

void add_preference(const Preference& given, AnswerEncoder& encoder, const DialogueRules& rules,
                    EncodedPreferences& out) {
  DialogueTokens chosen = encoder.encode(given.chosen), rejected = encoder.encode(given.rejected);
  bool cut = false;
  const bool has_chosen = fits(chosen, "chosen", rules, cut),
             has_rejected = fits(rejected, "rejected", rules, cut);
  out.cut += cut;
  if (!has_chosen || !has_rejected) {
    if (!cut)
      fail(Fault::Data, "an answer has no token behind the first one of its text, which nothing ",
           "predicts; give it a prompt");
    ++out.without_answer;
    return;
  }
  out.same += given.same;
  out.rows.add(chosen);
  out.rows.add(rejected);
}

EncodedPreferences encode_preferences(const std::vector<std::string>& paths,
                                      const RowsChoice& choice, const Tokenizer& tokenizer) {
  EncodedPreferences out;
  AnswerEncoder encoder(tokenizer, choice.dialogues);
  const auto take = [&](std::string_view line, const LinePlace& place) {
    const Preference preference = preference_of(line, place);
    try {
      add_preference(preference, encoder, choice.dialogues, out);
    } catch (const Error& error) {
      throw Error(error.fault(), text("'", *place.path, "' line ", place.line, ": ", error.what()));
    }
  };
  out.rows.digest = each_data_line(paths, out.rows.files, take);
  return out;
}

std::string notice_of(std::int64_t cut, std::int64_t left_out, std::int64_t same) {
  std::vector<std::string> out;
  if (cut > 0)
    out.push_back(text(
        counted(cut, "preference"), cut == 1 ? " is" : " are", " longer than the context and cut",
        left_out == 0 ? ""
                      : text(", of which ", left_out, " have no answer left and are left out")));
  if (same > 0)
    out.push_back(text(counted(same, "preference"), same == 1 ? " has" : " have",
                       " the same answer as chosen and rejected, which teaches nothing"));
  return join(out, "; ");
}

}  // namespace

Dataset load_preferences(const RowsChoice& choice, const Vocabulary& vocabulary) {
  const Tokenizer* const tokenizer = vocabulary.made_elsewhere();
  require(tokenizer != nullptr, "preferences are written in the tokens of a tokenizer; give a ",
          "model's folder with --init-from, or a tokenizer with --tokenizer-name-or-path");
  EncodedPreferences given = encode_preferences(choice.paths, choice, *tokenizer), apart;
  if (!choice.valid_paths.empty())
    apart = encode_preferences(choice.valid_paths, choice, *tokenizer);
  return {.vocabulary = vocabulary,
          .content = texts_of_rows(choice, given.rows, apart.rows, "preference"),
          .digest = given.rows.digest,
          .held_out_digest = apart.rows.digest,
          .notice = notice_of(given.cut + apart.cut, given.without_answer + apart.without_answer,
                              given.same + apart.same)};
}

Dataset load_preferences(const RowsChoice& choice, const VocabularyChoice& vocabulary) {
  require(vocabulary.kind == VocabularyKind::Tokenizer, "preferences are written in the tokens of ",
          "a tokenizer, but vocabulary is ", to_text(vocabulary.kind),
          "; give a model's folder with --init-from, or a tokenizer with ",
          "--tokenizer-name-or-path");
  return load_preferences(choice, Vocabulary::of(vocabulary, ""));
}

std::string preferences_digest(const RowsChoice& choice) {
  std::vector<TextFile> files;
  return each_data_line(choice.paths, files, [](std::string_view, const LinePlace&) {});
}

}  // namespace tessera
