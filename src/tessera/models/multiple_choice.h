#pragma once
/// The task of telling which of several texts answers another one, or goes on with it.

#include <memory>
#include <span>

#include "tessera/models/classification.h"

namespace tessera {

/// A sample is a text and its choices. The encoder reads each choice as the second text of a pair,
/// and a head of texts with one class makes a number of it, as in transformers' ...ForMultipleChoice
/// (MaskedModel::choice_head); the loss is the mean cross-entropy of the right one among the choices
/// of its sample. Inputs and samples: those of data/text_groups.h in pairs. A choice without a token
/// that is seen is none. Means: loss, accuracy. Predicted: logits [b, choices].
Task multiple_choice(const ModelConfig& config, const MaskedModel& model);

/// Judges logits [batch, choices], by the name "logits", of the held-out rows of `data`. Score:
/// accuracy. Table: row, label, prediction; the last two are numbers of choices, from 0.
std::unique_ptr<Judge> choice_judge_of_rows(const Dataset& data);

/// FamilyTask::reads and find_problems.
inline constexpr ReadField kChoiceReads[] = {{"texts"}, {"classifier-dropout"}, {"pooling"}};
constexpr std::span<const ReadField> choice_reads(const MaskedModel& model) {
  const bool own_rate = !model.choice_head || !model.choice_head->drops_as_layers;
  return std::span(kChoiceReads).first(model.may_pool ? 3 : own_rate ? 2 : 1);
}
void find_choice_problems(const ModelConfig& config, FieldProblems& problems);

/// The row of an encoder's family.
template <const MaskedModel& kModel>
constexpr FamilyTask choice_task() {
  return {kMultipleChoice,
          [](const ModelConfig& config) { return multiple_choice(config, kModel); },
          choice_reads(kModel), find_choice_problems, /*head=*/"classifier"};
}

}  // namespace tessera
