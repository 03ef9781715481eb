#include "tessera/train/hints.h"

#include <algorithm>

#include "tessera/base/text.h"

namespace tessera {

namespace {

struct Hint {
  std::string_view name;
  std::string_view meant;  // a field; empty: there is none
  std::string_view instead = "here it is ";
  std::string_view value = "";  // to give it
};

constexpr std::string_view kFloats = "all in f32 is the default, 16-bit floats are asked for by ";
constexpr std::string_view kNoExperts = "there are no experts today";
constexpr std::string_view kCpu = "a run computes on the processor today, with so many cores: ";

constexpr Hint kHints[] = {
    {"learning-rate", "lr"},
    {"max-lr", "lr"},
    {"warmup", "lr-warmup-steps"},
    {"warmup-steps", "lr-warmup-steps"},
    {"warmup-iters", "lr-warmup-steps"},
    {"grad-clip", "clip-grad"},
    {"max-grad-norm", "clip-grad"},
    {"beta1", "adam-beta1"},
    {"beta2", "adam-beta2"},
    {"min-coeff", "lamb-min-trust-ratio"},
    {"max-coeff", "lamb-max-trust-ratio"},
    {"max-steps", "steps"},
    {"max-iters", "steps"},
    {"num-steps", "steps"},
    {"train-steps", "steps"},
    {"batch-size", "global-batch-size"},
    {"block-size", "context"},
    {"context-length", "context"},
    {"sequence-length", "context"},
    {"seq-len", "context"},
    {"max-seq-len", "context"},
    {"n-layer", "layers"},
    {"n-head", "heads"},
    {"n-embd", "width"},
    {"d-model", "width"},
    {"dataset", "data"},
    {"train-file", "data"},
    {"validation-file", "valid-data"},
    {"group-by-length", "bucket-lengths"},
    {"pack", "packing"},
    {"packing-strategy", "packing"},
    {"out-dir", "output"},
    {"output-dir", "output"},
    {"save-steps", "save-every"},
    {"eval-steps", "eval-every"},
    {"logging-steps", "log-every"},
    {"logging-dir", "tensorboard-dir"},
    {"summary-dir", "tensorboard-dir"},
    {"max-new-tokens", "tokens"},
    {"num-tokens", "tokens"},
    {"device", "threads", kCpu},
    {"gpus", "threads", kCpu},
    {"cuda", "threads", kCpu},
    {"load", "resume"},
    {"save", "output"},
    {"finetune", "init-from", "for the weights alone, and nothing else of a run, give "},
    {"distributed-timeout-minutes", "distributed-timeout", "in seconds, it is "},
    {"pipeline-stages", "pipeline-model-parallel-size"},
    {"pipeline-stage", "pipeline-model-parallel-size"},
    {"num-stages", "pipeline-model-parallel-size"},
    {"recompute-num-layers", "recompute-layers", "which layers, as 0-3, is told by "},
    {"recompute-method", "recompute-layers", "which layers, as 0-3, is told by "},
    {"schedule", "pipeline-schedule"},
    {"virtual-pipeline-model-parallel-size", "virtual-pipeline-stages"},
    {"pipeline-model-parallel-layout", "pipeline-layout",
     "how many layers each chunk has, as 3,4,4,3, is told by "},
    {"gradient-accumulation-shard", "zero-stage", "on is 2, off is 1 of "},
    {"parallel-optimizer-threshold", "optimizer-shard-threshold", "in bytes, it is "},
    {"num-layers-per-virtual-pipeline-stage", "virtual-pipeline-stages",
     "it counts layers; chunks on each stage are counted by "},
    {"mmap-warmup", "", "token files are read sample by sample; leave it out"},
    {"eod-id", "eod-token"},
    {"expert-model-parallel-size", "", kNoExperts},
    {"num-experts", "", kNoExperts},
    {"recompute-activations", "recompute-granularity", "here it is ", " selective"},
    {"gradient-checkpointing", "checkpoint-activations"},
    {"activation-checkpointing", "checkpoint-activations"},
    {"cpu-offload", "remote-device", "here it is ", " cpu"},
    {"offload-optimizer-device", "remote-device"},
    {"optimizer-cpu-offload", "offload-optimizer"},
    {"nvme-path", "offload-folder"},
    {"cpu-checkpointing", "offload-activations"},
    {"cpu-offloading", "offload-activations"},
    {"activations-offload", "offload-activations"},
    {"ddp-bucket-size", "bucket-mb", "in MiB, not in elements, it is "},
    {"reduce-bucket-size", "bucket-mb", "in MiB, not in elements, it is "},
    {"comm-fusion", "bucket-mb", "the largest bucket in MiB is "},
    {"reshard-after-forward", "fsdp-gather", "true is block, false is step of "},
    {"dtype", "bf16", kFloats},
    {"precision", "bf16", kFloats},
    {"half", "fp16"},
    {"amp", "mixed-precision"},
    {"grad-reduce-in-bf16", "reduce-dtype", "here it is ", " bf16"},
    {"accumulate-allreduce-grads-in-fp32", "reduce-dtype", "here it is ", " f32"},
    {"communication-data-type", "reduce-dtype"},
    {"grad-accum-dtype", "reduce-dtype"},
    {"grad-reduce-dtype", "reduce-dtype"},
    {"main-grads-dtype", "reduce-dtype"},
    {"loss-scale", "initial-loss-scale", "it adapts itself; it begins as "},
    {"init-scale", "initial-loss-scale"},
    {"initial-scale-power", "initial-loss-scale", "as the number itself, 65536 for 16, it is "},
    {"growth-interval", "loss-scale-window"},
    {"loss-scale-hysteresis", "hysteresis"},
};

}  // namespace

std::string hint(std::string_view name, const std::vector<std::string>& known,
                 std::string_view prefix) {
  std::string typed(name);
  std::replace(typed.begin(), typed.end(), '_', '-');
  const auto is_known = [&](std::string_view meant) {
    return std::find(known.begin(), known.end(), meant) != known.end();
  };
  if (is_known(typed)) return text("here it is ", prefix, typed);
  for (const Hint& h : kHints) {
    if (h.name != typed) continue;
    if (h.meant.empty()) return std::string(h.instead);
    if (is_known(h.meant)) return text(h.instead, prefix, h.meant, h.value);
  }
  std::vector<std::string> near = nearest(typed, known);
  for (std::string& candidate : near) candidate.insert(0, prefix);
  return near.empty() ? "" : text("nearest ", near.size() == 1 ? "is " : "are ", join(near));
}

}  // namespace tessera
