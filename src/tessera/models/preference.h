#pragma once
/// The task of learning from preferences (DPO): of two answers to a prompt, the one that was chosen
/// becomes likelier than the other, compared with the model that training began with.

#include "tessera/models/family.h"
#include "tessera/models/preference_config.h"

namespace tessera {

/// A sample is a pair of answers with their prompt.
///
/// Inputs: those of data/preference_pairs.h. With r = beta (log p(answer) - log q(answer)), where p
/// is the model, q the one that training began with, without dropout, and logarithms are sums over
/// the tokens of an answer, the loss is preference_loss(r(chosen) - r(rejected)), the mean over
/// pairs. Of a model with adapters q is the same one without them; of others, parameters have
/// states of Role::Reference. Means: rewards/chosen and rewards/rejected, r; rewards/margins, their
/// difference; rewards/accuracies, the share of pairs where it is above 0.
/// Source: Rafailov et al. 2023, arXiv 2305.18290; names as TRL's.
Task preference(const ModelConfig& config);

inline constexpr ReadField kPreferenceReads[] = {{"dpo-beta"}, {"dpo-label-smoothing"}};
void find_preference_problems(const ModelConfig& config, FieldProblems& problems);

}  // namespace tessera
