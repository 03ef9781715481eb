#include "tessera/config/config.h"

#include <algorithm>

#include "tessera/base/size.h"
#include "tessera/base/text.h"
#include "tessera/base/words.h"
#include "tessera/config/family_fields.h"
#include "tessera/config/fields.h"
#include "tessera/device/compiled.h"
#include "tessera/models/adapters.h"
#include "tessera/tokenizers/byte_tokens.h"

namespace tessera {

CpuChoices choices_of(const RunConfig& config, const CpuChoices& machine) {
  CpuChoices out = machine;
  if (config.max_isa != "auto") {
    out.isa = parse_isa(config.max_isa, "max-isa");
    require_compiled(out.isa, "max-isa");
    require(out.isa <= machine.isa, "max-isa ", config.max_isa, " is above ", to_text(machine.isa),
            ", the highest of this machine; give that or a lower one");
  }
  require(config.amx || config.max_isa == "auto" || out.isa < Isa::Amx, "max-isa ", config.max_isa,
          " and no-amx disagree; give one");
  if (!config.amx) out = out.at_most(Isa::Avx512Bf16);
  require(
      config.pack_weights == "auto" || config.pack_weights == "yes" || config.pack_weights == "no",
      "pack-weights is '", config.pack_weights, "'; it can be auto, yes or no");
  if (config.pack_weights != "auto") out.pack_weights = config.pack_weights == "yes";
  const auto products = find_word<F32Products>(kF32ProductNames, config.f32_products);
  require(products || config.f32_products == "auto", "f32-products is '", config.f32_products,
          "'; it can be ", join(kF32ProductWords));
  if (products == F32Products::Amx) {
    require(machine.isa >= Isa::Amx, "f32-products amx needs a processor with AMX, and ",
            to_text(machine.isa),
            " is the highest instruction set of this machine; give auto or fma");
    require(out.isa >= Isa::Amx, "f32-products amx and ",
            config.amx ? text("max-isa ", config.max_isa) : "no-amx", " disagree; give one");
  }
  if (products) out.f32_products = *products;
  return out.at_most(out.isa);  // below amx there is one way to multiply
}

namespace {

/// So many consecutive ranks compute the same; 1 where the sizes do not fit, which find_problems
/// tells.
std::int64_t repeats(const RunConfig& config) {
  const std::int64_t parts = parallel_parts(config);
  return parts > 0 && config.parallel.devices % parts == 0 ? config.parallel.devices / parts : 1;
}

}  // namespace

std::int64_t parallel_parts(const RunConfig& config) {
  if (config.data_parallel == 0) return 0;
  const ParallelConfig& p = config.parallel;
  return size_product({config.data_parallel, p.pipeline, p.tensor, p.context}, "parallel parts");
}

void set_parallel(RunConfig& config, const TransformerOpParallelConfig& parallel,
                  std::int64_t devices) {
  const ParallelConfig on = parallel.on(devices);
  const std::int64_t parts = parallel.data_parallel * parallel.micro_batch_num;
  require(config.global_batch_size % parts == 0, "a batch of ", config.global_batch_size,
          " cannot be cut into data_parallel ", parallel.data_parallel, " x micro_batch_num ",
          parallel.micro_batch_num, " equal parts; nearest are ",
          std::max<std::int64_t>(1, config.global_batch_size / parts) * parts, " and ",
          (config.global_batch_size / parts + 1) * parts);
  config.micro_batch_size = config.global_batch_size / parts;
  config.data_parallel = parallel.data_parallel;
  config.parallel.devices = devices;
  config.parallel.pipeline = on.pipeline;
  config.parallel.tensor = on.tensor;
  config.parallel.experts = on.experts;
  config.parallel.whole_embeddings = on.whole_embeddings;
  config.parallel.gradient_groups = on.gradient_groups;
  config.zero_stage = on.shard_parameters ? 3 : 0;
  config.fsdp_gather = to_text(on.gather);
  config.recompute_granularity =
      parallel.recompute ? to_text(on.recompute) : RunConfig().recompute_granularity;
}

VocabularyChoice vocabulary_choice(const RunConfig& config) {
  const std::int64_t special = vocabulary_for(config.model, 0);
  return {config.vocabulary, std::max(config.model.vocabulary - special, kByteTokens),
          tokenizer_choice(config)};
}

CheckpointNames checkpoint_names(const RunConfig& config) {
  return find_word<CheckpointNames>(kCheckpointNames, config.checkpoint_names)
      .value_or(CheckpointNames::Step);
}

TokenizerChoice tokenizer_choice(const RunConfig& config) {
  return {config.tokenizer_type, config.tokenizer, config.vocab_file, config.merge_file,
          config.vocab_extra_ids};
}

std::string plugin_of(const RunConfig& config) {
  return starts_with(config.device, kPjrt) ? config.device.substr(kPjrt.size()) : "";
}

void complete(RunConfig& config) {
  if (!tokenizer_choice(config).none() && config.defaulted.contains("vocabulary"))
    config.vocabulary = VocabularyKind::Tokenizer;
  if (config.choices) {
    config.max_isa = to_text(config.choices->isa);
    config.amx = config.choices->isa >= Isa::Amx;
    config.pack_weights = config.choices->pack_weights ? "yes" : "no";
    config.f32_products = to_text(config.choices->f32_products);
  }
  ParallelConfig& parallel = config.parallel;
  // What find_problems refuses must not divide by zero before.
  const bool legal = parallel.tensor > 0 && parallel.context > 0 && parallel.pipeline > 0;
  parallel.repeat = legal ? repeats(config) : 1;
  const std::int64_t data = legal ? parallel.data() : 0;
  if (config.micro_batch_size == 0 && data > 0)
    config.micro_batch_size = (config.global_batch_size + data - 1) / data;
  const std::int64_t stage = config.zero_stage;
  parallel.shard_parameters = stage == 3 || config.zero3 || config.fsdp;
  parallel.shard_gradients = stage == 2 || config.zero2 || parallel.shard_parameters;
  parallel.shard_optimizer = stage == 1 || config.zero1 || parallel.shard_gradients;
  config.optimizer.loss_scale.on = config.fp16;
  parallel.recompute = find_word<Recompute>(kRecomputes, config.recompute_granularity)
                           .value_or(parallel.recompute);  // see find_problems
  if (config.checkpoint_activations) parallel.recompute = Recompute::Full;
  parallel.offload = {config.offload_optimizer, config.offload_gradients, config.offload_parameters,
                      config.offload_activations};
  if (config.remote_device != kRemoteNone && !parallel.offload.any())
    parallel.offload.moments = parallel.offload.gradients = true;
  parallel.gather =
      find_word<GatherScope>(kGatherScopes, config.fsdp_gather).value_or(parallel.gather);
  parallel.keys = find_word<KeyExchange>(kKeyExchanges, config.cp_comm_type);
  complete(config.model);
  if (config.packing == to_text(Packing::Bfd)) {
    config.model.reset_attention = true;
    config.model.reset_positions = reads_field(config.model, "reset-position-ids");
  }
  config.optimizer.frozen = config.freeze;
  train_adapters(config.model, config.optimizer);
  if (!config.no_weight_decay_for.empty())
    set_last(config.optimizer.groups, {.paths = config.no_weight_decay_for, .weight_decay = 0});
  ScheduleConfig& schedule = config.optimizer.schedule;
  if (schedule.decay_steps == 0)
    schedule.decay_steps = std::max(config.steps, schedule.warmup_steps + 1);
}

std::vector<std::int64_t> bucket_lengths(const RunConfig& config) {
  if (config.bucket_lengths.empty()) return {};
  std::vector<std::int64_t> out = parse_bucket_lengths(config.bucket_lengths);
  const std::int64_t longest = std::max(config.model.context, config.model.source());
  require(out.back() <= longest, "bucket-lengths is '", config.bucket_lengths,
          "', but no sample is ", "longer than ", longest,
          "; give lengths up to that, or a larger context");
  if (out.back() < longest) out.push_back(longest);
  return out;
}

void complete_epochs(RunConfig& config, const RunConfig& given, std::int64_t in_epoch) {
  if (config.epochs == 0) return;
  const std::int64_t samples =
      size_product({config.epochs, in_epoch}, "samples (epochs x samples of the data)");
  config.steps = (samples + config.global_batch_size - 1) / config.global_batch_size;
  ScheduleConfig& schedule = config.optimizer.schedule;
  if (given.optimizer.schedule.decay_steps == 0)
    schedule.decay_steps = std::max(config.steps, schedule.warmup_steps + 1);
}

}  // namespace tessera
