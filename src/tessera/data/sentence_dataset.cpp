#include "tessera/data/sentence_dataset.h"

#include <array>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/sentence_map.h"

namespace tessera {

SentenceDataset::SentenceDataset(std::shared_ptr<const IndexedDataset> files,
                                 const GptDatasetChoice& choice, std::vector<std::string>&)
    : files_(std::move(files)), choice_(choice) {
  if (files_->num_sequences() <= files_->num_documents())
    fail(Fault::Data, "token files '", files_->prefix(), "' have ", files_->num_sequences(),
         " sequences in ", files_->num_documents(),
         " documents, and samples of sentences need a sequence for each sentence; make the files ",
         "by preprocess_data --split-sentences");
  const SplitShares split =
      choice.split.empty() ? SplitShares::all(choice.part) : parse_split(choice.split);
  const auto [first, last] = split.range(choice.part, files_->num_documents());
  std::vector<std::int64_t> documents(static_cast<std::size_t>(last - first + 1));
  files_->boundaries(first, documents);
  const std::vector<std::int32_t> lengths = files_->lengths();
  // Two sentences at least: one for each part. [CLS] and two [SEP] are not of the text.
  SentenceMapRequest request{
      .most_tokens = choice.context - 3, .fewest_sentences = 2, .samples = {}, .seed = choice.seed};
  try {
    map_.emplace(sentence_map(request, documents, lengths));
    epoch_ = size();
    request.samples = choice.samples;
    if (choice.samples.value_or(0) > epoch_)
      map_.emplace(sentence_map(request, documents, lengths));
  } catch (const Error& error) {
    throw error.with(text("in the ", to_text(choice.part), " part of '", files_->prefix(),
                          "', documents ", first, " to ", last - 1, " (split ",
                          choice.split.empty() ? "none" : choice.split, ")"));
  }
}

BertSample SentenceDataset::read(std::int64_t sample, const WordPieces& pieces) const {
  check(sample >= 0 && sample < size(), "sample ", sample, " of ", size());
  std::array<std::int64_t, 3> row{};  // first sentence, one past the last, tokens
  map_->read(3 * sample, row);
  std::vector<TokenIds> sentences;
  for (std::int64_t i = row[0]; i < row[1]; ++i)
    sentences.push_back(files_->read(i, choice_.vocabulary));
  return bert_sample(sentences, row[2], choice_.context, /*two_parts=*/true, pieces, {},
                     choice_.seed + static_cast<std::uint32_t>(sample));
}

}  // namespace tessera
