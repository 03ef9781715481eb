#include "tessera/train/config.h"

#include <algorithm>
#include <map>

#include "tessera/base/divisors.h"
#include "tessera/base/size.h"
#include "tessera/base/text.h"
#include "tessera/train/fields.h"
#include "tessera/train/fit_memory.h"

namespace tessera {

namespace {

void find_batch_problems(const RunConfig& config, Problems& problems);

}  // namespace

CpuChoices choices_of(const RunConfig& config, const CpuChoices& machine) {
  CpuChoices out = machine;
  if (config.max_isa != "auto") {
    out.isa = parse_isa(config.max_isa, "max-isa");
    require(out.isa <= machine.isa, "max-isa ", config.max_isa, " is above ", to_text(machine.isa),
            ", the highest of this machine; give that or a lower one");
  }
  require(config.amx || config.max_isa == "auto" || out.isa < Isa::Amx, "max-isa ", config.max_isa,
          " and no-amx disagree; give one of them");
  if (!config.amx) out = out.at_most(Isa::Avx512Bf16);
  require(
      config.pack_weights == "auto" || config.pack_weights == "yes" || config.pack_weights == "no",
      "pack-weights is '", config.pack_weights, "'; it can be auto, yes or no");
  if (config.pack_weights != "auto") out.pack_weights = config.pack_weights == "yes";
  return out;
}

void complete(RunConfig& config) {
  if (config.choices) {
    config.max_isa = to_text(config.choices->isa);
    config.amx = config.choices->isa >= Isa::Amx;
    config.pack_weights = config.choices->pack_weights ? "yes" : "no";
  }
  ParallelConfig& parallel = config.parallel;
  // What find_problems refuses must not divide by zero before.
  const bool legal = parallel.tensor > 0 && parallel.context > 0 && parallel.pipeline > 0;
  const std::int64_t data = legal ? parallel.data() : 0;
  if (config.micro_batch_size == 0 && data > 0)
    config.micro_batch_size = (config.global_batch_size + data - 1) / data;
  const std::int64_t stage = config.zero_stage;
  parallel.shard_parameters = stage == 3 || config.zero3 || config.fsdp;
  parallel.shard_gradients = stage == 2 || config.zero2 || parallel.shard_parameters;
  parallel.shard_optimizer = stage == 1 || config.zero1 || parallel.shard_gradients;
  parallel.recompute = find_recompute(config.recompute_granularity)
                           .value_or(parallel.recompute);  // see find_problems
  if (config.checkpoint_activations) parallel.recompute = Recompute::Full;
  const bool standard = config.remote_device != kRemoteNone && !config.offload_optimizer &&
                        !config.offload_gradients && !config.offload_parameters &&
                        !config.offload_activations;
  parallel.offload = {config.offload_optimizer || standard, config.offload_gradients || standard,
                      config.offload_parameters, config.offload_activations};
  parallel.gather = find_gather_scope(config.fsdp_gather).value_or(parallel.gather);
  ModelConfig& model = config.model;
  // SwiGLU has three matrices where others have two: 8/3 of the width costs what 4 of it do there.
  if (model.family == "llama" && model.ffn_width == 0 && model.width > 0 &&
      model.width <= kMaxFieldSize)
    model.ffn_width = (8 * model.width + 11) / 12 * 4;
  ScheduleConfig& schedule = config.optimizer.schedule;
  if (schedule.decay_steps == 0)
    schedule.decay_steps = std::max(config.steps, schedule.warmup_steps + 1);
}

void complete_epochs(RunConfig& config, const RunConfig& told, std::int64_t windows) {
  if (config.epochs == 0) return;
  const std::int64_t samples =
      size_product({config.epochs, windows}, "samples (epochs x windows of the text)");
  config.steps = (samples + config.global_batch_size - 1) / config.global_batch_size;
  ScheduleConfig& schedule = config.optimizer.schedule;
  if (told.optimizer.schedule.decay_steps == 0)
    schedule.decay_steps = std::max(config.steps, schedule.warmup_steps + 1);
}

void find_problems(const RunConfig& config, Problems& problems) {
  ModelConfig model = config.model;
  if (model.vocabulary == 0) model.vocabulary = 1;  // the data will tell
  bool known = problems.gather([&] { find_model(model.family); });
  const std::vector<std::string> of_model = tessera::problems(model);
  for (const std::string& problem : of_model) {
    if (known) problems.add(problem);
  }
  if (of_model.empty()) problems.gather([&] { check_step_sizes(model, config.global_batch_size); });
  for (const std::string& problem : tessera::problems(config.optimizer)) problems.add(problem);

  for (const Field& field : fields()) {
    if (field.words.empty()) continue;
    const std::string word = get_text(field, config);
    if (std::ranges::find(field.words, word) == field.words.end())
      problems.add(text(field.name, " is '", word, "'; it can be ", join(field.words)));
  }
  problems.gather([&] { parse_memory_cap(config.memory_cap); });
  const bool in_file = config.remote_device == kRemoteFile;
  if (in_file && config.offload_folder.empty())
    problems.add(
        text("remote-device ", kRemoteFile, " needs a folder for its file; give offload-folder"));
  if (!in_file && !config.offload_folder.empty())
    problems.add(text("offload-folder ", config.offload_folder, " does nothing with remote-device ",
                      config.remote_device, "; give remote-device ", kRemoteFile,
                      ", or leave the folder out"));
  for (const std::string& problem : tessera::problems(config.parallel, model))
    problems.add(problem);
  const ParallelConfig& parallel = config.parallel;
  if (parallel.tensor < 1 || parallel.context < 1 || parallel.pipeline < 1 || parallel.data() < 1)
    return;
  find_batch_problems(config, problems);
}

namespace {

void find_batch_problems(const RunConfig& config, Problems& problems) {
  const std::int64_t data = config.parallel.data(), global = config.global_batch_size,
                     micro = config.micro_batch_size;
  if (global < data) {
    problems.add(text("global-batch-size ", global, " is less than the ", data,
                      " data parallel devices, some of which would have no sample; give at least ",
                      data, ", or fewer devices"));
  } else if (data > 1) {
    // Devices may have unequal shares of a step that is computed at once.
    if (micro * data >= global || global % (micro * data) == 0) return;
    const std::string remedy =
        global % data == 0
            ? text("micro-batch-size can be ", divisors(global / data))
            : text(
                  "without equal shares there are no micro-batches: give micro-batch-size 0, or "
                  "global-batch-size ",
                  global / data * data, " or ", (global / data + 1) * data);
    problems.add(text("micro-batch-size ", micro, " x ", data,
                      " data parallel devices does not divide global-batch-size ", global, "; ",
                      remedy));
  } else if (micro > global) {
    problems.add(text("micro-batch-size ", micro, " is above global-batch-size ", global,
                      "; lower the first or raise the second"));
  } else if (micro > 0 && global % micro != 0) {
    std::int64_t below = micro, above = micro;
    while (below > 1 && global % below != 0) --below;
    while (above < global && global % above != 0) ++above;
    problems.add(text("micro-batch-size ", micro, " does not divide global-batch-size ", global,
                      "; nearest are micro-batch-size ", below, " or ", above,
                      ", or global-batch-size ", global / micro * micro, " or ",
                      (global / micro + 1) * micro));
  }
}

}  // namespace

std::map<std::string, std::string> record_of(const RunConfig& config) {
  std::map<std::string, std::string> out;
  for (const Field& field : fields()) out[std::string(field.name)] = get_text(field, config);
  return out;
}

RunConfig config_of(const std::map<std::string, std::string>& record, const std::string& where) {
  RunConfig config;
  for (const Field& field : fields()) {
    const auto found = record.find(std::string(field.name));
    if (found == record.end()) continue;
    try {
      if (is_list(field)) {
        for (const std::string& value : split(found->second, '\n')) {
          if (!value.empty()) set_text(field, config, value, field.name);
        }
      } else {
        set_text(field, config, found->second, field.name);
      }
    } catch (const Error& error) {
      fail(Fault::Checkpoint, where, ": ", error.what(), " (in its configuration)");
    }
  }
  return config;
}

}  // namespace tessera
