#pragma once
/// Models whose tokens see the whole sample, and which learn tokens that are masked: BERT and its
/// variants.

#include "tessera/data/masked_pairs.h"
#include "tessera/models/family.h"
#include "tessera/nn/transformer.h"

namespace tessera {

/// In what the variants differ.
struct MaskedModel {
  SampleParts parts = SampleParts::Elsewhere;  // of One, all tokens have one type
  std::string_view second = "nsp";    // what judges the second part: a block, and metrics "nsp_..."
  std::int64_t unread_positions = 0;  // rows of the table of positions before the first token's
  bool sentence_files = false;        // token files of sentences train it too, as Megatron-LM's
  FeedForward feed_forward = FeedForward::GeluErf;  // of layers; the head has the same GELU
  bool factorised = false;     // tables are embedding_width wide, and a product makes the width
  bool shared_layers = false;  // all layers have the weights of the first
};

/// The task of predicting masked tokens and, where samples have two parts, how these belong
/// together. Post-norm layers with biases; the tokens' decoder is the token embedding.
///
/// Inputs: as data/masked_pairs.h says. Loss: the sum of the mean cross-entropies of the tokens
/// that are predicted and of the second part. Blocks: embed, layers.N, mlm and, of two parts,
/// pooler and that which judges.
Task masked_lm(const ModelConfig& config, const MaskedModel& model);

/// FamilyTask::find_problems of masked_lm.
void find_masked_problems(const ModelConfig& config, const MaskedModel& model,
                          FieldProblems& problems);

/// ModelFamily::cuts.
inline constexpr TensorCut kMaskedCuts[] = {{"mlm.bias", 0, 1}};

/// ModelFamily::reads.
inline constexpr ReadField kMaskedReads[] = {
    {"layers"},  {"heads"},     {"kv-heads"},   {"width"},   {"ffn-width"}, {"norm-eps"},
    {"context"}, {"positions"}, {"vocab-size"}, {"dropout"}, {"init-std"}};

/// FamilyTask::reads of masked_lm.
inline constexpr ReadField kMaskedLmReads[] = {{"masked-positions"}};

/// ModelFamily::tasks.
template <const MaskedModel& kModel>
inline constexpr FamilyTask kMaskedTasks[] = {
    {kMaskedLm, "tokens that are masked",
     [](const ModelConfig& config) { return masked_lm(config, kModel); }, kMaskedLmReads,
     [](const ModelConfig& config, FieldProblems& problems) {
       find_masked_problems(config, kModel, problems);
     }},
};

}  // namespace tessera
