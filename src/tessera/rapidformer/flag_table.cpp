#include "tessera/rapidformer/flag_table.h"

#include <algorithm>

#include "tessera/base/text.h"

namespace tessera {

namespace {

using enum FlagKind;

constexpr std::string_view
    kSamples = "tessera sample FOLDER writes texts with a trained model",
    kFused = "the compiler fuses what it can; --no-graph-optimization turns all of it off",
    kByHand =
        "--pipeline-layout of tessera train sets the layers of each stage; without it, blocks are "
        "divided by cost",
    kWhole = "only one data set of this kind is supported: give --valid-data-path";

/// A flag that has the name of its field.
constexpr FlagRow same(std::string_view name, std::string_view takes, std::string_view note = {},
                       bool many = false) {
  return {name, takes, Same, name, {}, note, many};
}

// clang-format off
constexpr FlagRow kRows[] = {
    // The run.
    {"task", "NAME", Read, "task", "", "the task to train: pretraining, or a task of docs/guides/fine-tune.md; casual_lm is causal_lm"},
    {"user-script", "FILE", Read, "", "", "a script in Python or C++: docs/from/rapidformer.md"},
    same("epochs", "N"),
    {"train-iters", "N", Same, "steps"},
    {"train-samples", "N", Read, "steps", "", "divided by --global-batch-size"},
    same("exit-interval", "N", "counted from the start of this invocation"),
    {"exit-duration-in-mins", "N", Refused, "", "", "a run that gets SIGTERM saves and ends: timeout 60m rapidformer ..."},
    {"rampup-batch-size", "N", Refused, "", "", "the batch size is constant; train a first run with a small --global-batch-size, and resume it with --load", true},
    same("seed", "N", "1234 by default"),
    {"iterations-to-skip", "N", Refused, "", "", "a step whose loss is inf or nan is skipped automatically", true},
    // Folders.
    {"save", "FOLDER", Read, "output", "", "with --checkpoint-names iter; hf/ in it has the trained model for transformers"},
    {"save-interval", "N", Same, "save-every", "", "without: one checkpoint, at the end"},
    {"load", "FOLDER", Read, "resume", "", "resumes from the newest checkpoint there; with --finetune: only its weights"},
    {"finetune", "", Read, "init-from", "", "begins at iteration 0 with the weights of --load"},
    {"pretrained-model-name-or-path", "NAME", Read, "init-from", "", "a transformers folder, or its name; with --task pretraining only its architecture"},
    {"ckpt-step", "N", Read, "resume", "", "resumes from that iteration of --load"},
    {"exit-on-missing-checkpoint", "", Read, "", "", "fails if --load has no checkpoint"},
    {"no-save-optim", "", Idle, "", "", "a checkpoint has the whole state; hf/ has only the weights"},
    {"no-save-rng", "", Always, "", "", "no random state is saved: random numbers follow from the seed and the step"},
    {"no-load-optim", "", Refused, "", "", "--load FOLDER --finetune takes only the weights"},
    {"no-load-rng", "", Always, "", "", "no random state is saved: random numbers follow from the seed and the step"},
    {"use-checkpoint-args", "", Always, "", "", "model sizes that are not given come from the checkpoint"},
    {"override-lr-scheduler", "", Always, "", "", "the flags apply; differences from the checkpoint are printed as notices"},
    {"override-opt_param-scheduler", "", Always, "", "", "the flags apply; differences from the checkpoint are printed as notices"},
    {"use-checkpoint-lr-scheduler", "", Refused, "", "", "--config FOLDER/config.toml has the flags of that run"},
    {"use-checkpoint-opt_param-scheduler", "", Refused, "", "", "--config FOLDER/config.toml has the flags of that run"},
    {"ckpt-format", "NAME", Idle, "", "", "there is one format, which any mesh reads: docs/internals/checkpoint-format.md"},
    {"async-save", "", Same, "background-save", "", "on by default"},
    {"ckpt-fully-parallel-load", "", Always, "", "", "each rank reads its part"},
    {"ckpt-fully-parallel-save", "", Always, "", "", "each rank writes its part"},
    // What is told.
    {"log-interval", "N", Same, "log-every", "", "100 by default"},
    {"eval-interval", "N", Same, "eval-every", "", "1000 by default"},
    {"eval-iters", "N", Read, "eval-iters", "", "100 by default, or all batches with --epochs; 0: no validation"},
    {"full-validation", "", Fixed, "eval-iters", "0", "where 0 means all"},
    same("tensorboard-dir", "FOLDER", "event files"),
    {"tensorboard-log-interval", "N", Only, "", "1", "every iteration is written"},
    {"tensorboard-queue-size", "N", Always, "", "", "nothing is queued"},
    {"logging-path", "PATH", Idle, "", "", "metrics.jsonl in --save has every iteration"},
    {"log-params-norm", "", Idle, "", "", "metrics.jsonl has the norm of the gradient"},
    {"log-num-zeros-in-grad", "", Idle, "", "", "metrics.jsonl has the norm of the gradient"},
    {"log-throughput", "", Idle, "", "", "metrics.jsonl has tokens per second"},
    {"timing-log-level", "N", Idle, "", "", "--profile FILE.json has the time of every kernel"},
    {"eval-global-batch-size", "N", Idle, "", "", "validation uses the training batch size"},
    {"multiple-validation-sets", "", Refused, "", "", kWhole},
    {"start-eval-at-iter", "N", Refused, "", "", "--eval-interval counts from the start"},
    // Steps.
    same("micro-batch-size", "N", "of one device"),
    same("global-batch-size", "N", "--micro-batch-size times the data parallel devices by default"),
    {"optimizer", "NAME", Read, "optimizer", "", "adam is adamw, as in Megatron-LM; or sgd, lamb, adam-weight-decay"},
    same("lr", "X"),
    same("min-lr", "X"),
    same("lr-decay-style", "NAME", "constant, linear or cosine; linear by default"),
    {"lr-decay-iters", "N", Same, "lr-decay-steps", "", "may be more than --train-iters"},
    {"lr-decay-samples", "N", Read, "lr-decay-steps", "", "in steps of --global-batch-size"},
    {"lr-warmup-iters", "N", Same, "lr-warmup-steps"},
    {"lr-warmup-samples", "N", Read, "lr-warmup-steps", "", "in steps of --global-batch-size"},
    {"lr-warmup-fraction", "X", Read, "lr-warmup-steps", "", "of --lr-decay-iters, else of --train-iters"},
    {"lr-warmup-init", "X", Only, "", "0", "the rate rises from 0"},
    {"lr-wsd-decay-style", "NAME", Refused, "", "", "--lr-decay-style is constant, linear or cosine"},
    {"lr-wsd-decay-iters", "N", Refused, "", "", "--lr-decay-style is constant, linear or cosine"},
    same("weight-decay", "X"),
    {"start-weight-decay", "X", Refused, "", "", "it is constant: --weight-decay"},
    {"end-weight-decay", "X", Refused, "", "", "it is constant: --weight-decay"},
    {"weight-decay-incr-style", "NAME", Only, "", "constant", "--weight-decay does not change"},
    same("clip-grad", "X"),
    same("adam-beta1", "X"),
    same("adam-beta2", "X"),
    same("adam-eps", "X"),
    same("sgd-momentum", "X"),
    // Numbers.
    same("mixed-precision", "", "bf16 on processors, which needs no loss scale"),
    same("fp16", ""),
    same("bf16", ""),
    {"loss-scale", "X", Refused, "", "", "the scale is adaptive: give --initial-loss-scale and --min-loss-scale, equal for a scale that never falls"},
    same("initial-loss-scale", "X", "65536 by default"),
    same("min-loss-scale", "X"),
    same("loss-scale-window", "N"),
    same("hysteresis", "N"),
    {"fp32-residual-connection", "", Refused, "", "", "the residual stream has the precision of the run: f32 without --mixed-precision, --bf16 and --fp16"},
    {"apply-query-key-layer-scaling", "", Idle, "", "", "it changes no result: softmax is computed in f32"},
    {"no-query-key-layer-scaling", "", Always, "", "", "there is none"},
    {"attention-softmax-in-fp32", "", Always, "", "", "softmax is computed in f32"},
    {"fp16-lm-cross-entropy", "", Refused, "", "", "the loss is computed in f32"},
    {"accumulate-allreduce-grads-in-fp32", "", Fixed, "reduce-dtype", "f32"},
    {"grad-reduce-in-bf16", "", Fixed, "reduce-dtype", "bf16"},
    // Switches of Rapidformer.
    {"onnx-runtime-training", "", Same, "graph-optimization", "", "the compiler's passes; on by default"},
    same("zero-1-memory-optimization", ""),
    same("zero-2-memory-optimization", ""),
    same("zero-3-memory-optimization", ""),
    same("fsdp-memory-optimization", ""),
    {"oss-memory-optimization", "", Same, "zero-1-memory-optimization", "", "fairscale's OSS shards what ZeRO-1 does"},
    {"oss-sdp-memory-optimization", "", Same, "zero-2-memory-optimization", "", "fairscale's OSS with SDP shards what ZeRO-2 does"},
    {"use-distributed-optimizer", "", Same, "zero-1-memory-optimization"},
    same("remote-device", "NAME", "none, cpu or nvme"),
    {"no-contiguous-buffers-in-local-ddp", "", Always, "", "", "the memory plan places gradients"},
    {"DDP-impl", "NAME", Only, "", "local torch", "gradients are always summed the same way"},
    {"ddp-bucket-size", "N", Refused, "", "", "--bucket-mb N, in MiB"},
    {"overlap-grad-reduce", "", Always, "", "", "sums start as soon as gradients are ready"},
    {"overlap-param-gather", "", Always, "", "", "gathers start before they are needed"},
    {"distributed-backend", "NAME", Idle, "", "", "ranks communicate by memory, MPI or TCP, depending on the launcher: docs/guides/cluster.md"},
    {"distributed-timeout-minutes", "N", Read, "distributed-timeout", "", "in seconds there"},
    {"local_rank", "RANK", Idle, "", "", "the rank comes from the environment"},
    {"local-rank", "RANK", Idle, "", "", "the rank comes from the environment"},
    {"manual-gc", "", Always, "", "", "nothing is collected"},
    // The mesh.
    same("devices", "N", "of all hosts; the length of CUDA_VISIBLE_DEVICES times NNODES by default"),
    same("tensor-model-parallel-size", "N"),
    same("pipeline-model-parallel-size", "N"),
    same("context-parallel-size", "N"),
    same("cp-comm-type", "NAME"),
    same("sequence-parallel", ""),
    {"num-virtual-stages-per-pipeline-rank", "N", Read, "virtual-pipeline-stages", "", "with --pipeline-schedule interleaved"},
    {"num-layers-per-virtual-pipeline-stage", "N", Read, "virtual-pipeline-stages", "", "layers / stages / N, with --pipeline-schedule interleaved"},
    {"decoder-first-pipeline-num-layers", "N", Refused, "", "", kByHand},
    {"decoder-last-pipeline-num-layers", "N", Refused, "", "", kByHand},
    {"use-tp-pp-dp-mapping", "", Idle, "", "", "ranks are placed tensor, data, pipeline; results do not depend on it"},
    same("checkpoint-activations", ""),
    {"checkpoint-num-layers", "N", Only, "", "1", "every layer is recomputed separately"},
    {"recompute-activations", "", Fixed, "recompute-granularity", "selective"},
    same("recompute-granularity", "NAME"),
    {"recompute-method", "NAME", Only, "", "uniform", "--recompute-layers 0-5 selects layers"},
    {"recompute-num-layers", "N", Only, "", "1", "--recompute-layers 0-5 selects layers"},
    {"recompute-modules", "NAME", Refused, "", "", "--recompute-granularity elementwise, selective or full", true},
    same("expert-model-parallel-size", "N", "data parallel devices that share the experts out"),
    // Experts.
    {"num-experts", "N", Read, "num-experts", "", "of each layer; selects family mixtral", true},
    same("moe-layer-freq", "N|LIST"),
    same("moe-ffn-hidden-size", "N"),
    same("moe-router-topk", "N"),
    same("moe-router-score-function", "NAME"),
    same("moe-router-pre-softmax", ""),
    same("moe-router-topk-scaling-factor", "X"),
    same("moe-router-num-groups", "N"),
    same("moe-router-group-topk", "N"),
    same("moe-router-enable-expert-bias", ""),
    same("moe-router-bias-update-rate", "X"),
    {"moe-router-load-balancing-type", "NAME", Read, "moe-aux-loss-samples", "", "seq_aux_loss is of each sequence, the default; aux_loss of each micro-batch of a device; none is no such loss"},
    {"router-type", "N", Only, "", "0", "a softmax with a loss of uneven loads"},
    same("moe-aux-loss-coeff", "X"),
    {"moe-loss-coeff", "X", Same, "moe-aux-loss-coeff"},
    same("moe-z-loss-coeff", "X"),
    same("moe-input-jitter-eps", "X"),
    same("moe-expert-capacity-factor", "X"),
    same("moe-min-capacity", "N"),
    {"moe-token-drop-policy", "NAME", Same, "moe-token-drop-policy"},
    {"disable-moe-token-dropping", "", Always, "", "", "unless --moe-expert-capacity-factor is given, an expert takes all tokens that choose it"},
    {"mlp-type", "NAME", Read, "moe-use-residual", "", "standard or residual"},
    {"use-expert-residual-network", "", Same, "moe-use-residual"},
    same("moe-shared-expert-intermediate-size", "N"),
    same("moe-shared-expert-gate", ""),
    {"moe-grouped-gemm", "", Always, "", "", "experts are one product"},
    {"top-k-linear-strategy", "NAME", Only, "", "normal", "routers are linear layers"},
    {"moe-linear-layer-type", "NAME", Only, "", "standard", "experts are linear layers"},
    {"moe-token-dispatcher-type", "NAME", Read, "", "", "allgather, alltoall or flex: a token goes once to each device of its experts"},
    // The model.
    {"num-layers", "N", Same, "layers"},
    {"encoder-num-layers", "N", Same, "layers"},
    {"decoder-num-layers", "N", Same, "decoder-layers"},
    {"hidden-size", "N", Same, "width"},
    {"ffn-hidden-size", "N", Same, "ffn-width"},
    {"num-attention-heads", "N", Same, "heads"},
    {"kv-channels", "N", Same, "head-width"},
    {"group-query-attention", "", Always, "", "", "set by --num-query-groups"},
    {"num-query-groups", "N", Same, "kv-heads"},
    {"seq-length", "N", Same, "context", "", "tokens of a sample"},
    {"encoder-seq-length", "N", Read, "source-context", "", "context where the model has no decoder"},
    {"decoder-seq-length", "N", Same, "context"},
    {"max-position-embeddings", "N", Read, "positions", "", "at least --seq-length; ignored by models without learned positions"},
    {"layernorm-epsilon", "X", Same, "norm-eps"},
    {"norm-epsilon", "X", Same, "norm-eps"},
    same("attention-dropout", "X", "0.1 by default"),
    {"hidden-dropout", "X", Same, "dropout", "", "0.1 by default"},
    {"init-method-std", "X", Same, "init-std"},
    {"init-method-xavier-uniform", "", Refused, "", "", "--init-method-std"},
    {"use-cpu-initialization", "", Always, "", "", "initial values do not depend on the mesh"},
    {"data-parallel-random-init", "", Refused, "", "", "initial values do not depend on the mesh"},
    {"make-vocab-size-divisible-by", "N", Idle, "", "", "any vocabulary can be sharded without padding"},
    {"untie-embeddings-and-output-weights", "", Opposite, "tied-head"},
    {"disable-bias-linear", "", Opposite, "bias"},
    {"position-embedding-type", "NAME", Read, "family", "", "rope selects family llama, learned_absolute gpt2 or bert"},
    {"use-rotary-position-embeddings", "", Read, "family", "", "selects family llama"},
    {"rotary-base", "X", Same, "rope-base"},
    {"rotary-percent", "X", Only, "", "1", "all channels of a head are rotated"},
    {"swiglu", "", Read, "family", "", "selects family llama"},
    {"normalization", "NAME", Read, "family", "", "RMSNorm selects family llama, LayerNorm gpt2 or bert"},
    {"openai-gelu", "", Refused, "", "", "the family determines the form of gelu: tanh for gpt2"},
    {"onnx-safe", "", Always, "", "", "the family determines the form of gelu"},
    {"squared-relu", "", Refused, "", "", "--help lists what --activation can be"},
    {"bert-no-binary-head", "", Refused, "", "", "--family roberta predicts masked tokens alone"},
    {"use-flash-attn", "", Always, "", "", "attention does not store its probabilities if that is cheaper"},
    {"no-masked-softmax-fusion", "", Idle, "", "", kFused},
    {"no-bias-gelu-fusion", "", Idle, "", "", kFused},
    {"no-bias-swiglu-fusion", "", Idle, "", "", kFused},
    {"no-bias-dropout-fusion", "", Idle, "", "", kFused},
    {"no-gradient-accumulation-fusion", "", Idle, "", "", kFused},
    {"no-rope-fusion", "", Idle, "", "", kFused},
    // Data.
    {"data-path", "PATH", Read, "data", "", "with --task pretraining the PREFIX of token files, or alternating weights and prefixes; else tables, or a folder of them", true},
    {"dataset-path", "PATH", Read, "data", "", "as --data-path", true},
    {"data-dir", "FOLDER", Read, "data", "", "as --data-path"},
    {"data-name", "NAME", Read, "data", "", "the folder NAME in --data-path: train, dev and test, as .tsv, .csv or .jsonl"},
    {"dataset-name", "NAME", Read, "data", "", "as --data-name"},
    {"train-data-path", "PATH", Same, "data", "", "", true},
    {"train-data", "PATH", Same, "data", "", "", true},
    {"valid-data-path", "PATH", Same, "valid-data", "", "", true},
    same("valid-data", "PATH", "", true),
    {"test-data-path", "PATH", Same, "test-data", "", "", true},
    same("test-data", "PATH", "", true),
    same("data-impl", "NAME", "mmap or infer"),
    same("split", "WEIGHTS", "969,30,1 by default"),
    {"dataloader-type", "NAME", Only, "", "single", "the seed determines the order of samples"},
    {"num-workers", "N", Always, "", "", "samples are read as they are needed"},
    {"mmap-warmup", "", Always, "", "", "token files are read sample by sample"},
    same("data-cache-path", "FOLDER"),
    same("reset-position-ids", ""),
    same("reset-attention-mask", ""),
    same("eod-mask-loss", ""),
    {"mask-prob", "X", Only, "", "0.15", "samples are drawn with Megatron-LM's defaults"},
    {"short-seq-prob", "X", Only, "", "0.1", "samples are drawn with Megatron-LM's defaults"},
    {"tokenizer-type", "TYPE", Read, "tokenizer-type", "", "also selects the family if nothing else does: GPT2BPETokenizer and SentencePiece gpt2, Llama2Tokenizer llama, BertWordPiece bert"},
    same("vocab-file", "FILE"),
    {"vocab", "FILE", Same, "vocab-file", "", "the spelling of old versions"},
    same("merge-file", "FILE"),
    {"tokenizer-model", "FILE", Same, "tokenizer"},
    same("vocab-size", "N"),
    same("vocab-extra-ids", "N"),
    // Writing texts.
    {"inference", "", Refused, "", "", kSamples},
    {"top_k", "N", Refused, "", "", kSamples},
    {"input_len", "N", Refused, "", "", kSamples},
    {"out-seq-length", "N", Refused, "", "", kSamples},
    {"text-generate-input-file", "FILE", Refused, "", "", kSamples},
};
// clang-format on

}  // namespace

std::span<const FlagRow> flag_rows() { return kRows; }

const FlagRow* find_flag_row(std::string_view name) {
  const auto* const found = std::ranges::find(kRows, name, &FlagRow::name);
  return found == std::end(kRows) ? nullptr : found;
}

std::string becomes_text(const FlagRow& row) {
  const std::string field = row.field.empty() ? "" : text("`", row.field, "`");
  const std::string note = row.note.empty() ? "" : std::string(row.note);
  const auto with_note = [&](const std::string& begin) {
    return note.empty() ? begin : begin.empty() ? note : text(begin, "; ", note);
  };
  switch (row.kind) {
    case Same: return with_note(field);
    case Opposite: return with_note(text(field, " false"));
    case Fixed: return with_note(text(field, " ", row.value));
    case Read: return with_note(field);
    case Always: return text("always so: ", note);
    case Idle: return text("ignored with a notice: ", note);
    case Only: return text("only ", join(split(row.value, ' '), " or "), ": ", note);
    case Refused: return text("**refused**: ", note);
  }
  return note;
}

}  // namespace tessera
