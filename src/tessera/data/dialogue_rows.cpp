#include "tessera/data/dialogue_rows.h"

#include <algorithm>
#include <span>
#include <utility>

#include "tessera/base/cores.h"
#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/data/dialogue_tokens.h"
#include "tessera/data/dialogues.h"
#include "tessera/token_files/in_order.h"

namespace tessera {

namespace {

/// Dialogues as tokens, one behind another.
struct EncodedDialogues {
  std::vector<std::int32_t> ids;
  std::vector<std::uint8_t> counts;
  std::vector<std::int64_t> ends;
  std::vector<TextFile> files;
  std::string digest;
  std::int64_t cut = 0, without_answer = 0;  // the second left out, as their answers were cut off
};

DialogueKeys keys_of(const RowsChoice& choice) {
  return {choice.columns.front(), choice.columns.size() > 1 ? choice.columns[1] : ""};
}

/// Dataset::digest of dialogues is of their lines.
void add_to(StreamHash& hash, const LineBlock& block) {
  for_each_line(block, [&](std::string_view line, const LinePlace&) {
    hash.update(text(line.size(), ":"));
    hash.update(line);
  });
}

/// Adds a dialogue; what is too long is cut, where that is not refused.
void add_dialogue(DialogueTokens made, const RowsChoice& choice, EncodedDialogues& out) {
  const std::int64_t context = choice.dialogues.context;
  const auto most = static_cast<std::size_t>(context) + 1;  // the last token is only predicted
  if (context > 0 && made.ids.size() > most) {
    if (!choice.dialogues.cut_long)
      fail(Fault::Data, "the dialogue has ", made.ids.size(), " tokens, more than the ", most,
           " that the context of ", context, " holds; give a larger context (--seq-length), leave ",
           "the line out, or cut such dialogues with --long-dialogues cut");
    made.ids.resize(most);
    made.counts.resize(most);
    ++out.cut;
    if (std::count(made.counts.begin() + 1, made.counts.end(), 1) == 0) {
      ++out.without_answer;
      return;
    }
  }
  out.ids.insert(out.ids.end(), made.ids.begin(), made.ids.end());
  out.counts.insert(out.counts.end(), made.counts.begin(), made.counts.end());
  out.ends.push_back(std::ssize(out.ids));
}

/// Rows [first, last) of `from` behind those of `to`.
void append_rows(const EncodedDialogues& from, std::int64_t first, std::int64_t last,
                 EncodedDialogues& to) {
  const auto begin_of = [&](std::int64_t row) {
    return row == 0 ? 0 : from.ends[static_cast<std::size_t>(row) - 1];
  };
  const std::int64_t shift = std::ssize(to.ids) - begin_of(first);
  to.ids.insert(to.ids.end(), from.ids.begin() + begin_of(first),
                from.ids.begin() + begin_of(last));
  to.counts.insert(to.counts.end(), from.counts.begin() + begin_of(first),
                   from.counts.begin() + begin_of(last));
  for (std::int64_t row = first; row < last; ++row)
    to.ends.push_back(from.ends[static_cast<std::size_t>(row)] + shift);
}

EncodedDialogues encode_block(const LineBlock& block, const RowsChoice& choice,
                              const DialogueEncoder& encoder) {
  EncodedDialogues out;
  const DialogueKeys keys = keys_of(choice);
  for_each_line(block, [&](std::string_view line, const LinePlace& place) {
    const Dialogue dialogue = dialogue_of(line, keys, place);
    try {
      add_dialogue(encoder.encode(dialogue), choice, out);
    } catch (const Error& error) {
      throw Error(error.fault(), text("'", *place.path, "' line ", place.line, ": ", error.what()));
    }
  });
  return out;
}

/// By all cores: templates take most of the time.
EncodedDialogues encode_dialogues(const std::vector<std::string>& paths, const RowsChoice& choice,
                                  const DialogueEncoder& encoder) {
  constexpr std::int64_t kBlockBytes = 1 << 18;
  EncodedDialogues out;
  StreamHash hash;
  for (const std::string& path : text_files(paths)) {
    LineBlocks blocks(std::span(&path, 1), kBlockBytes);
    const std::int64_t most = 1 + blocks.bytes() / kBlockBytes;
    in_order<LineBlock, EncodedDialogues>(
        static_cast<std::size_t>(std::min<std::int64_t>(num_usable_cores(), most)),
        [&](LineBlock& block) { return blocks.next(block); },
        [&](const LineBlock& block) { return encode_block(block, choice, encoder); },
        [&](const LineBlock& block, const EncodedDialogues& made) {
          add_to(hash, block);
          append_rows(made, 0, std::ssize(made.ends), out);
          out.cut += made.cut;
          out.without_answer += made.without_answer;
        });
    out.files.push_back({path, blocks.bytes(), 0, 0});
  }
  out.digest = hash.text();
  return out;
}

std::string notice_of_cut(std::int64_t cut, std::int64_t left_out) {
  if (cut == 0) return "";
  return text(
      counted(cut, "dialogue"), cut == 1 ? " is" : " are", " longer than the context and cut",
      left_out == 0 ? ""
                    : text(", of which ", left_out, " have no answer left and are ", "left out"));
}

}  // namespace

Dataset load_dialogues(const RowsChoice& choice, const Vocabulary& vocabulary) {
  const Tokenizer* const tokenizer = vocabulary.made_elsewhere();
  require(tokenizer != nullptr,
          "dialogues are written with the chat template of a tokenizer; give ",
          "a model's folder with --init-from, or a tokenizer with --tokenizer-name-or-path");
  const DialogueEncoder encoder(*tokenizer, choice.dialogues.loss, choice.dialogues.day);
  EncodedDialogues given = encode_dialogues(choice.paths, choice, encoder), apart;
  if (!choice.valid_paths.empty()) apart = encode_dialogues(choice.valid_paths, choice, encoder);
  const std::int64_t all = std::ssize(given.ends), trains = choice.trains(all);
  EncodedDialogues train, held;
  append_rows(given, 0, trains, train);
  choice.valid_paths.empty() ? append_rows(given, trains, all, held)
                             : append_rows(apart, 0, std::ssize(apart.ends), held);
  if (train.ids.empty() && !choice.tests)
    fail(Fault::Data, "no dialogue of ", name_of(given.files), " is left for training; give more ",
         "of them, or hold out fewer");
  if (held.ids.empty() && choice.tests)
    fail(Fault::Data, name_of(given.files), " has no dialogue to test on; give one in each line");
  RowTokens where{1, train.ends, std::ssize(train.ends)};
  for (const std::int64_t end : held.ends) where.ends.push_back(std::ssize(train.ids) + end);
  std::vector<std::uint8_t> counts = std::move(train.counts);
  counts.insert(counts.end(), held.counts.begin(), held.counts.end());
  Texts texts{stream_of(choice, std::move(train.ids), std::move(held.ids)),
              given.files,
              apart.files,
              std::move(where),
              {}};
  texts.counts = std::move(counts);
  return {
      .vocabulary = vocabulary,
      .content = std::move(texts),
      .digest = given.digest,
      .held_out_digest = apart.digest,
      .notice = notice_of_cut(given.cut + apart.cut, given.without_answer + apart.without_answer)};
}

Dataset load_dialogues(const RowsChoice& choice, const VocabularyChoice& vocabulary) {
  require(vocabulary.kind == VocabularyKind::Tokenizer, "dialogues are written with the chat ",
          "template of a tokenizer, but vocabulary is ", to_text(vocabulary.kind),
          "; give a model's folder with --init-from, or a tokenizer with ",
          "--tokenizer-name-or-path");
  return load_dialogues(choice, Vocabulary::of(vocabulary, ""));
}

std::string dialogues_digest(const RowsChoice& choice) {
  const std::vector<std::string> paths = text_files(choice.paths);
  StreamHash hash;
  LineBlocks blocks(paths);
  for (LineBlock block; blocks.next(block);) add_to(hash, block);
  return hash.text();
}

}  // namespace tessera
