#include "tessera/token_files/sentence_spans.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/tensor/ignored_label.h"
#include "tessera/token_files/blended_samples.h"
#include "tessera/token_files/sentence_dataset.h"

namespace tessera {

namespace {

WordPieces spans_pieces(const Vocabulary& vocabulary, const SentenceSpansOptions& options) {
  const Tokenizer* const made = vocabulary.made_elsewhere();
  WordPieces out;
  out.sentinels = sentinels_of(vocabulary);
  require(!out.sentinels.empty(), "spans of token files need the files' tokenizer, with sentinels ",
          "<extra_id_0>, <extra_id_1> and so on, and ",
          made == nullptr ? "none is given" : "the run's has none",
          "; give it, like --tokenizer-type BertWordPieceCase --vocab-file vocab.txt ",
          "--vocab-extra-ids 100, or the tokenizer.json of a T5");
  out.continues = pieces_that_continue(*made);
  // As in megatron-core, what begins or ends a text stands for [CLS] and [SEP].
  const SpecialTokens& special = made->special_tokens();
  out.cls = special.cls.value_or(special.bos.value_or(-1));
  out.sep = special.sep.value_or(special.eos.value_or(-1));
  out.pad = options.pad, out.begin = options.start, out.end = options.end;
  return out;
}

class SentenceSpans final : public Samples {
 public:
  SentenceSpans(const TokenFiles& files, const Vocabulary& vocabulary,
                const SentenceSpansOptions& options)
      : kind_(sentence_kind(options.choice.written)),
        pieces_(spans_pieces(vocabulary, options)),
        options_(options) {
    check_room();
    samples_.emplace(files, options.choice, notices_);
    valid_ = options.choice.part != DataPart::Train;
    size_ = !valid_ ? samples_->epoch() : options.most > 0 ? options.most : samples_->size();
  }
  std::int64_t size() const override { return size_; }
  std::string notice() const override { return join(notices_, "; "); }

  void fill(std::int64_t first, std::int64_t count, BatchInputs& batch) const override {
    const std::span<std::int32_t> source = batch.fill_with("source", options_.pad),
                                  ids = batch.fill_with("ids", options_.pad),
                                  labels = batch.fill_with("labels", kIgnoredLabel);
    const auto read = static_cast<std::size_t>(options_.choice.context),
               written = static_cast<std::size_t>(options_.choice.written);
    for (std::int64_t i = 0; i < count; ++i) {
      if (valid_ && first + i >= size_) break;
      const T5Sample sample = this->sample(first + i);
      const auto row = static_cast<std::size_t>(i);
      std::ranges::copy(sample.source, source.subspan(row * read).begin());
      std::ranges::copy(sample.written, ids.subspan(row * written).begin());
      for (std::size_t t = 0; t < written; ++t) {
        if (sample.loss_mask[t] != 0) labels[row * written + t] = sample.labels[t];
      }
    }
  }

 private:
  /// Whether the longest sample can be written; where it may be that it cannot, a notice.
  void check_room() {
    const std::int64_t context = options_.choice.context, written = options_.choice.written,
                       tokens = context - kind_.special, masked = kind_.most_masked(context),
                       sentinels = std::ssize(pieces_.sentinels);
    require(masked > 0, "source-context is ", context, ", of which ", tokens,
            " tokens are text, and 15 % of these is below one; give a larger one");
    const std::string what = text("a sample of source-context ", context, " has up to ",
                                  counted(masked, "masked token"), ", in one run or in several");
    require(written >= masked + 2, what, ", so with the start and a sentinel ", masked + 2,
            " to write, but context is ", written, "; give context at least that, or ",
            2 * masked + 1, ", enough for every sample");
    if (options_.choice.part != DataPart::Train) return;  // told once
    if (written < 2 * masked + 1)
      notices_.push_back(text(what, ", with their sentinels up to ", 2 * masked + 1,
                              " to write; a sample above context ", written, " ends the run"));
    if (sentinels < masked)
      notices_.push_back(text(what, "; a sample with more runs than the tokenizer's ", sentinels,
                              " sentinels ends the run"));
  }

  T5Sample sample(std::int64_t number) const {
    const auto [dataset, its] = samples_->at(number);
    const SentenceSample from = dataset.read(its);
    try {
      return t5_sample(from.sentences, from.target, options_.choice.context,
                       options_.choice.written, pieces_, kind_.masking, from.seed);
    } catch (const Error& error) {
      throw error.with(text("in sample ", its, " of '", dataset.files().prefix(), "'"));
    }
  }

  std::vector<std::string> notices_;
  const SentenceKind& kind_;
  WordPieces pieces_;
  SentenceSpansOptions options_;
  std::optional<BlendedSamples<SentenceDataset>> samples_;
  std::int64_t size_ = 0;
  bool valid_ = false;
};

}  // namespace

std::vector<std::int32_t> sentinels_of(const Vocabulary& vocabulary) {
  std::vector<std::int32_t> out;
  const Tokenizer* const made = vocabulary.made_elsewhere();
  if (made == nullptr) return out;
  while (const auto id = made->id_of(text("<extra_id_", out.size(), ">"))) out.push_back(*id);
  return out;
}

std::unique_ptr<Samples> sentence_spans(const TokenFiles& files, const Vocabulary& vocabulary,
                                        const SentenceSpansOptions& options) {
  return std::make_unique<SentenceSpans>(files, vocabulary, options);
}

}  // namespace tessera
