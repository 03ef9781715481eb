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
      {"learning-rate", "here it is --lr"},
      {"learning_rate", "here it is --lr"},
      {"max_iters", "here it is --steps"},
      {"num-steps", "here it is --steps"},
      {"batch_size", "here it is --global-batch-size"},
      {"block-size", "here it is --context"},
      {"global_batch_size", "here it is --global-batch-size"},
      {"cuda", "for GPUs give pjrt:cuda or pjrt:rocm to --device"},
      {"load", "here it is --resume"},
      {"distributed-timeout-minutes", "in seconds, it is --distributed-timeout"},
      {"pipeline_stages", "here it is --pipeline-model-parallel-size"},
      {"num-layers-per-virtual-pipeline-stage",
       "it counts layers; chunks on each stage are counted by --virtual-pipeline-stages"},
      {"recompute-activations", "here it is --recompute-granularity selective"},
      {"gradient-checkpointing", "here it is --checkpoint-activations"},
      {"activation_checkpointing", "here it is --checkpoint-activations"},
      {"cpu-offload", "here it is --remote-device cpu"},
      {"offload_optimizer_device", "here it is --remote-device"},
      {"optimizer-cpu-offload", "here it is --offload-optimizer"},
      {"nvme_path", "here it is --offload-folder"},
      {"cpu_checkpointing", "here it is --offload-activations"},
      {"cpu-offloading", "here it is --offload-activations"},
      {"activations-offload", "here it is --offload-activations"},
      {"reshard_after_forward", "true is block, false is step of --fsdp-gather"},
      {"precision", "all in f32 is the default, 16-bit floats are asked for by --bf16"},
      {"grad_reduce_in_bf16", "here it is --reduce-dtype bf16"},
      {"grad_accum_dtype", "here it is --reduce-dtype"},
      {"main-grads-dtype", "here it is --reduce-dtype"},
      {"loss-scale", "it adapts itself; it begins as --initial-loss-scale"},
      {"initial_scale_power", "as the number itself, 65536 for 16, it is --initial-loss-scale"},
      {"growth_interval", "here it is --loss-scale-window"},
      {"loss-scale-hysteresis", "here it is --hysteresis"},
      {"per_device_train_batch_size",
       "a step has global-batch-size samples, and computes so many at a time on a device: "
       "--micro-batch-size"},
      {"warmup_ratio", "as a number of steps, it is --lr-warmup-steps"},
      {"report_to",
       "metrics.jsonl is always written, and events for TensorBoard by --tensorboard-dir"},
      {"lr_scheduler_type", "here it is --lr-decay-style"},
      {"save_total_limit", "here it is --keep-last"},
      {"do_train", "the command says whether it trains, validates or predicts; leave it out"},
      {"momentum", "here it is --sgd-momentum"},
      {"lr-warmup-fraction", "as a number of steps, it is --lr-warmup-steps"},
      {"train_micro_batch_size_per_gpu",
       "a step has global-batch-size samples, and computes so many at a time on a device: "
       "--micro-batch-size"},
      {"enable_parallel_optimizer", "on is 1, off is 0 of --zero-stage"},
      {"stesp", "nearest is --steps"},
      {"zzzzzzzzzz", ""},
  };
  for (const Case& c : cases) EXPECT_EQ(hint(c.typed, all_names(), "--"), c.want) << c.typed;
}

TEST(Hints, NameOnlyWhatThereIs) {
  EXPECT_EQ(hint("learning-rate", {"tokens", "seed"}), "");
  EXPECT_EQ(hint("max_new_tokens", {"tokens", "seed"}), "here it is tokens");
}

}  // namespace
}  // namespace tessera
