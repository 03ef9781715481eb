#include "tessera/models/denoising.h"

#include <algorithm>
#include <numeric>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/token_files/sentence_spans.h"
#include "tessera/tokenizers/vocabulary.h"

namespace tessera {

namespace {

constexpr std::int64_t kOwnSentinels = 100;  // as many as T5's tokenizer has

std::int64_t marks_needed(const TextNoise& noise) {
  return noise.kind == TextNoise::Kind::Spans ? kOwnSentinels : 1;
}

/// Empty: it has none.
std::vector<std::int32_t> marks_in(const TextNoise& noise, const Vocabulary& vocabulary) {
  if (noise.kind == TextNoise::Kind::Spans) return sentinels_of(vocabulary);
  const Tokenizer* const made = vocabulary.made_elsewhere();
  if (made == nullptr || !made->special_tokens().mask) return {};
  return {*made->special_tokens().mask};
}

NoisedTextsOptions noise_options(const ModelConfig& c, const TextNoise& noise) {
  const auto [pad, start, end, first] = translation_tokens(c);
  return {.noise = noise,
          .source = c.source(),
          .written = c.context,
          .pad = pad,
          .start = start,
          .end = end,
          .first = first};
}

void require_other_marks(const ModelConfig& c, const NoisedTextsOptions& options) {
  for (const std::int32_t special :
       {options.pad, options.start, options.end, options.first.value_or(options.end)})
    require(std::ranges::find(options.marks, special) == options.marks.end(), "special-tokens is ",
            c.special_tokens, ", but ", special, " marks a span; give other ids");
}

MakeSamples noised_samples(const ModelConfig& c, const TextNoise& noise, DataPart part) {
  return [c, noise, part](const Dataset& data, const SampleChoices& choices) {
    NoisedTextsOptions options = noise_options(c, noise);
    options.marks = noise_marks(noise, data.vocabulary);
    require_not_of_texts(c, data.vocabulary);
    if (!c.special_tokens.empty()) require_other_marks(c, options);
    if (noise.shuffles_sentences) options.ends_sentence = sentence_ends(data.vocabulary);
    options.seed = choices.seed, options.order = choices.order, options.most = choices.most;
    const TokenStream& tokens = data.texts().tokens;
    return noised_texts(part == DataPart::Train ? tokens.train() : tokens.held_out(), part,
                        options);
  };
}

}  // namespace

std::vector<std::int32_t> noise_marks(const TextNoise& noise, const Vocabulary& vocabulary) {
  std::vector<std::int32_t> out = marks_in(noise, vocabulary);
  if (!out.empty()) return out;
  out.resize(static_cast<std::size_t>(marks_needed(noise)));
  std::iota(out.begin(), out.end(), vocabulary.size());
  return out;
}

std::int64_t lacked_marks(const TextNoise& noise, const Vocabulary* vocabulary) {
  return vocabulary == nullptr || marks_in(noise, *vocabulary).empty() ? marks_needed(noise) : 0;
}

Task denoising(const ModelConfig& c, const TranslationModel& model, const TextNoise& noise) {
  Task out = translation(c, model);
  out.name = kDenoising;
  out.reads_pairs = false;
  out.token_files = std::nullopt;
  out.train_samples = noised_samples(c, noise, DataPart::Train);
  out.valid_samples = noised_samples(c, noise, DataPart::Valid);
  return out;
}

void find_denoising_problems(const ModelConfig& c, const TextNoise& noise,
                             FieldProblems& problems) {
  if (c.context < 1 || c.source() < 1 || !problems.empty()) return;
  NoisedTextsOptions options = noise_options(c, noise);
  options.marks.resize(static_cast<std::size_t>(marks_needed(noise)));
  try {
    noised_text_lengths(options);
  } catch (const Error& error) {
    problems.add({"context", "source-context"}, error.what());
  }
}

}  // namespace tessera
