#pragma once
/// Learning which tokens are replaced: ELECTRA's pretraining.

#include "tessera/models/masked_lm.h"

namespace tessera {

/// The generator of a configuration's model, an encoder that is generator() wide: its heads are the
/// most that divide that width and are in proportion, one at least; its feed-forward layers are in
/// proportion too. It has as many layers, and the tables of tokens, positions and types.
ModelConfig generator_of(const ModelConfig& config);
/// Its heads; of a task without a generator, or where sizes are wrong, the model's own.
std::int64_t generator_heads(const ModelConfig& config);

/// Token ids drawn from softmax(logits): [b, ..., v] -> [b, ...] of i32. They depend on the place in
/// the whole tensor and on `step`, an i64 scalar (ops/random.h); without it, as in evaluation, on
/// the place in the sample alone: its batches may be of any size. No gradient flows. Of logits that
/// are split along v no rank gathers any.
Value drawn_tokens(Value logits, Value step, std::string_view name);

/// The task of two encoders. A generator learns tokens that are masked. Tokens that are drawn from
/// its logits take the place of these, and the discriminator learns which tokens of a sample differ
/// from the text's.
///
/// Inputs: as masked_lm of samples of one part, in which all masked tokens are [MASK]. Loss: the mean
/// cross-entropy of the masked tokens, and 50 times the mean binary cross-entropy of all tokens but
/// padding.
/// Blocks: embed, generator.layers.N, generator_mlm; corrupted (it has the parameters of embed),
/// layers.N, rtd.
/// Source: Clark et al. 2020, arXiv 2003.10555, section 2 and appendix A.
Task replaced_tokens(const ModelConfig& config, const MaskedModel& model);

/// FamilyTask::find_problems of it.
void find_replaced_token_problems(const ModelConfig& config, FieldProblems& problems);

/// FamilyTask::reads of it.
inline constexpr ReadField kReplacedTokensReads[] = {{"masked-positions"}, {"generator-width"}};

/// ModelFamily::stacks, of a model that has this task.
std::vector<LayerStack> stacks_with_generator(const ModelConfig& config);

}  // namespace tessera
