#include "tessera/planner/choice.h"

#include <algorithm>
#include <array>

#include "tessera/base/index.h"
#include "tessera/base/text.h"
#include "tessera/train/fields.h"
#include "tessera/train/memory_choice.h"

namespace tessera {

namespace {

constexpr std::array<std::string_view, 18> kChosen = {
    "devices",
    "tensor-model-parallel-size",
    "sequence-parallel",
    "context-parallel-size",
    "pipeline-model-parallel-size",
    "pipeline-schedule",
    "virtual-pipeline-stages",
    "pipeline-layout",
    "micro-batch-size",
    "zero-stage",
    "optimizer-shard-size",
    "recompute-granularity",
    "recompute-layers",
    "offload-optimizer",
    "offload-gradients",
    "offload-parameters",
    "offload-activations",
    "rank-order",
};

/// "0-3,8": numbers that rise, as ranges.
std::string ranges_text(const std::vector<std::int64_t>& numbers) {
  std::vector<std::string> out;
  for (std::size_t first = 0, last = 0; first < numbers.size(); first = last + 1) {
    for (last = first; last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1;) ++last;
    out.push_back(first == last ? text(numbers[first]) : text(numbers[first], "-", numbers[last]));
  }
  std::string joined;
  for (const std::string& each : out) joined += text(joined.empty() ? "" : ",", each);
  return joined;
}

/// The layers that are computed again; "all".
std::string layers_text(const PlanChoice& choice, std::int64_t layers) {
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

std::string layout_text(const std::vector<std::int64_t>& layout) {
  std::string out;
  for (const std::int64_t layers : layout) out += text(out.empty() ? "" : ",", layers);
  return out;
}

/// "3, 14 x 4, 3": the same without repetitions.
std::string runs_text(const std::vector<std::int64_t>& layout) {
  std::vector<std::string> out;
  for (std::size_t first = 0, end = 0; first < layout.size(); first = end) {
    for (end = first; end < layout.size() && layout[end] == layout[first];) ++end;
    out.push_back(end - first == 1 ? text(layout[first]) : text(end - first, " x ", layout[first]));
  }
  return join(out);
}

void set_floats(RunConfig& out, Floats floats) {
  if (floats == Floats::AsAsked) return;
  out.mixed_precision = false;
  out.bf16 = floats == Floats::BF16;
  out.fp16 = floats == Floats::F16;
}

/// What is told otherwise: what a PlanChoice says in other words, and what is no part of how a run
/// is planned.
bool is_told_apart(std::string_view name) {
  constexpr std::array<std::string_view, 13> kApart = {"preset",
                                                       "memory-cap",
                                                       "machine",
                                                       "data",
                                                       "valid-data",
                                                       "data-parallel-size",
                                                       "zero-1-memory-optimization",
                                                       "zero-2-memory-optimization",
                                                       "zero-3-memory-optimization",
                                                       "fsdp-memory-optimization",
                                                       "checkpoint-activations",
                                                       "remote-device",
                                                       "offload-folder"};
  return std::ranges::find(kApart, name) != kApart.end();
}

bool says_floats(std::string_view name) {
  return name == "mixed-precision" || name == "bf16" || name == "fp16";
}

void add_flag(const Field& field, const RunConfig& config, std::vector<std::string>& out) {
  const std::string value = get_text(field, config);
  if (is_switch(field)) {
    out.push_back(text(value == "true" ? "--" : "--no-", field.name));
  } else if (!value.empty() && value.find(' ') == std::string::npos) {
    out.push_back(text("--", field.name));
    out.push_back(value);
  }
}

}  // namespace

RunConfig with(const RunConfig& base, const PlanChoice& choice) {
  RunConfig out = base;
  ParallelConfig& parallel = out.parallel;
  parallel.devices = choice.devices();
  parallel.tensor = choice.tensor;
  parallel.context = choice.context;
  parallel.pipeline = choice.pipeline;
  parallel.sequence = choice.sequence;
  const bool several = choice.pipeline > 1;
  parallel.schedule = several ? choice.schedule : ParallelConfig().schedule;
  parallel.virtual_stages = several ? choice.chunks : 0;
  parallel.layout = several ? layout_text(choice.layout) : "";
  if (!choice.order.empty()) parallel.rank_order = choice.order;
  out.data_parallel = 0;
  out.zero_stage = choice.zero;
  out.zero1 = out.zero2 = out.zero3 = out.fsdp = false;
  parallel.shard_size = choice.zero > 0 ? choice.shard_size : 0;
  set_floats(out, choice.floats);
  set_memory_choice(out, {choice.recompute, layers_text(choice, layer_count(base.model)),
                          choice.micro_batch_size, choice.offload});
  complete(out);
  return out;
}

std::vector<std::string> plan_flags(const RunConfig& base, const PlanChoice& choice) {
  const RunConfig config = with(base, choice);
  std::vector<std::string> out;
  for (const Field& field : fields()) {
    const bool chosen = std::ranges::find(kChosen, field.name) != kChosen.end();
    const bool floats = says_floats(field.name) && choice.floats != Floats::AsAsked;
    const bool asked = base.asked_for.contains(field.name) || floats;
    if (chosen || !asked || !field.in_plan || is_told_apart(field.name)) continue;
    if (floats && field.name == "mixed-precision") continue;
    add_flag(field, config, out);
  }
  for (const std::string_view name : kChosen) {
    if (const Field* field = find_field(name).field) add_flag(*field, config, out);
  }
  return out;
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
  if (c.recompute != Recompute::None && !c.recomputed.empty())
    out += text(" of ", again, " layers");
  for (const std::string& word : offload_words(c.offload)) out += text(", offload ", word);
  if (c.floats == Floats::BF16) out += ", bf16";
  if (c.floats == Floats::F16) out += ", fp16";
  if (c.floats == Floats::F32) out += ", f32";
  return out;
}

}  // namespace tessera
