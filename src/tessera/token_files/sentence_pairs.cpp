#include "tessera/token_files/sentence_pairs.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/tensor/ignored_label.h"
#include "tessera/token_files/blended_samples.h"
#include "tessera/token_files/sentence_dataset.h"

namespace tessera {

namespace {

WordPieces pieces_of(const Vocabulary& vocabulary) {
  const Tokenizer* const made = vocabulary.made_elsewhere();
  const std::optional<PairTokens> special = vocabulary.pair_tokens();
  require(made != nullptr && special, "masked sentences of token files need the files' tokenizer, ",
          "with [PAD], [CLS], [SEP] and [MASK], and ",
          made == nullptr ? "none is given" : "the run's lacks one of them",
          "; give it, like --tokenizer-type BertWordPieceLowerCase --vocab-file vocab.txt");
  WordPieces out;
  for (std::int32_t id = 0; id < made->size(); ++id) {
    if (made->token(id)) out.ids.push_back(id);
  }
  out.continues = pieces_that_continue(*made);
  out.pad = (*special)[0], out.cls = (*special)[1];
  out.sep = (*special)[2], out.mask = (*special)[3];
  return out;
}

class SentencePairs final : public Samples {
 public:
  SentencePairs(const TokenFiles& files, const Vocabulary& vocabulary,
                const SentencePairsOptions& options)
      : pieces_(pieces_of(vocabulary)),
        options_(options),
        samples_(files, options.choice, notices_) {
    const std::int64_t context = options.choice.context, masked = kind_.most_masked(context);
    require(options.masked_positions == 0 || options.masked_positions >= masked,
            "masked-positions is ", options.masked_positions, ", but a sample of ", context,
            " tokens has up to ", masked, " masked ones; give that, or 0");
    valid_ = options.choice.part != DataPart::Train;
    size_ = !valid_ ? samples_.epoch() : options.most > 0 ? options.most : samples_.size();
  }
  std::int64_t size() const override { return size_; }
  std::string notice() const override { return join(notices_, "; "); }

  void fill(std::int64_t first, std::int64_t count, BatchInputs& batch) const override {
    const std::span<std::int32_t> ids = batch.fill_with("ids", pieces_.pad),
                                  types = batch.fill_with("types", 0),
                                  mask = batch.fill_with("mask", 0),
                                  labels = batch.fill_with("labels", kIgnoredLabel),
                                  next = batch.fill_with("next", kIgnoredLabel);
    std::span<std::int32_t> positions;
    if (options_.masked_positions > 0) positions = batch.fill_with("masked_positions", 0);
    const auto context = static_cast<std::size_t>(options_.choice.context),
               predicted = static_cast<std::size_t>(options_.masked_positions);
    for (std::int64_t i = 0; i < count; ++i) {
      if (valid_ && first + i >= size_) break;
      const auto [dataset, number] = samples_.at(first + i);
      const SentenceSample from = dataset.read(number);
      const BertSample sample = bert_sample(from.sentences, from.target, options_.choice.context,
                                            /*two_parts=*/true, pieces_, kind_.masking, from.seed);
      const auto row = static_cast<std::size_t>(i);
      next[row] = sample.exchanged ? 1 : 0;
      std::ranges::copy(sample.ids, ids.subspan(row * context).begin());
      std::ranges::copy(sample.types, types.subspan(row * context).begin());
      std::ranges::copy(sample.padding_mask, mask.subspan(row * context).begin());
      std::size_t labelled = 0;
      for (std::size_t t = 0; t < context; ++t) {
        if (sample.loss_mask[t] == 0) continue;
        if (predicted > 0) positions[row * predicted + labelled] = static_cast<std::int32_t>(t);
        labels[predicted > 0 ? row * predicted + labelled : row * context + t] = sample.labels[t];
        ++labelled;
      }
    }
  }

 private:
  std::vector<std::string> notices_;
  const SentenceKind& kind_ = sentence_kind(0);
  WordPieces pieces_;
  SentencePairsOptions options_;
  BlendedSamples<SentenceDataset> samples_;
  std::int64_t size_ = 0;
  bool valid_ = false;
};

}  // namespace

std::unique_ptr<Samples> sentence_pairs(const TokenFiles& files, const Vocabulary& vocabulary,
                                        const SentencePairsOptions& options) {
  std::int64_t least = 3;
  while (sentence_kind(0).most_masked(least) == 0) ++least;
  require(options.choice.context >= least, "context is ", options.choice.context,
          ", in which megatron-core masks no token; give at least ", least);
  return std::make_unique<SentencePairs>(files, vocabulary, options);
}

}  // namespace tessera
