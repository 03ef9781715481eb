#include "tessera/data/dialogue_rows.h"

#include "tessera/base/error.h"
#include "tessera/data/dialogue_tokens.h"
#include "tessera/data/dialogues.h"
#include "tessera/data/encoded_lines.h"

namespace tessera {

namespace {

DialogueKeys keys_of(const RowsChoice& choice) {
  return {choice.columns.front(), choice.columns.size() > 1 ? choice.columns[1] : ""};
}

EncodedLines encode_dialogues(const std::vector<std::string>& paths, const RowsChoice& choice,
                              const DialogueEncoder& encoder) {
  return encode_lines(paths, 1, [&]() -> EncodeLine {
    return [&encoder, &rules = choice.dialogues, keys = keys_of(choice)](
               std::string_view line, const LinePlace& place, EncodedLines& out) {
      const Dialogue dialogue = dialogue_of(line, keys, place);
      at_place(place, [&] {
        DialogueTokens made = encoder.encode(dialogue);
        const std::size_t whole = made.ids.size();
        const bool answers = fits(made, rules, "the dialogue", "such dialogues");
        const bool cut = made.ids.size() < whole;
        out.cut += cut;
        if (cut && !answers)
          ++out.without_answer;
        else
          out.add(made);
      });
    };
  });
}

}  // namespace

Dataset load_dialogues(const RowsChoice& choice, const Vocabulary& vocabulary) {
  const Tokenizer* const tokenizer = vocabulary.made_elsewhere();
  require(tokenizer != nullptr,
          "dialogues are written with the chat template of a tokenizer; give ",
          "a model's folder with --init-from, or a tokenizer with --tokenizer-name-or-path");
  const DialogueEncoder encoder(*tokenizer, choice.dialogues.loss, choice.dialogues.day);
  EncodedLines given = encode_dialogues(choice.paths, choice, encoder), apart;
  if (!choice.valid_paths.empty()) apart = encode_dialogues(choice.valid_paths, choice, encoder);
  return {.vocabulary = vocabulary,
          .content = texts_of_rows(choice, given, apart, "dialogue"),
          .digest = given.digest,
          .held_out_digest = apart.digest,
          .notice = notice_of_cut(given, apart, "dialogue")};
}

Dataset load_dialogues(const RowsChoice& choice, const VocabularyChoice& vocabulary) {
  require(vocabulary.kind == VocabularyKind::Tokenizer, "dialogues are written with the chat ",
          "template of a tokenizer, but vocabulary is ", to_text(vocabulary.kind),
          "; give a model's folder with --init-from, or a tokenizer with ",
          "--tokenizer-name-or-path");
  return load_dialogues(choice, Vocabulary::of(vocabulary, ""));
}

}  // namespace tessera
