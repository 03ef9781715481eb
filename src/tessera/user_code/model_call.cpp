#include "tessera/user_code/model_call.h"

#include <algorithm>
#include <utility>

#include "tessera/base/text.h"
#include "tessera/models/translation.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"

namespace tessera {

namespace {

/// What Hugging Face calls inputs of our tasks.
constexpr std::pair<std::string_view, std::string_view> kHubNames[] = {
    {"ids", "input_ids"},          {"mask", "attention_mask"},      {"types", "token_type_ids"},
    {"positions", "position_ids"}, {"next", "next_sentence_label"}, {"start", "start_positions"},
    {"end", "end_positions"},      {"patches", "pixel_values"},     {"source", "input_ids"},
};

std::string_view hub_name(std::string_view input) {
  for (const auto& [name, theirs] : kHubNames)
    if (name == input) return theirs;
  return input;
}

CallInput* find_by_name(ModelCall& call, std::string_view name) {
  const auto found =
      std::ranges::find(call.inputs, name, [](const CallInput& one) { return one.input.name; });
  return found == call.inputs.end() ? nullptr : &*found;
}

/// What each head makes otherwise.
using Change = void (*)(ModelCall& call, const ModelConfig& config);

void may_have(ModelCall& call, TaskInput input) {
  if (find_by_name(call, input.name) != nullptr) return;
  const std::string_view hub = hub_name(input.name);
  call.inputs.push_back({std::move(input), hub, /*needed=*/false});
}

/// labels [b, s] of tokens as those of the tokens before: one further left, none at the end.
Value of_tokens_before(Value labels) {
  const std::int64_t b = labels.shape()[0], s = labels.shape()[1];
  const Value none = broadcast_to(labels.builder().constant(kIgnoredLabel, DType::I32), {b, 1});
  return s == 1 ? none : concat({slice(labels, 1, 1, s - 1), none}, 1);
}

void change_causal(ModelCall& call, const ModelConfig& config) {
  may_have(call, {"mask", DType::I32, {config.context}, 2});
  call.adapt = [](TaskValues& values) {
    Value& labels = values.at("labels");
    labels = of_tokens_before(labels);
  };
}

/// What a decoder has read before it writes each of the labels [b, s]: its start and the labels
/// before, padding where there is none.
Value read_before(const ModelConfig& config, Value labels) {
  const TranslationTokens tokens = translation_tokens(config);
  Builder& builder = labels.builder();
  const std::int64_t b = labels.shape()[0], s = labels.shape()[1];
  const auto all = [&](std::int32_t token) { return builder.constant(token, DType::I32); };
  const Value start = broadcast_to(all(tokens.start), {b, 1});
  if (s == 1) return start;
  const Value before = slice(labels, 1, 0, s - 1);
  return concat({start, select(equal(before, all(kIgnoredLabel)), all(tokens.pad), before)}, 1);
}

void change_translation(ModelCall& call, const ModelConfig& config) {
  CallInput& ids = *find_by_name(call, "ids");
  ids.hub = "decoder_input_ids";
  ids.needed = false;
  may_have(call, {"mask", DType::I32, {config.source()}, 2});
  call.adapt = [config](TaskValues& values) {
    if (!values.contains("ids")) values.emplace("ids", read_before(config, values.at("labels")));
  };
}

/// Rows of the table of types: one where no task of the family has types.
std::int64_t types_of(const ModelConfig& config) {
  ModelConfig other = config;
  for (const FamilyTask& task : config.family->tasks) {
    other.task = task.name;
    for (const TaskInput& input : task.make(other).inputs)
      if (input.name == "types") return input.values;
  }
  return 1;
}

void change_encoder(ModelCall& call, const ModelConfig& config) {
  may_have(call, {"types", DType::I32, {config.context}, types_of(config)});
}

/// Choices may have types, too.
void change_choices(ModelCall& call, const ModelConfig& config) {
  const Shape sample = find_by_name(call, "ids")->input.sample;
  may_have(call, {"types", DType::I32, sample, types_of(config)});
}

/// A causal model's classifier needs no mask.
void change_classifier(ModelCall& call, const ModelConfig& config) {
  if (find_by_name(call, "mask") != nullptr) return change_encoder(call, config);
  may_have(call, {"mask", DType::I32, {config.context}, 2});
}

constexpr std::pair<TaskHead, Change> kChanges[] = {
    {TaskHead::CausalLm, change_causal},
    {TaskHead::Seq2SeqLm, change_translation},
    {TaskHead::MaskedLm, change_encoder},
    {TaskHead::SequenceClassification, change_classifier},
    {TaskHead::TokenClassification, change_classifier},
    {TaskHead::QuestionAnswering, change_encoder},
    {TaskHead::MultipleChoice, change_choices},
};

}  // namespace

ModelCall model_call(const ModelConfig& config, const Task& task) {
  ModelCall out;
  for (const TaskInput& input : task.inputs) out.inputs.push_back({input, hub_name(input.name)});
  for (const auto& [head, change] : kChanges)
    if (has_head(config, head)) change(out, config);
  return out;
}

const CallInput* find_input(const ModelCall& call, std::string_view feature) {
  const auto named = [&](auto name) {
    const auto found = std::ranges::find(call.inputs, feature, name);
    return found == call.inputs.end() ? nullptr : &*found;
  };
  const CallInput* const ours =
      named([](const CallInput& one) { return std::string_view(one.input.name); });
  return ours != nullptr ? ours : named(&CallInput::hub);
}

bool is_of_source(const ModelConfig& config, std::string_view input) {
  return has_head(config, TaskHead::Seq2SeqLm) && (input == "source" || input == "mask");
}

bool reads_padding(const ModelConfig& config) { return !has_head(config, TaskHead::CausalLm); }

std::string text_of_unmasked(std::int64_t sample) {
  return text("sample ", sample, " of the dataset is shorter than the context, and the model ",
              "would read what fills it up; give samples an attention_mask, or all the same ",
              "length");
}

}  // namespace tessera
