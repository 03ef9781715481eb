#include "tessera/models/translation.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "tessera/base/counted.h"
#include "tessera/base/hash.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/data/buckets.h"
#include "tessera/data/dataset.h"
#include "tessera/data/pairs.h"
#include "tessera/models/sentence_files.h"
#include "tessera/ops/elementwise.h"
#include "tessera/token_files/permutation.h"
#include "tessera/token_files/sentence_spans.h"

namespace tessera {

namespace {

PairOptions pair_options(const ModelConfig& config) {
  const auto [pad, start, end, first] = translation_tokens(config);
  return {config.source(), config.context, pad, start, end, first};
}

class PairSamples final : public Samples {
 public:
  PairSamples(const ModelConfig& config, const Dataset& data, DataPart part,
              const SampleChoices& choices)
      : options_(pair_options(config)),
        pairs_(data, part, options_),
        shuffled_(part == DataPart::Train),
        size_(choices.most > 0 ? std::min(choices.most, pairs_.size()) : pairs_.size()),
        key_(random_key(choices.seed, "data.order")) {
    require(!shuffled_ || choices.order == SampleOrder::ShuffledWindows, "sample-order ",
            to_text(choices.order), " does not work with pairs; give sample-order ",
            to_text(SampleOrder::ShuffledWindows));
    if (shuffled_) require_not_of_texts(config, data.vocabulary);
    if (choices.buckets.lengths.empty()) return;
    std::vector<std::int64_t> lengths;
    for (std::int64_t i = 0; i < pairs_.size(); ++i) {
      lengths.push_back(pairs_.length(i));
      used_ += pairs_.tokens(i);
    }
    buckets_.emplace(lengths, choices.buckets, choices.seed);
    size_ = buckets_->steps() * choices.buckets.batch;
    for (const std::int64_t length : choices.buckets.lengths) {
      const ModelConfig cut = at_length(config, length);
      bucket_tokens_.push_back(cut.source() + cut.context);
    }
  }

  std::int64_t size() const override { return size_; }

  std::int64_t bucket_length(std::int64_t first) const override {
    return buckets_ ? buckets_->length(first) : 0;
  }

  void fill(std::int64_t first, std::int64_t count, BatchInputs& batch) const override {
    const auto source = batch.fill<std::int32_t>("source"), ids = batch.fill<std::int32_t>("ids"),
               labels = batch.fill<std::int32_t>("labels");
    for (std::int64_t i = 0; i < count; ++i) {
      const auto row = [&](std::span<std::int32_t> all) {
        const std::size_t width = all.size() / static_cast<std::size_t>(count);
        return all.subspan(static_cast<std::size_t>(i) * width, width);
      };
      pairs_.fill(pair_of(first + i), row(source), row(ids), row(labels));
    }
  }

  std::string notice() const override {
    std::vector<std::string> all;
    if (const std::int64_t out = pairs_.left_out(); out > 0)
      all.push_back(text(counted(out, "pair"), " of ", out + pairs_.size(), " in the ",
                         shuffled_ ? "training" : "held-out", " part ", out == 1 ? "is" : "are",
                         " left out: longer than source-context ", options_.source, " or context ",
                         options_.target, ", end token included"));
    if (buckets_) all.push_back(buckets_->notice(bucket_tokens_, used_));
    return join(all, "; ");
  }

 private:
  /// The pair of a sample; below 0 behind the end of a validation, and in a batch that is not full.
  std::int64_t pair_of(std::int64_t sample) const {
    if (buckets_) return buckets_->sample(sample);
    if (!shuffled_) return sample < size_ ? sample : -1;
    return static_cast<std::int64_t>(permute(static_cast<std::uint64_t>(sample % size_),
                                             static_cast<std::uint64_t>(size_), key_,
                                             static_cast<std::uint64_t>(sample / size_)));
  }

