#include "tessera/config/hints.h"

#include <algorithm>

#include "tessera/base/text.h"

namespace tessera {

namespace {

struct Hint {
  std::string_view name;
  std::string_view meant;  // a field; empty: there is none
  std::string_view instead = "use ";
  std::string_view value = "";  // to give it
};

constexpr std::string_view kFloats = "f32 is the default; for 16-bit floats use ";
constexpr std::string_view kNotNeeded = "there is nothing to set; leave it out";
constexpr std::string_view kMicroBatches = "the samples that a device computes at a time are ";
constexpr std::string_view kWarmup = "as a number of steps, use ";
constexpr std::string_view kOneProgram =
    "the command determines whether it trains, validates or predicts; leave it out";
constexpr std::string_view kTracked = "metrics.jsonl is always written; for TensorBoard use ";
constexpr std::string_view kLaunch = "tessera launch -n N starts N ranks; in one process use ";
constexpr std::string_view kWhole = "to choose the best plan of devices, stages and memory, use ";
constexpr std::string_view kGpu = "for GPUs give pjrt:cuda or pjrt:rocm to ";

constexpr std::string_view kOfSample =
    "for the length of written texts use tessera sample --tokens";

/// Of two rows of a name, the second is for commands that lack what the first means.
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
    {"max-new-tokens", "", kOfSample},
    {"num-tokens", "", kOfSample},
    {"gpus", "device", kGpu},
    {"cuda", "device", kGpu},
    {"load", "resume"},
    {"save", "output"},
    {"finetune", "init-from", "for the weights alone, and nothing else of a run, give "},
    {"distributed-timeout-minutes", "distributed-timeout", "in seconds, it is "},
    {"pipeline-stages", "pipeline-model-parallel-size"},
    {"pipeline-stage", "pipeline-model-parallel-size"},
    {"num-stages", "pipeline-model-parallel-size"},
    {"recompute-num-layers", "recompute-layers", "which layers, as 0-3, is given by "},
    {"recompute-method", "recompute-layers", "which layers, as 0-3, is given by "},
    {"schedule", "pipeline-schedule"},
    {"virtual-pipeline-model-parallel-size", "virtual-pipeline-stages"},
    {"pipeline-model-parallel-layout", "pipeline-layout",
     "how many layers each chunk has, as 3,4,4,3, is given by "},
    {"gradient-accumulation-shard", "zero-stage", "on is 2, off is 1 of "},
    {"parallel-optimizer-threshold", "optimizer-shard-threshold", "in bytes, it is "},
    {"num-layers-per-virtual-pipeline-stage", "virtual-pipeline-stages",
     "it counts layers; chunks on each stage are counted by "},
    {"mmap-warmup", "", "token files are read sample by sample; leave it out"},
    {"eod-id", "eod-token"},
    {"recompute-activations", "recompute-granularity", "use ", " selective"},
    {"gradient-checkpointing", "checkpoint-activations"},
    {"activation-checkpointing", "checkpoint-activations"},
    {"cpu-offload", "remote-device", "use ", " cpu"},
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
    {"grad-reduce-in-bf16", "reduce-dtype", "use ", " bf16"},
    {"accumulate-allreduce-grads-in-fp32", "reduce-dtype", "use ", " f32"},
    {"communication-data-type", "reduce-dtype"},
    {"grad-accum-dtype", "reduce-dtype"},
    {"grad-reduce-dtype", "reduce-dtype"},
    {"main-grads-dtype", "reduce-dtype"},
    {"loss-scale", "initial-loss-scale", "it adapts itself; it begins as "},
    {"init-scale", "initial-loss-scale"},
    {"initial-scale-power", "initial-loss-scale", "as the number itself, 65536 for 16, it is "},
    {"growth-interval", "loss-scale-window"},
    {"loss-scale-hysteresis", "hysteresis"},
    // transformers' Trainer and its scripts
    {"per-device-train-batch-size", "micro-batch-size", kMicroBatches},
    {"per-device-eval-batch-size", "micro-batch-size", kMicroBatches},
    {"per-gpu-train-batch-size", "micro-batch-size", kMicroBatches},
    {"gradient-accumulation-steps", "micro-batch-size", kMicroBatches},
    {"eval-accumulation-steps", "micro-batch-size", kMicroBatches},
    {"auto-find-batch-size", "memory-cap", "a micro-batch size that fits is found by "},
    {"warmup-ratio", "lr-warmup-steps", kWarmup},
    {"lr-scheduler-type", "lr-decay-style"},
    {"lr-scheduler", "lr-decay-style"},
    {"optim", "optimizer"},
    {"adam-epsilon", "adam-eps"},
    {"max-length", "context"},
    {"max-seq-length", "context"},
    {"max-target-length", "context"},
    {"max-source-length", "source-context"},
    {"model-name-or-path", "init-from"},
    {"model-name", "init-from"},
    {"config-name", "config"},
    {"tokenizer-name", "tokenizer"},
    {"dataset-name", "data"},
    {"test-file", "test-data"},
    {"text-column-name", "text-column"},
    {"overwrite-output-dir", "overwrite"},
    {"resume-from-checkpoint", "resume"},
    {"save-total-limit", "keep-last"},
    {"save-strategy", "save-every"},
    {"eval-strategy", "eval-every"},
    {"evaluation-strategy", "eval-every"},
    {"logging-strategy", "log-every"},
    {"logging-first-step", "log-every"},
    {"load-best-model-at-end", "keep-best"},
    {"metric-for-best-model", "keep-best"},
    {"report-to", "tensorboard-dir", kTracked},
    {"run-name", "output"},
    {"data-seed", "seed"},
    {"label-names", "label-column"},
    {"num-labels", "classes"},
    {"max-grad-value", "clip-grad", "gradients are clipped by their norm: "},
    {"deepspeed", "zero-stage"},
    {"fsdp", "zero-stage", "as FSDP does, parameters are shared out by 3 of "},
    {"torch-compile", "graph-optimization", "every run is compiled; ops are fused by "},
    {"use-cpu", "", kNotNeeded},
    {"no-cuda", "", kNotNeeded},
    {"do-train", "", kOneProgram},
    {"do-eval", "", kOneProgram},
    {"do-predict", "", kOneProgram},
    {"predict-with-generate", "", kOneProgram},
    {"push-to-hub", "", "tessera export writes the model as transformers loads it"},
    {"label-smoothing-factor", "", "there is no label smoothing"},
    {"dataloader-num-workers", "", kNotNeeded},
    {"preprocessing-num-workers", "", kNotNeeded},
    {"dataloader-pin-memory", "", kNotNeeded},
    {"remove-unused-columns", "", kNotNeeded},
    {"disable-tqdm", "", kNotNeeded},
    {"trust-remote-code", "", kNotNeeded},
    // PyTorch
    {"momentum", "sgd-momentum"},
    {"eps", "adam-eps"},
    {"betas", "adam-beta1", "here they are two, --adam-beta2 and "},
    {"eta-min", "min-lr"},
    {"t-max", "lr-decay-steps"},
    {"world-size", "devices", kLaunch},
    {"nproc-per-node", "devices", kLaunch},
    {"num-processes", "devices", kLaunch},
    {"num-machines", "devices", kLaunch},
    {"nnodes", "devices", kLaunch},
    {"local-rank", "", "the launcher numbers the ranks; leave it out"},
    {"sharding-strategy", "zero-stage", "FULL_SHARD is 3, SHARD_GRAD_OP is 2 of "},
    {"num-workers", "", kNotNeeded},
    {"pin-memory", "", kNotNeeded},
    {"find-unused-parameters", "", kNotNeeded},
    {"gradient-as-bucket-view", "", kNotNeeded},
    {"compile", "graph-optimization", "every run is compiled; ops are fused by "},
    // Megatron-LM
    {"lr-warmup-fraction", "lr-warmup-steps", kWarmup},
    {"lr-warmup-samples", "lr-warmup-steps", kWarmup},
    {"lr-decay-samples", "lr-decay-steps", kWarmup},
    {"train-samples", "steps", kWarmup},
    {"rampup-batch-size", "", "the batch size is constant in a run; raise it when you resume"},
    {"swiglu", "family", "it is the activation of llama, see "},
    {"group-query-attention", "kv-heads"},
    {"make-vocab-size-divisible-by", "vocab-size", "with the rows that are to be added, it is "},
    {"decoder-first-pipeline-num-layers", "pipeline-layout",
     "how many layers each chunk has, as 3,4,4,3, is given by "},
    {"no-load-optim", "init-from", "for the weights alone, give "},
    {"use-flash-attn", "", "attention never stores its scores; leave it out"},
    {"overlap-grad-reduce", "", "communication always overlaps; leave it out"},
    {"overlap-param-gather", "", "communication always overlaps; leave it out"},
    {"use-mcore-models", "", kNotNeeded},
    {"transformer-impl", "", kNotNeeded},
    {"distributed-backend", "", "tessera launch --backend says mpi or tcp"},
    {"wandb-project", "tensorboard-dir", kTracked},
    // DeepSpeed
    {"train-batch-size", "global-batch-size"},
    {"train-micro-batch-size-per-gpu", "micro-batch-size", kMicroBatches},
    {"gradient-clipping", "clip-grad"},
    {"zero-optimization", "zero-stage"},
    {"stage", "zero-stage"},
    {"offload-param", "offload-parameters"},
    {"offload-param-device", "remote-device"},
    {"allgather-bucket-size", "bucket-mb", "in MiB, not in elements, it is "},
    {"steps-per-print", "log-every"},
    {"wall-clock-breakdown", "profile"},
    {"partition-activations", "checkpoint-activations"},
    {"deepspeed-config", "config", "as TOML with our names, it is "},
    {"num-gpus", "devices", kLaunch},
    {"num-nodes", "devices", kLaunch},
    {"hostfile", "", "tessera launch --hostfile FILE starts ranks on several machines"},
    {"autotuning", "auto", kWhole},
    {"overlap-comm", "", "communication always overlaps; leave it out"},
    {"contiguous-gradients", "", "gradients always lie in one buffer; leave it out"},
    // MindSpore
    {"device-num", "devices", kLaunch},
    {"device-target", "device", kGpu},
    {"parallel-mode", "auto", kWhole},
    {"auto-parallel", "auto", kWhole},
    {"enable-parallel-optimizer", "zero-stage", "on is 1, off is 0 of "},
    {"micro-batch-num", "micro-batch-size", kMicroBatches},
    {"accumulation-step", "micro-batch-size", kMicroBatches},
    {"recompute", "recompute-granularity"},
    {"epoch-size", "epochs"},
    {"epoch-num", "epochs"},
    {"keep-checkpoint-max", "keep-last"},
    {"save-checkpoint-steps", "save-every"},
    {"checkpoint-path", "init-from"},
    {"load-checkpoint", "init-from"},
    {"start-learning-rate", "lr"},
    {"end-learning-rate", "min-lr"},
    {"warmup-step", "lr-warmup-steps"},
    {"amp-level", "mixed-precision"},
    {"compute-dtype", "bf16", kFloats},
    {"num-heads", "heads"},
    {"embedding-size", "width"},
    {"gradients-mean", "", "gradients are means over the samples of a step; leave it out"},
    {"full-batch", "", "every device draws its own samples; leave it out"},
    {"dataset-sink-mode", "", kNotNeeded},
    {"sink-size", "", kNotNeeded},
};

}  // namespace

std::vector<KnownHint> known_hints() {
  std::vector<KnownHint> out;
  for (const Hint& h : kHints) out.push_back({h.name, h.meant});
  return out;
}

std::string hint(std::string_view name, const std::vector<std::string>& known,
                 std::string_view prefix) {
  std::string typed(name);
  std::replace(typed.begin(), typed.end(), '_', '-');
  const auto is_known = [&](std::string_view meant) {
    return std::find(known.begin(), known.end(), meant) != known.end();
  };
  if (is_known(typed)) return text("use ", prefix, typed);
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
