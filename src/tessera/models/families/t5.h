#pragma once
/// What the versions of T5 have alike: all but what is published of them.

#include "tessera/base/joined.h"
#include "tessera/models/classification.h"
#include "tessera/models/denoising.h"

namespace tessera {

extern const TranslationModel kT5Model;

inline constexpr std::string_view kT5Relu = "relu", kT5GatedGelu = "gated-gelu";

inline constexpr ReadField kT5Reads[] = {
    {"layers", "those of the encoder"},
    {"heads"},
    {"width"},
    {"head-width"},
    {"ffn-width"},
    {"context"},
    {"vocab-size"},
    {"special-tokens"},
    {"dropout"},
    {"attention-dropout"},
    {"decoder-layers"},
    {"distance-kinds"},
    {"far-distance"},
    {"activation", "relu or gated-gelu"},
    {"norm-eps"},
    {"init-std", "times the deviations of the paper's weights"}};
/// Of tasks that write texts.
inline constexpr ReadField kT5PairReads[] = {
    {"source-context"},
    {"tied-head"},
    {"logit-scale", "0 is 1 / sqrt(width) of a tied head, else 1"}};

/// The numbers of positions: a column for each head.
inline constexpr TensorCut kT5Cuts[] = {{"embed*.relative.weight", 1, 2}};

TextClassifier t5_classifier(const ModelConfig& config);

inline constexpr auto kT5Tasks = joined(
    std::array{FamilyTask{kSeq2SeqLm,
                          [](const ModelConfig& config) { return translation(config, kT5Model); },
                          kT5PairReads},
               denoising_task<kT5Model, kSpanCorruption>(kT5PairReads)},
    text_tasks<t5_classifier>(kClassifierReads, /*head=*/"classifier"));

void find_t5_problems(const ModelConfig& config, FieldProblems& problems);
/// Padding is the start, as in the published models. Of BERT's vocabularies, as Megatron-LM takes
/// them, [CLS] is the start and [SEP] the end.
std::string t5_tokens_of(const Vocabulary& vocabulary);

template <const std::string_view& kActivation, bool kTied>
void publish_t5(ModelConfig& config) {
  config.activation = kActivation;
  config.tied_head = kTied;
  config.norm_eps = 1e-6;
  config.init_std = 1;
}

constexpr ModelFamily t5_family(ModelFamily with) {
  with.reads = kT5Reads;
  with.tasks = kT5Tasks;
  with.find_problems = find_t5_problems;
  with.stacks = stacks_of_pairs;
  with.cuts = kT5Cuts;
  with.special_tokens = kTranslationTokens;
  with.tokens_of = t5_tokens_of;
  return with;
}

}  // namespace tessera