  PairOptions options_;
  Pairs pairs_;
  bool shuffled_;
  std::int64_t size_;
  std::uint64_t key_;
  std::optional<LengthBuckets> buckets_;
  std::vector<std::int64_t> bucket_tokens_;  // of a sample in each bucket
  std::int64_t used_ = 0;                    // tokens of all pairs
};

/// None: the text names none.
std::optional<TranslationTokens> named_tokens(std::string_view words) {
  const std::vector<std::string> parts = split(words, ',');
  std::vector<std::int32_t> ids;
  for (const std::string& part : parts) {
    std::int32_t id = -1;
    const auto [stop, error] = std::from_chars(part.data(), part.data() + part.size(), id);
    if (error != std::errc() || stop != part.data() + part.size() || id < 0) return std::nullopt;
    ids.push_back(id);
  }
  const bool first = ids.size() == kTranslationTokens + 1;
  if (ids.size() != kTranslationTokens && !first) return std::nullopt;
  return TranslationTokens{ids[0], ids[1], ids[2], first ? std::optional(ids[3]) : std::nullopt};
}

std::unique_ptr<Samples> span_samples(const ModelConfig& config, const Dataset& data, DataPart part,
                                      const SampleChoices& choices) {
  const auto [pad, start, end, first] = translation_tokens(config);
  require(!first, "special-tokens ", config.special_tokens,
          " names a token before every text, which spans of token files do not have; leave it out");
  return sentence_spans(*data.token_files(), data.vocabulary,
                        {sentence_choice(config, part, choices, config.source(), config.context),
                         pad, start, end, choices.most});
}

MakeSamples samples_of(const ModelConfig& config, DataPart part) {
  return [config, part](const Dataset& data,
                        const SampleChoices& choices) -> std::unique_ptr<Samples> {
    if (data.token_files() != nullptr) return span_samples(config, data, part, choices);
    return std::make_unique<PairSamples>(config, data, part, choices);
  };
}

}  // namespace

void require_not_of_texts(const ModelConfig& config, const Vocabulary& vocabulary) {
  if (config.special_tokens.empty() || vocabulary.made_elsewhere() != nullptr) return;
  const TranslationTokens named = translation_tokens(config);
  const std::int32_t least = std::min({named.pad, named.start, named.end});
  require(least >= vocabulary.size() && named.first.value_or(least) >= vocabulary.size(),
          "special-tokens is ", config.special_tokens, ", but ids below ", vocabulary.size(),
          " belong to texts (vocabulary ", to_text(vocabulary.kind()),
          "); leave special-tokens out, or give ids from ", vocabulary.size(), " on");
}

TranslationTokens translation_tokens(const ModelConfig& config) {
  if (const auto named = named_tokens(config.special_tokens)) return *named;
  const auto first = static_cast<std::int32_t>(config.vocabulary - kTranslationTokens);
  return {first, first + 1, first + 2, std::nullopt};
}

std::string to_text(const TranslationTokens& tokens) {
  const std::string first = tokens.first ? text(",", *tokens.first) : "";
  return text(tokens.pad, ",", tokens.start, ",", tokens.end, first);
}

void find_token_problems(const ModelConfig& c, FieldProblems& problems) {
  if (c.special_tokens.empty()) return;
  const auto named = named_tokens(c.special_tokens);
  const auto known = [&](std::int32_t id) { return id < c.vocabulary || c.vocabulary < 1; };
  if (!named) {
    problems.add({"special-tokens"},
                 text("special-tokens is '", printable(c.special_tokens),
                      "'; give the ids of padding, start and end, like 0,2,1, or a fourth one for ",
                      "what stands before every text, like 1,2,2,0"));
  } else if (!known(named->pad) || !known(named->start) || !known(named->end) ||
             !known(named->first.value_or(0))) {
    problems.add({"special-tokens", "vocab-size"},
                 text("special-tokens is ", c.special_tokens, " and the vocabulary ", c.vocabulary,
                      "; give ids below it"));
  } else if (named->end == named->pad || named->first == named->pad) {
    problems.add({"special-tokens"},
                 text("special-tokens is ", c.special_tokens, "; the end",
                      named->first ? ", and what stands before every text," : "",
                      " must be another one than padding"));
  }
}

std::vector<LayerStack> stacks_of_pairs(const ModelConfig& c) {
  return {{"encoder.layers", c.layers}, {"decoder.layers", c.decoder(), 2}};
}

Visible visible_source(const ModelConfig& config, Value source, const Pass& pass) {
  Builder& builder = source.builder();
  if (pass.mask.valid()) return {.mask = not_equal(pass.mask, builder.constant(0, DType::I32))};
  const Value pad = builder.constant(translation_tokens(config).pad, DType::I32);
  return {.mask = not_equal(source, pad)};
}

std::string started_by_padding(const Vocabulary& vocabulary) {
  if (vocabulary.made_elsewhere() == nullptr) return "";
  const SpecialTokens& has = vocabulary.made_elsewhere()->special_tokens();
  return has.pad && has.eos ? to_text(TranslationTokens{*has.pad, *has.pad, *has.eos}) : "";
}

Value token_table(const ModelConfig& config, Builder& builder, const WeightInit& init,
                  std::string_view block) {
  const Scope embed(builder, block), token(builder, "token");
  const Shape shape{config.vocabulary, config.width};
  return builder.state("weight", {DType::F32, shape, {}}, Role::Parameter, init.of(shape));
}

Task translation(const ModelConfig& config, const TranslationModel& model) {
  Task out;
  out.name = kSeq2SeqLm;
  out.inputs = {{"source", DType::I32, {config.source()}, config.vocabulary},
                {"ids", DType::I32, {config.context}, config.vocabulary},
                {"labels", DType::I32, {config.context}, config.vocabulary, /*ignorable=*/true}};
  out.tokens = config.source() + config.context;
  out.means = {{kLossMean}};
  out.perplexity_of = kLossMean;
  out.measure = [config, logits = model.logits](const TaskValues& in,
                                                const Pass& pass) -> std::vector<Mean> {
    Pass of_source = pass;
    if (const auto at = in.find("mask"); at != in.end()) of_source.mask = at->second;
    return {cross_entropy_mean(logits(config, in.at("source"), in.at("ids"), of_source),
                               in.at("labels"))};
  };
  const TranslationTokens tokens = translation_tokens(config);
  out.text = {
      .context = config.context,
      .logits = [config, next = model.next](Value ids,
                                            const Pass& pass) { return next(config, ids, pass); },
      .temperature = 0,
      .source = config.source(),
      .read_source = [config, read = model.read_source](Value source) { read(config, source); },
      .pad = tokens.pad,
      .start = tokens.start,
      .first = tokens.first,
      .end = tokens.end,
      .never = "\t\n"};  // they end a source and a pair in a file
  out.reads_pairs = true;
  if (model.sentence_files)
    out.token_files = sentence_file_use(config, config.source(), config.context);
  out.train_samples = samples_of(config, DataPart::Train);
  out.valid_samples = samples_of(config, DataPart::Valid);
  return out;
}

double tied_logit_scale(const ModelConfig& c) {
  if (c.logit_scale != 0) return c.logit_scale;
  return c.tied_head ? 1 / std::sqrt(static_cast<double>(c.width)) : 1;
}

}  // namespace tessera
