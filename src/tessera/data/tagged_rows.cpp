#include "tessera/data/tagged_rows.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/data/label_rules.h"
#include "tessera/data/tagged_words.h"
#include "tessera/files/unpack.h"
#include "tessera/tensor/ignored_label.h"

namespace tessera {

namespace {

/// The sentences of several files.
struct LoadedSentences {
  std::vector<TaggedSentence> all;
  std::vector<TextFile> files;
};

LoadedSentences load_sentences(const std::vector<std::string>& paths, const RowsChoice& choice) {
  const TaggedWordsOptions options{.words_key = choice.columns.empty() ? "" : choice.columns[0],
                                   .tags_key = choice.label_column,
                                   .format = choice.table.format,
                                   .may_lack_tags = choice.tests};
  LoadedSentences out;
  for (const std::string& path : text_files(paths)) {
    const std::string bytes = read_contents(path);
    std::vector<TaggedSentence> read = parse_tagged_words(bytes, path, options);
    out.all.insert(out.all.end(), std::make_move_iterator(read.begin()),
                   std::make_move_iterator(read.end()));
    out.files.push_back({path, std::ssize(bytes), 0, 0});
  }
  return out;
}

LoadedSentences load_sentences_apart(const RowsChoice& choice) {
  return choice.valid_paths.empty() ? LoadedSentences()
                                    : load_sentences(choice.valid_paths, choice);
}

std::string digest_of_sentences(const LoadedSentences& sentences) {
  StreamHash hash;
  for (const TaggedSentence& sentence : sentences.all) {
    hash.update(text(sentence.words.size(), ":"));
    for (const std::vector<std::string>* part : {&sentence.words, &sentence.tags}) {
      for (const std::string& word : *part) {
        hash.update(text(word.size(), ":"));
        hash.update(word);
      }
    }
  }
  return hash.text();
}

/// What a vocabulary is made of: sentences of words with blanks before them.
std::string joined_sentences(const LoadedSentences& sentences) {
  std::string out;
  for (const TaggedSentence& sentence : sentences.all) {
    for (const std::string& word : sentence.words) out += text(" ", word);
    out += '\n';
  }
  return out;
}

/// The tokens of sentences, one behind another, and the labels of each.
struct EncodedSentences {
  std::vector<std::int32_t> ids;
  std::vector<std::int64_t> ends;
  std::vector<RowLabel> labels;
  std::int64_t words_without_tokens = 0;
};

class SentenceEncoder {
 public:
  SentenceEncoder(const Vocabulary& vocabulary, const std::vector<std::string>& names,
                  const char* whose)
      : vocabulary_(vocabulary), names_(names), numbers_(names), whose_(whose) {}

  void encode(std::span<const TaggedSentence> sentences, EncodedSentences& out) const {
    for (const TaggedSentence& sentence : sentences) add(sentence, out);
  }

 private:
  void add(const TaggedSentence& sentence, EncodedSentences& out) const try {
    WordLabels labels;
    for (std::size_t i = 0; i < sentence.words.size(); ++i)
      add_word(sentence.words[i],
               sentence.tags.empty() ? 0 : label_of(sentence.words[i], sentence.tags[i]), labels,
               out);
    out.labels.push_back({std::make_shared<const WordLabels>(std::move(labels))});
    out.ends.push_back(std::ssize(out.ids));
  } catch (const Error& error) {
    throw error.with(text("in the sentence at line ", sentence.line, " of '", sentence.path, "'"));
  }

  std::int32_t label_of(const std::string& word, const std::string& tag) const {
    const std::int32_t label = numbers_.of(tag);
    if (label < 0)
      fail(Fault::Data, "the word ", label_names_text({&word, 1}), " has the tag ",
           label_names_text({&tag, 1}), ", which is not among ", whose_, ": ",
           label_names_text(names_), "; correct it, or train on sentences with all tags");
    return label;
  }

  void add_word(const std::string& word, std::int32_t label, WordLabels& labels,
                EncodedSentences& out) const {
    const std::vector<std::int32_t> ids = vocabulary_.encode(text(" ", word));
    labels.has_token.push_back(!ids.empty());
    if (ids.empty()) {
      ++out.words_without_tokens;
      return;
    }
    out.ids.insert(out.ids.end(), ids.begin(), ids.end());
    labels.of_tokens.push_back(label);
    labels.of_tokens.resize(labels.of_tokens.size() + ids.size() - 1, kIgnoredLabel);
  }

