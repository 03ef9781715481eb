#pragma once
/// Pretraining of models that write one sequence from another on a text without targets.

#include "tessera/models/translation.h"
#include "tessera/token_files/noised_texts.h"

namespace tessera {

/// The tokens that stand for spans in a sample: those of the vocabulary's own, a tokenizer's
/// <extra_id_0> and so on or its mask, or some that follow the tokens of the data.
std::vector<std::int32_t> noise_marks(const TextNoise& noise, const Vocabulary& vocabulary);
/// How many of them a vocabulary lacks; nullptr: it is one of bytes.
std::int64_t lacked_marks(const TextNoise& noise, const Vocabulary* vocabulary);

/// The task of writing a text from what noise leaves of it. Inputs and loss are those of
/// translation(); samples are windows of a text (token_files/noised_texts.h).
Task denoising(const ModelConfig& config, const TranslationModel& model, const TextNoise& noise);

/// FamilyTask::find_problems of denoising.
void find_denoising_problems(const ModelConfig& config, const TextNoise& noise,
                             FieldProblems& problems);

/// The task denoising with such a noise.
template <const TranslationModel& kModel, const TextNoise& kNoise>
constexpr FamilyTask denoising_task(std::span<const ReadField> reads = kPairReads) {
  FamilyTask out{kDenoising,
                 [](const ModelConfig& config) { return denoising(config, kModel, kNoise); },
                 reads};
  out.find_problems = [](const ModelConfig& config, FieldProblems& problems) {
    find_denoising_problems(config, kNoise, problems);
  };
  out.lacked_tokens = [](const Vocabulary* vocabulary) { return lacked_marks(kNoise, vocabulary); };
  return out;
}

}  // namespace tessera
