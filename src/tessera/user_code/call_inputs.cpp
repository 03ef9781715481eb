#include "tessera/user_code/call_inputs.h"

#include <algorithm>
#include <span>

#include "tessera/base/text.h"
#include "tessera/data/images.h"
#include "tessera/models/family.h"
#include "tessera/models/translation.h"
#include "tessera/tensor/ignored_label.h"

namespace tessera {

namespace {

/// Heads whose call is transformers' model(**inputs).
constexpr TaskHead kCalledHeads[] = {TaskHead::PreTraining,
                                     TaskHead::MaskedLm,
                                     TaskHead::CausalLm,
                                     TaskHead::Seq2SeqLm,
                                     TaskHead::SequenceClassification,
                                     TaskHead::TokenClassification,
                                     TaskHead::QuestionAnswering,
                                     TaskHead::MultipleChoice,
                                     TaskHead::ImageClassification};

/// Labels without which there is no loss, and nothing else is missing.
constexpr std::string_view kLossLabels[] = {"labels", "next", "start", "end"};
bool is_loss_label(std::string_view name) {
  return std::ranges::find(kLossLabels, name) != std::end(kLossLabels);
}

/// Of a text, not of its tokens.
bool is_number_label(const TaskInput& input) {
  return input.dtype == DType::F32 && input.ignorable;
}

/// Of a row of texts.
bool is_of_choices(const TaskInput& input) {
  return input.dtype == DType::I32 && input.sample.ndim() == 2;
}

/// "input_ids, attention_mask (not needed)"
std::string read_text(const ModelCall& call) {
  std::vector<std::string> out;
  for (const CallInput& one : call.inputs) out.emplace_back(one.hub);
  return join(out);
}

/// A learned row for each position; else positions of any number are computed.
bool has_position_table(const ModelConfig& config, const char* field) {
  return reads_field(config, field) && !config.family->layer.rotary && !config.family->slopes;
}

/// Sources have a table of positions of their own, where the family does not tell its size too.
bool has_source_table(const ModelConfig& config) {
  return has_position_table(
      config, reads_field(config, "source-positions") ? "source-positions" : "positions");
}

Task called_task(const ModelConfig& config) {
  const bool known =
      std::ranges::any_of(kCalledHeads, [&](TaskHead head) { return has_head(config, head); });
  require(known, "task ", family_task(config).name, " of family ", config.family,
          " is not one that is called; open the model with another task");
  return task_of(config);
}

}  // namespace

CallSizes most_tokens(const ModelConfig& config) {
  const bool source = has_head(config, TaskHead::Seq2SeqLm);
  return {
      0, has_position_table(config, "positions") ? std::max(config.context, config.positions) : 0,
      source && has_source_table(config) ? std::max(config.source(), config.source_positions) : 0};
}

ModelConfig at_sizes(const ModelConfig& config, const CallSizes& sizes) {
  ModelConfig out = config;
  out.masked_positions = 0;
  if (out.positions == 0 && reads_field(out, "positions")) out.positions = out.context;
  if (sizes.source > 0) {
    if (out.source_positions == 0 && has_source_table(out)) out.source_positions = out.source();
    out.source_context = sizes.source;
  }
  if (sizes.length > 0) out.context = sizes.length;
  if (sizes.choices > 0) out.texts = sizes.choices;
  if (out.positions > 0 && !has_position_table(out, "positions"))
    out.positions = std::max(out.positions, out.context);
  return out;
}

CallInputs::CallInputs(const ModelConfig& config, const NamedTensors& given,
                       std::optional<std::int32_t> end_padding)
    : config_(at_sizes(config, {})), task_(called_task(config_)), end_padding_(end_padding) {
  const ModelCall call = model_call(config_, task_);
  for (const auto& [name, value] : given) take(call, name, value);
  require(!given_.empty(), "the call has no tensors; the model reads ", read_text(call));
  take_sizes();
  for (const auto& [name, one] : given_) require_numbers(one);
  for (const CallInput& one : call.inputs) {
    const std::string& name = one.input.name;
    if (one.needed || given_.contains(name)) names_.insert(name);
  }
  require_all();
}

void CallInputs::take(const ModelCall& call, const std::string& name, const HostTensor& value) {
  const CallInput* const input = find_input(call, name);
  require(input != nullptr, "the call has ", name, ", and family ", config_.family, " with task ",
          task_.name, " reads ", read_text(call), "; leave it out");
  const auto [at, is_new] = given_.emplace(input->input.name, Given{*input, name, HostTensor()});
  require(is_new, "the call has ", at->second.name, " and ", name,
          ", which are the same; give one");
  at->second.value = value;
  at->second.value = as_read(at->second);
  has_labels_ = has_labels_ || is_loss_label(input->input.name);
}

/// Pictures are cut into patches.
HostTensor CallInputs::as_read(const Given& given) const {
  const HostTensor& value = given.value;
  const TaskInput& input = given.input.input;
  if (input.name == "patches" && value.shape().ndim() == 4) {
    const std::int64_t c = config_.image_channels, s = config_.image_size;
    const Shape &is = value.shape(), wanted{is[0], c, s, s};
    require(is == wanted && value.dtype() == DType::F32, given.name, " is ", value.type(),
            ", and the model reads f32", wanted, "; resize the pictures");
    HostTensor out(DType::F32, {is[0], input.sample[0], input.sample[1]});
    const auto pixels = static_cast<std::size_t>(c * s * s);
    for (std::int64_t i = 0; i < is[0]; ++i) {
      const std::size_t at = static_cast<std::size_t>(i) * pixels;
      cut_to_patches({{value.data<float>() + at, pixels}, c, s, s}, config_.patch_size,
                     {out.data<float>() + at, pixels});
    }
    return out;
  }
  require(value.dtype() == input.dtype, given.name, " is ", value.type(), ", and the model reads ",
          input.dtype == DType::I32 ? "whole numbers" : "f32", "; convert it",
          input.name == "labels" ? kTasksOfLabels : "");
  if (is_number_label(input) && value.shape().ndim() == 1 && input.sample == Shape({1})) {
    const float* const numbers = value.data<float>();
    return HostTensor::of({value.numel(), 1}, std::vector<float>(numbers, numbers + value.numel()));
  }
  require(value.shape().ndim() == input.sample.ndim() + 1, given.name, " is ", value.type(),
          ", and the model reads [batch",
          is_of_choices(input)       ? ", choices, length]"
          : input.sample.ndim() == 0 ? "]"
          : input.sample.ndim() == 1 ? ", length]"
                                     : ", length] of patches, or [batch, channels, height, width]");
  require(!is_number_label(input) || value.shape()[1] == input.sample[0], given.name, " is ",
          value.type(), ", and the model predicts ", input.sample[0],
          " for each row; give as many, or open it with other classes");
  return value;
}

void CallInputs::take_sizes() {
  const CallSizes most = most_tokens(config_);
  std::map<std::int64_t*, const Given*> first;
  const auto agree = [&](std::int64_t& size, const Given& given, int dim, const char* what,
                         std::int64_t limit) {
    const std::int64_t is = given.value.shape()[dim];
    require(is > 0, given.name, " is ", given.value.type(), ", without any ", what);
    require(limit == 0 || is <= limit, given.name, " has ", is, " tokens in a row, and the model ",
            "sees at most ", limit, "; cut it");
    const auto [at, is_new] = first.emplace(&size, &given);
    if (is_new) size = is;
    require(size == is, given.name, " has ", is, " ", what, ", and ", at->second->name, " has ",
            size, "; give as many");
  };
  for (const auto& [name, given] : given_) {
    agree(sizes_.rows, given, 0, "rows", 0);
    if (is_of_choices(given.input.input)) {
      agree(sizes_.choices, given, 1, "choices", 0);
      agree(sizes_.length, given, 2, "tokens in a row", most.length);
      continue;
    }
    if (given.input.input.sample.ndim() != 1 || is_number_label(given.input.input)) continue;
    const bool source = is_of_source(config_, name);
    agree(source ? sizes_.source : sizes_.length, given, 1, "tokens in a row",
          source ? most.source : most.length);
  }
}

void CallInputs::require_numbers(const Given& given) const {
  const TaskInput& input = given.input.input;
  if (input.dtype != DType::I32) return;
  // Places are those of this call.
  const bool place = input.name == "last" || input.name == "start" || input.name == "end" ||
                     input.name == "positions" || input.name == "first_seen";
  const bool choice = input.name == "labels" && sizes_.choices > 0;
  const std::int64_t values = place ? sizes_.length : choice ? sizes_.choices : input.values;
  const std::int32_t* const at = given.value.data<std::int32_t>();
  for (std::int64_t i = 0; i < given.value.numel(); ++i) {
    if (at[i] >= 0 && (values == 0 || at[i] < values)) continue;
    if (input.ignorable && at[i] == kIgnoredLabel) continue;
    const std::int64_t in_row = given.value.numel() / sizes_.rows;
    fail(Fault::Data, given.name, " has ", at[i], " in row ", i / in_row,
         in_row > 1 ? text(", place ", i % in_row) : "", "; it must be from 0 to ", values - 1,
         input.ignorable ? ", or -100 for what does not count" : "");
  }
}

void CallInputs::require_all() {
  const bool writes_from_source = has_head(config_, TaskHead::Seq2SeqLm);
  const auto need = [&](const char* input, const char* theirs) {
    require(given_.contains(input), "the call has no ", theirs, ", which family ", config_.family,
            " with task ", task_.name, " reads");
  };
  if (!writes_from_source)
    return need(task_.inputs.front().name.c_str(),
                task_.inputs.front().name == "patches" ? "pixel_values" : "input_ids");
  need("source", "input_ids");
  require(given_.contains("ids") || given_.contains("labels"),
          "the call has no decoder_input_ids and no labels, so nothing says what is written; give "
          "one, or call generate()");
}

const CallInputs::Given* CallInputs::find(std::string_view input) const {
  const auto found = given_.find(input);
  return found == given_.end() ? nullptr : &found->second;
}

/// transformers: the last token that is no padding, whatever it is where nothing is known of that.
std::int32_t CallInputs::last_token(std::int64_t row) const {
  const HostTensor& ids = find("ids")->value;
  const Given* const mask = find("mask");
  for (std::int64_t at = sizes_.length - 1; at > 0; --at) {
    const std::int64_t i = row * sizes_.length + at;
    const bool padding = end_padding_ ? ids.data<std::int32_t>()[i] == *end_padding_
                                      : mask != nullptr && mask->value.data<std::int32_t>()[i] == 0;
    if (!padding) return static_cast<std::int32_t>(at);
  }
  return 0;
}

std::int32_t CallInputs::usual(std::string_view name, std::int64_t row, std::int64_t at) const {
  const bool given_row = row < sizes_.rows * std::max<std::int64_t>(sizes_.choices, 1);
  if (is_loss_label(name)) return kIgnoredLabel;
  if (name == "mask") {
    const std::int64_t length = is_of_source(config_, name) ? sizes_.source : sizes_.length;
    // Of a row that is not there something is seen: a softmax of nothing is no number.
    return at == 0 || (given_row && at < length) ? 1 : 0;
  }
  if (name == "positions") return static_cast<std::int32_t>(at);
  if (name == "last") return given_row ? last_token(row) : 0;
  if ((name == "ids" || name == "source") && has_head(config_, TaskHead::Seq2SeqLm))
    return translation_tokens(config_).pad;
  return 0;
}

void CallInputs::fill(std::string_view name, const Shape& shape, std::span<std::byte> out) const {
  const Given* const given = find(name);
  const auto input = std::ranges::find(task_.inputs, name, &TaskInput::name);
  // Rows of tokens: of choices, each of them.
  const std::int64_t each = shape.ndim() == 3 && sizes_.choices > 0 ? sizes_.choices : 1,
                     rows = shape[0] * each, given_rows = sizes_.rows * each,
                     in_row = shape.numel() / rows,
                     theirs = given == nullptr ? 0 : given->value.numel() / given_rows;
  if (input != task_.inputs.end() && input->dtype == DType::F32) {
    const std::span numbers(reinterpret_cast<float*>(out.data()), out.size() / sizeof(float));
    std::ranges::fill(numbers, input->ignorable ? kIgnoredNumber : 0.0F);
    if (given != nullptr) std::ranges::copy(given->value.bytes(), out.begin());
    return;
  }
  auto* const to = reinterpret_cast<std::int32_t*>(out.data());
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t at = 0; at < in_row; ++at) {
      const bool there = row < given_rows && at < theirs;
      to[row * in_row + at] =
          there ? given->value.data<std::int32_t>()[row * theirs + at] : usual(name, row, at);
      // Padding of a given mask, and what lies behind what was given, is not seen.
      if (!there && given != nullptr && name == "mask" && row < given_rows)
        to[row * in_row + at] = 0;
    }
  }
}

}  // namespace tessera
