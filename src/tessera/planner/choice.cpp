#include "tessera/planner/choice.h"

#include <algorithm>

#include "tessera/base/counted.h"
#include "tessera/base/text.h"
#include "tessera/config/fields.h"
#include "tessera/models/family.h"
#include "tessera/models/layer.h"
#include "tessera/planner/knobs.h"
#include "tessera/train/memory_choice.h"

namespace tessera {

namespace {

/// "3, 14 x 4, 3": the same without repetitions.
std::string runs_text(const std::vector<std::int64_t>& layout) {
  std::vector<std::string> out;
  for (std::size_t first = 0, end = 0; first < layout.size(); first = end) {
    for (end = first; end < layout.size() && layout[end] == layout[first];) ++end;
    out.push_back(end - first == 1 ? text(layout[first]) : text(end - first, " x ", layout[first]));
  }
  return join(out);
}

/// "0-3,8": numbers that rise, as ranges.
std::string ranges_text(const std::vector<std::int64_t>& numbers) {
  std::vector<std::string> out;
  for (std::size_t first = 0, last = 0; first < numbers.size(); first = last + 1) {
    for (last = first; last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1;) ++last;
    out.push_back(first == last ? text(numbers[first]) : text(numbers[first], "-", numbers[last]));
  }
  return join(out, ",");
}

/// The layers that are computed again; "all".
std::string layers_text(const PlanChoice& choice, std::int64_t layers) {
  if (!choice.given_layers.empty()) return choice.given_layers;
  if (choice.recomputed.empty()) return "all";
  const std::vector<std::int64_t> one = {layers};
  const std::vector<std::int64_t>& layout = choice.layout.empty() ? one : choice.layout;
  std::vector<std::int64_t> out;
  std::int64_t first = 0;
  for (std::size_t c = 0; c < layout.size(); ++c) {
    for (std::int64_t i = 0; i < std::min(choice.recomputed[c], layout[c]); ++i)
      out.push_back(first + i);
    first += layout[c];
  }
  return std::ssize(out) == layers ? "all" : ranges_text(out);
}

/// What a plan chooses in other words, and the cap, which has been kept.
bool is_said_otherwise(std::string_view name) {
  return name == "memory-cap" || std::ranges::any_of(knobs(), [&](const Knob& knob) {
           const std::vector<std::string> others = split(knob.others, ' ');
           return std::ranges::find(others, name) != others.end();
         });
}

}  // namespace

ParallelConfig parallel_of(const RunConfig& base, const PlanChoice& choice) {
  const bool stages = choice.pipeline > 1;
  ParallelConfig out = base.parallel;
  out.devices = choice.devices();
  out.tensor = choice.tensor;
  out.context = choice.context;
  out.pipeline = choice.pipeline;
  out.experts = choice.experts;
  out.sequence = choice.sequence;
  out.schedule = stages ? choice.schedule : kUsualSchedule;
  out.virtual_stages = stages ? choice.chunks : 0;
  out.layout = stages ? join(choice.layout, ",") : "";
  out.shard_size = choice.zero > 0 ? choice.shard_size : 0;
  out.recompute = choice.recompute;
  out.recompute_layers = layers_text(choice, layer_count(base.model));
  out.offload = choice.offload;
  if (!choice.order.empty()) out.rank_order = choice.order;
  return out;
}

RunConfig with(const RunConfig& base, const PlanChoice& choice) {
  RunConfig out = base;
  out.parallel = parallel_of(base, choice);
  out.data_parallel = 0;
  out.micro_batch_size = choice.micro_batch_size;
  out.zero_stage = choice.zero;
  out.zero1 = out.zero2 = out.zero3 = out.fsdp = false;
  out.recompute_granularity = to_text(choice.recompute);
  out.checkpoint_activations = false;
  out.offload_optimizer = choice.offload.moments;
  out.offload_gradients = choice.offload.gradients;
  out.offload_parameters = choice.offload.parameters;
  out.offload_activations = choice.offload.activations;
  if (choice.floats != Floats::AsAsked) {
    out.bf16 = choice.floats == Floats::BF16;
    out.fp16 = choice.floats == Floats::F16;
    out.mixed_precision = false;
  }
  complete(out);
  return out;
}

bool may_be_in_plan(const Field& field) {
  if (field.name == "preset" || field.name == "machine") return true;
  const bool names_data =
      field.name == "data" || field.name == "valid-data" || field.name == "test-data";
  return field.in_plan && field.group != FieldGroup::Run && !names_data;
}

std::vector<const Field*> plan_fields(const RunConfig& base, const PlanChoice& choice) {
  std::vector<const Field*> out;
  const auto is_knob = [](std::string_view name) {
    return std::ranges::find(knobs(), name, &Knob::field) != knobs().end();
  };
  for (const Field& field : fields()) {
    const bool named = (field.name == "preset" && !base.preset.empty()) ||
                       (field.name == "machine" && !base.machine.empty());
    const bool asked = base.given.contains(field.name) && field.in_plan;
    if ((named || asked) && !is_knob(field.name) && !is_said_otherwise(field.name))
      out.push_back(&field);
  }
  for (const Knob& knob : knobs()) {
    const bool chosen =
        knob.written == Knob::Written::Always ||
        (knob.written == Knob::Written::WithExperts ? has_experts(base.model)
                                                    : choice.floats != Floats::AsAsked);
    if (knob.written != Knob::Written::No && (chosen || base.given.contains(knob.field)))
      out.push_back(find_field(knob.field).field);
  }
  return out;
}

std::vector<std::string> plan_flags(const RunConfig& base, const PlanChoice& choice) {
  const RunConfig config = with(base, choice);
  std::vector<std::string> out;
  for (const Field* field : plan_fields(base, choice)) {
    const std::string value = get_text(*field, config);
    if (is_switch(*field)) {
      out.push_back(text(value == "true" ? "--" : "--no-", field->name));
    } else if (!value.empty()) {
      out.push_back(text("--", field->name));
      for (std::string& word : split(value, '\n')) out.push_back(std::move(word));  // of a list
    }
  }
  return out;
}

std::string plan_text(const RunConfig& base, const PlanChoice& choice) {
  std::vector<std::string> words = plan_flags(base, choice);
  for (std::string& word : words)
    if (word.find(' ') != std::string::npos) word = text("'", word, "'");
  return join(words, " ");
}

std::string to_text(const PlanChoice& c) {
  std::vector<std::string> sizes;
  const auto add = [&](const char* name, std::int64_t size) {
    if (size > 1) sizes.push_back(text(name, " ", size));
  };
  add("dp", c.data);
  add("cp", c.context);
  add("tp", c.tensor);
  add("pp", c.pipeline);
  std::string out = sizes.empty() ? "one device" : sizes[0];
  for (std::size_t i = 1; i < sizes.size(); ++i) out += text(" x ", sizes[i]);
  if (c.experts > 1) out += text(", experts over ", c.experts);
  if (c.sequence) out += ", sequence parallel";
  if (!c.order.empty()) out += text(", order ", c.order);
  if (c.pipeline > 1) {
    out += text(", ", c.schedule);
    if (c.chunks > 1) out += text(" with ", c.chunks, " chunks a stage");
    if (!c.layout.empty()) out += text(", layers ", runs_text(c.layout));
  }
  out += text(", micro-batch ", c.micro_batch_size);
  if (c.zero > 0) out += text(", ZeRO-", c.zero);
  if (c.zero > 0 && c.shard_size > 0) out += text(" in groups of ", c.shard_size);
  if (c.recompute != Recompute::None) out += text(", recompute ", to_text(c.recompute));
  std::int64_t again = 0;
  for (const std::int64_t layers : c.recomputed) again += layers;
  if (c.recompute != Recompute::None && !c.given_layers.empty()) {
    out += text(" of layers ", c.given_layers);
  } else if (c.recompute != Recompute::None && !c.recomputed.empty()) {
    out += text(" of ", counted(again, "layer"));
  }
  for (const std::string& word : offload_words(c.offload)) out += text(", offload ", word);
  if (c.floats == Floats::BF16) out += ", bf16";
  if (c.floats == Floats::F16) out += ", fp16";
  if (c.floats == Floats::F32) out += ", f32";
  return out;
}

}  // namespace tessera
