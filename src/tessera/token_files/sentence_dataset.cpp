#include "tessera/token_files/sentence_dataset.h"

#include <algorithm>
#include <array>

#include "tessera/base/error.h"
#include "tessera/base/size.h"
#include "tessera/base/text.h"
#include "tessera/token_files/index_room.h"
#include "tessera/token_files/index_sets.h"
#include "tessera/token_files/sentence_map.h"

namespace tessera {

namespace {

/// Of a sample while a map is made: its row of three numbers, as it is drawn and stored twice.
constexpr std::int64_t kMapRowBytes = 24 + 2 * 12;
constexpr std::int64_t kAtOnce = 1 << 16;  // documents, or sentences, that are looked at together

/// [CLS] and two [SEP]; the start and the end.
constexpr SentenceKind kBertKind{"BERTMaskedWordPieceDataset", 3, 2};
constexpr SentenceKind kT5Kind{
    "T5MaskedWordPieceDataset", 2, 1, {.longest = 10, .geometric = true}};

/// The documents of a part of token files.
struct SentencePart {
  const IndexedDataset& files;
  std::int64_t first = 0, last = 0;  // documents [first, last)

  /// Reads of the index what is needed at a time.
  void walk(OnDocument on_document) const {
    std::vector<std::int64_t> bounds;
    std::vector<std::int32_t> lengths;
    for (std::int64_t block = first; block < last; block += kAtOnce) {
      bounds.resize(static_cast<std::size_t>(std::min(kAtOnce, last - block) + 1));
      files.boundaries(block, bounds);
      for (std::size_t begin = 0, end = 0; end + 1 < bounds.size(); begin = end) {
        // As many documents as have no more sentences together, or one that has more.
        ++end;
        while (end + 1 < bounds.size() && bounds[end + 1] - bounds[begin] <= kAtOnce) ++end;
        lengths.resize(static_cast<std::size_t>(bounds[end] - bounds[begin]));
        files.lengths(bounds[begin], lengths);
        for (std::size_t d = begin; d < end; ++d)
          on_document(bounds[d], std::span(lengths).subspan(
                                     static_cast<std::size_t>(bounds[d] - bounds[begin]),
                                     static_cast<std::size_t>(bounds[d + 1] - bounds[d])));
      }
    }
  }
};

SentencePart sentence_part(const IndexedDataset& files, const GptDatasetChoice& choice) {
  if (files.num_sequences() <= files.num_documents())
    fail(Fault::Data, "token files '", files.prefix(), "' have ", files.num_sequences(),
         " sequences in ", files.num_documents(),
         " documents, but samples of sentences need one sequence per sentence; make the files ",
         "with preprocess_data --split-sentences");
  const SplitShares split =
      choice.split.empty() ? SplitShares::all(choice.part) : parse_split(choice.split);
  const auto [first, last] = split.range(choice.part, files.num_documents());
  return {files, first, last};
}

SentenceMapRequest request_of(const GptDatasetChoice& choice,
                              const std::optional<std::int64_t>& samples) {
  const SentenceKind& kind = sentence_kind(choice.written);
  return {.most_tokens = choice.context - kind.special,
          .fewest_sentences = kind.fewest_sentences,
          .samples = samples,
          .seed = choice.seed};
}

/// How many rows the map of so many samples has; none: that of one epoch.
std::int64_t map_size(const SentencePart& part, const GptDatasetChoice& choice,
                      const std::optional<std::int64_t>& samples) {
  try {
    return sentence_map_size(request_of(choice, samples),
                             [&](OnDocument on_document) { part.walk(on_document); });
  } catch (const Error& error) {
    throw error.with(text("in the ", to_text(choice.part), " part of '", part.files.prefix(),
                          "', documents ", part.first, " to ", part.last - 1, " (split ",
                          choice.split.empty() ? "none" : choice.split, ")"));
  }
}

}  // namespace

const SentenceKind& sentence_kind(std::int64_t written) {
  return written > 0 ? kT5Kind : kBertKind;
}

std::function<bool(std::int32_t)> pieces_that_continue(const Tokenizer& tokenizer) {
  std::vector<bool> continues(static_cast<std::size_t>(tokenizer.size()));
  for (std::int32_t id = 0; id < tokenizer.size(); ++id)
    continues[static_cast<std::size_t>(id)] = starts_with(tokenizer.token(id).value_or(""), "##");
  return [continues = std::move(continues)](std::int32_t id) {
    return static_cast<std::size_t>(id) < continues.size() &&
           continues[static_cast<std::size_t>(id)];
  };
}

SentenceDataset::SentenceDataset(std::shared_ptr<const IndexedDataset> files,
                                 const GptDatasetChoice& choice, std::vector<std::string>& notices)
    : files_(std::move(files)), choice_(choice) {
  const SentencePart part = sentence_part(*files_, choice);
  epoch_ = map_size(part, choice, {});
  const auto make = [&] {
    const std::int64_t rows = std::max(epoch_, choice.samples.value_or(0));
    require_room_for_indices(text("of '", files_->prefix(), "'"), rows,
                             size_product({rows, kMapRowBytes}, "bytes of a map"));
    return std::vector{sentence_map(request_of(choice, choice.samples), files_->num_sequences(),
                                    [&](OnDocument on_document) { part.walk(on_document); })};
  };
  IndexSet set = index_set(files_->prefix(), choice);
  // Of several epochs it is not known how many rows there are.
  set.arrays[0].shape = {std::max(epoch_, choice.samples.value_or(0)), 3};
  set.arrays[0].more_rows = choice.samples.value_or(0) > epoch_;
  map_ = kept_indices(set, make, notices).front();
}

IndexSet SentenceDataset::index_set(const std::string& prefix, const GptDatasetChoice& choice) {
  return sentence_index_set(prefix, choice);
}

SentenceSample SentenceDataset::read(std::int64_t sample) const {
  check(sample >= 0 && sample < size(), "sample ", sample, " of ", size());
  std::array<std::int64_t, 3> row{};  // first sentence, one past the last, tokens
  map_->read(3 * sample, row);
  const SentenceKind& kind = sentence_kind(choice_.written);
  if (row[0] < 0 || row[1] > files_->num_sequences() || row[1] - row[0] < kind.fewest_sentences ||
      row[2] < 1 || row[2] > choice_.context - kind.special)
    fail(Fault::Data, "the sample indices of '", map_->path(), "' do not fit the token files '",
         files_->prefix(), "': sample ", sample, " is ", row[2], " tokens of sentences ", row[0],
         " to ", row[1] - 1, " of ", files_->num_sequences(),
         "; delete the index files to rebuild them");
  SentenceSample out{.target = row[2], .seed = choice_.seed + static_cast<std::uint32_t>(sample)};
  for (std::int64_t i = row[0]; i < row[1]; ++i)
    out.sentences.push_back(files_->read(i, choice_.vocabulary));
  return out;
}

std::int64_t sentence_samples_in_epoch(const TokenFiles& files, const TokenSampleChoice& choice) {
  const TokenSource& source = files.source_of(choice.part);
  const std::vector<GptDatasetChoice> choices = choices_of_files(files, source, choice);
  std::int64_t out = 0;
  for (std::size_t i = 0; i < choices.size(); ++i)
    out = size_sum(out, map_size(sentence_part(*source.files[i], choices[i]), choices[i], {}),
                   "samples of all files");
  return out;
}

std::string sentence_sample_order(const TokenFiles& files, const TokenSampleChoice& choice) {
  const TokenSource& source = files.source_of(choice.part);
  const std::vector<GptDatasetChoice> choices = choices_of_files(files, source, choice);
  std::vector<std::string> out;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const IndexedDataset& of = *source.files[i];
    out.push_back(text(map_size(sentence_part(of, choices[i]), choices[i], choices[i].samples),
                       " samples of '", of.prefix(), "'"));
  }
  return join(out, "; ");
}

}  // namespace tessera