  const Vocabulary& vocabulary_;
  const std::vector<std::string>& names_;
  LabelNumbers numbers_;
  const char* whose_;
};

/// The sentences are to test on, and have no tags.
bool lack_tags(const RowsChoice& choice, const LoadedSentences& sentences) {
  if (!choice.tests) return false;
  const auto tagged = std::ranges::find_if(
      sentences.all, [](const TaggedSentence& sentence) { return !sentence.tags.empty(); });
  const auto untagged = std::ranges::find_if(
      sentences.all, [](const TaggedSentence& sentence) { return sentence.tags.empty(); });
  if (tagged != sentences.all.end() && untagged != sentences.all.end())
    fail(Fault::Data, "the sentence at line ", untagged->line, " of '", untagged->path,
         "' has no tags, but the one at line ", tagged->line, " of '", tagged->path,
         "', also tested on, has; give both tags, or neither");
  return untagged != sentences.all.end();
}

Dataset encoded_sentences(const RowsChoice& choice, Vocabulary vocabulary,
                          const LoadedSentences& train, const LoadedSentences& apart) {
  const bool split = choice.valid_paths.empty(), untagged = lack_tags(choice, train);
  const std::int64_t trains = choice.trains(std::ssize(train.all));
  const std::span<const TaggedSentence> sentences(train.all);
  std::vector<std::string> tags;
  for (const TaggedSentence& sentence : sentences)
    tags.insert(tags.end(), sentence.tags.begin(), sentence.tags.end());
  auto [names, known] = chosen_label_names(tags, choice.known_labels, choice.keeps_labels);
  if (!known)
    require_classes(names, std::ssize(tags), "word", choice.classes,
                    text("the tags of ", name_of(train.files)));
  const SentenceEncoder encoder(vocabulary, names,
                                known ? "the model's tags" : "the tags of the training sentences");
  EncodedSentences rows, held;
  encoder.encode(sentences.first(static_cast<std::size_t>(trains)), rows);
  encoder.encode(split ? sentences.subspan(static_cast<std::size_t>(trains)) : apart.all, held);
  if (rows.ids.empty() && !choice.tests)
    fail(Fault::Data, "no sentence of ", name_of(train.files), " for training has a token; give ",
         "more sentences, or hold out fewer");
  RowTokens where{1, std::move(rows.ends), trains};
  for (const std::int64_t end : held.ends) where.ends.push_back(std::ssize(rows.ids) + end);
  std::string notice;
  if (const std::int64_t none = rows.words_without_tokens + held.words_without_tokens; none > 0)
    notice = text(counted(none, "word"), none == 1 ? " has" : " have", " no token, and ",
                  none == 1 ? "is" : "are", " skipped");
  rows.labels.insert(rows.labels.end(), std::make_move_iterator(held.labels.begin()),
                     std::make_move_iterator(held.labels.end()));
  return {.vocabulary = std::move(vocabulary),
          .content = Texts{stream_of(choice, std::move(rows.ids), std::move(held.ids)), train.files,
                           apart.files, std::move(where), std::move(rows.labels)},
          .digest = digest_of_sentences(train),
          .held_out_digest = split ? "" : digest_of_sentences(apart),
          .label_names = std::move(names),
          .unlabelled = untagged,
          .notice = std::move(notice)};
}

}  // namespace

Dataset load_tagged_rows(const RowsChoice& choice, const VocabularyChoice& vocabulary) {
  const LoadedSentences train = load_sentences(choice.paths, choice);
  return encoded_sentences(choice, Vocabulary::of(vocabulary, joined_sentences(train)), train,
                           load_sentences_apart(choice));
}

Dataset load_tagged_rows(const RowsChoice& choice, const Vocabulary& vocabulary) {
  return encoded_sentences(choice, vocabulary, load_sentences(choice.paths, choice),
                           load_sentences_apart(choice));
}

std::string tagged_rows_digest(const RowsChoice& choice) {
  return digest_of_sentences(load_sentences(choice.paths, choice));
}

}  // namespace tessera
