#include "tessera/config/hints.h"

#include <gtest/gtest.h>

#include "tessera/base/text.h"
#include "tessera/config/fields.h"

namespace tessera {
namespace {

std::vector<std::string> all_names() {
  std::vector<std::string> out;
  for (const Field& field : fields()) {
    for (const std::string& name : field_names(field)) out.push_back(name);
  }
  return out;
}

TEST(Hints, OfNamesThatPeopleType) {
  struct Case {
    const char *typed, *want;
  };
  const Case cases[] = {
      {"learning-rate", "use --lr"},
      {"learning_rate", "use --lr"},
      {"max_iters", "use --steps"},
      {"num-steps", "use --steps"},
      {"batch_size", "use --global-batch-size"},
      {"block-size", "use --context"},
      {"global_batch_size", "use --global-batch-size"},
      {"cuda", "for GPUs give pjrt:cuda or pjrt:rocm to --device"},
      {"load", "use --resume"},
      {"distributed-timeout-minutes", "in seconds, it is --distributed-timeout"},
      {"pipeline_stages", "use --pipeline-model-parallel-size"},
      {"num-layers-per-virtual-pipeline-stage",
       "it counts layers; chunks on each stage are counted by --virtual-pipeline-stages"},
      {"recompute-activations", "use --recompute-granularity selective"},
      {"gradient-checkpointing", "use --checkpoint-activations"},
      {"activation_checkpointing", "use --checkpoint-activations"},
      {"cpu-offload", "use --remote-device cpu"},
      {"offload_optimizer_device", "use --remote-device"},
      {"optimizer-cpu-offload", "use --offload-optimizer"},
      {"nvme_path", "use --offload-folder"},
      {"cpu_checkpointing", "use --offload-activations"},
      {"cpu-offloading", "use --offload-activations"},
      {"activations-offload", "use --offload-activations"},
      {"reshard_after_forward", "true is block, false is step of --fsdp-gather"},
      {"precision", "f32 is the default; for 16-bit floats use --bf16"},
      {"grad_reduce_in_bf16", "use --reduce-dtype bf16"},
      {"grad_accum_dtype", "use --reduce-dtype"},
      {"main-grads-dtype", "use --reduce-dtype"},
      {"loss-scale", "it adapts itself; it begins as --initial-loss-scale"},
      {"initial_scale_power", "as the number itself, 65536 for 16, it is --initial-loss-scale"},
      {"growth_interval", "use --loss-scale-window"},
      {"loss-scale-hysteresis", "use --hysteresis"},
      {"per_device_train_batch_size",
       "the samples that a device computes at a time are --micro-batch-size"},
      {"warmup_ratio", "as a number of steps, use --lr-warmup-steps"},
      {"report_to", "metrics.jsonl is always written; for TensorBoard use --tensorboard-dir"},
      {"lr_scheduler_type", "use --lr-decay-style"},
      {"save_total_limit", "use --keep-last"},
      {"do_train", "the command determines whether it trains, validates or predicts; leave it out"},
      {"momentum", "use --sgd-momentum"},
      {"lr-warmup-fraction", "as a number of steps, use --lr-warmup-steps"},
      {"train_micro_batch_size_per_gpu",
       "the samples that a device computes at a time are --micro-batch-size"},
      {"enable_parallel_optimizer", "on is 1, off is 0 of --zero-stage"},
      {"stesp", "nearest is --steps"},
      {"zzzzzzzzzz", ""},
  };
  for (const Case& c : cases) EXPECT_EQ(hint(c.typed, all_names(), "--"), c.want) << c.typed;
}

TEST(Hints, NameOnlyWhatThereIs) {
  EXPECT_EQ(hint("learning-rate", {"tokens", "seed"}), "");
  EXPECT_EQ(hint("max_new_tokens", {"tokens", "seed"}), "use tokens");
}

}  // namespace
}  // namespace tessera
