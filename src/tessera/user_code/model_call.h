#pragma once
/// model(batch): how transformers' models are called, where that is not how our tasks take their
/// inputs.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/models/family.h"
#include "tessera/models/task.h"

namespace tessera {

/// For messages about labels of another type.
inline constexpr const char* kTasksOfLabels =
    ", or open the model with the task of these labels: whole numbers are those of "
    "sequence_classification, fractions those of regression or multi_label_classification";

/// Something that model(batch) takes.
struct CallInput {
  TaskInput input;
  std::string_view hub;  // what Hugging Face calls it; as `input.name` where that is the same
  bool needed = true;    // false: a batch may lack it
};

struct ModelCall {
  std::vector<CallInput> inputs;
  /// Makes the inputs of the task of those that a batch has; none: they are these.
  std::function<void(TaskValues& values)> adapt = nullptr;
};

/// Of a task of that configuration:
/// - The labels of a causal model are those of the same tokens: it is they that are one later.
/// - A model that writes a text from another one takes the source as input_ids, and what it has
///   written as decoder_input_ids, which are made of the labels where there are none.
///   attention_mask says what of the source is seen; without one all but padding is.
/// - Causal models and their classifiers take an attention_mask; encoders token_type_ids, also with
///   tasks whose own samples have one type alone.
ModelCall model_call(const ModelConfig& config, const Task& task);

/// The input that a feature of this name is, with so many dims of a sample; nullptr: none.
const CallInput* find_input(const ModelCall& call, std::string_view feature);

/// Whether an input, by the task's name, belongs to the text from which another one is written.
bool is_of_source(const ModelConfig& config, std::string_view input);

/// Whether the model reads what fills up rows of ids, unless an attention_mask tells: a causal one
/// does not see what is behind a token.
bool reads_padding(const ModelConfig& config);
/// What is wrong with a sample that is filled up then.
std::string text_of_unmasked(std::int64_t sample);

}  // namespace tessera
