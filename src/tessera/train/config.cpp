#include "tessera/train/config.h"

#include <algorithm>

#include "tessera/base/divisors.h"
#include "tessera/base/size.h"
#include "tessera/base/text.h"
#include "tessera/base/words.h"
#include "tessera/train/family_fields.h"
#include "tessera/train/fields.h"
#include "tessera/train/memory_cap.h"

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
  parallel.recompute = find_word<Recompute>(kRecomputes, config.recompute_granularity)
                           .value_or(parallel.recompute);  // see find_problems
  if (config.checkpoint_activations) parallel.recompute = Recompute::Full;
  parallel.offload = {config.offload_optimizer, config.offload_gradients, config.offload_parameters,
                      config.offload_activations};
  if (config.remote_device != kRemoteNone && !parallel.offload.any())
    parallel.offload.moments = parallel.offload.gradients = true;
  parallel.gather =
      find_word<GatherScope>(kGatherScopes, config.fsdp_gather).value_or(parallel.gather);
  complete(config.model);
  if (!config.no_weight_decay_for.empty())
    set_last(config.optimizer.groups, {.paths = config.no_weight_decay_for, .weight_decay = 0});
  ScheduleConfig& schedule = config.optimizer.schedule;
  if (schedule.decay_steps == 0)
    schedule.decay_steps = std::max(config.steps, schedule.warmup_steps + 1);
}

void complete_epochs(RunConfig& config, const RunConfig& told, std::int64_t in_epoch) {
  if (config.epochs == 0) return;
  const std::int64_t samples =
      size_product({config.epochs, in_epoch}, "samples (epochs x samples of the data)");
  config.steps = (samples + config.global_batch_size - 1) / config.global_batch_size;
  ScheduleConfig& schedule = config.optimizer.schedule;
  if (told.optimizer.schedule.decay_steps == 0)
    schedule.decay_steps = std::max(config.steps, schedule.warmup_steps + 1);
}

void find_problems(const RunConfig& config, Problems& problems) {
  ModelConfig model = config.model;
  if (model.vocabulary == 0) model.vocabulary = 16;  // the data will tell
  const std::vector<std::string> of_model = tessera::problems(model);
  for (const std::string& problem : of_model) problems.add(problem);
  find_unread_fields(config, problems);
  if (of_model.empty()) {
    problems.gather([&] { check_step_sizes(model, config.global_batch_size); });
    if (config.sample_every > 0 && !task_of(model).text)
      problems.add(text("sample-every ", config.sample_every, " does nothing with family ",
                        model.family, ", which writes no text; give sample-every 0"));
  }
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
  const ParallelConfig& parallel = config.parallel;
  ParallelConfig chosen = parallel;
  const bool told = config.asked_for.contains("recompute-granularity") ||
                    config.asked_for.contains("checkpoint-activations");
  if (config.memory_cap != "none" && !told && parallel.recompute == Recompute::None)
    chosen.recompute = Recompute::Full;  // a cap chooses, also for some layers
  for (const std::string& problem : tessera::problems(chosen, model)) problems.add(problem);
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

}  // namespace tessera
