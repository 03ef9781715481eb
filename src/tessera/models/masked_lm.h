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

/// ModelFamily::find_problems.
void find_masked_problems(const ModelConfig& config, const MaskedModel& model,
                          FieldProblems& problems);

/// ModelFamily::cuts.
inline constexpr TensorCut kMaskedCuts[] = {{"mlm.bias", 0, 1}};

/// ModelFamily::reads.
inline constexpr ReadField kMaskedReads[] = {
    {"layers"},   {"heads"},     {"kv-heads"},   {"width"},   {"ffn-width"},
    {"context"},  {"positions"}, {"vocab-size"}, {"dropout"}, {"masked-positions"},
    {"norm-eps"}, {"init-std"}};

}  // namespace tessera
