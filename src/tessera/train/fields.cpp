#include "tessera/train/fields.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/train/hints.h"

namespace tessera {

namespace {

constexpr double kMost = 1e15;  // of counts: far from where 64 bits end
constexpr double kAnyHigh = std::numeric_limits<double>::infinity(), kAnyLow = -kAnyHigh;

/// The row of a field on which the report of `tessera plan` depends.
constexpr Field planned(Field field) {
  field.in_plan = true;
  return field;
}

/// The row of a text that is one of these words.
constexpr Field one_of(std::span<const std::string_view> words, Field field) {
  field.words = words;
  return field;
}

// clang-format off
constexpr Field kFields[] = {
    planned({"preset", "", FieldGroup::Run, OnResume::Free, "NAME",
     "a model and its recipe; other flags override it",
     [](RunConfig& c) -> Slot { return &c.preset; }}),
    {"output", "", FieldGroup::Run, OnResume::Free, "FOLDER",
     "folder for metrics, checkpoints and the summary; made if it does not exist",
     [](RunConfig& c) -> Slot { return &c.output; }},
    planned({"steps", "train-iters", FieldGroup::Run, OnResume::Free, "",
     "training steps; steps that are skipped for inf or nan count",
     [](RunConfig& c) -> Slot { return &c.steps; }, 0, kMost}),
    planned({"epochs", "num-train-epochs num-epochs", FieldGroup::Run, OnResume::Free, "",
     "passes over the training text, instead of steps; 0: as many steps as steps says",
     [](RunConfig& c) -> Slot { return &c.epochs; }, 0, 1e9}),
    {"exit-interval", "", FieldGroup::Run, OnResume::Free, "",
     "save and stop after N steps of this invocation; 0: never",
     [](RunConfig& c) -> Slot { return &c.exit_interval; }, 0, kMost},
    {"resume", "", FieldGroup::Run, OnResume::Free, "none|auto|PATH",
     "continue from a checkpoint: auto takes the newest intact one of the output folder, starts anew if it has none at all, and is refused if all are damaged",
     [](RunConfig& c) -> Slot { return &c.resume; }},
    {"init-from", "pretrained-checkpoint", FieldGroup::Run, OnResume::Free, "PATH",
     "begin with the weights of a checkpoint or of a run's newest one, and with nothing else of it",
     [](RunConfig& c) -> Slot { return &c.init_from; }},
    {"allow-changes", "", FieldGroup::Run, OnResume::Free, "",
     "resume although data, seed or batch differ from those of the checkpoint",
     [](RunConfig& c) -> Slot { return &c.allow_changes; }, kAnyLow, kAnyHigh, "with --resume"},
    {"seed", "", FieldGroup::Run, OnResume::Confirm, "",
     "seed of initial weights, dropout and the order of samples",
     [](RunConfig& c) -> Slot { return &c.seed; }, 0, 9e15},
    planned({"save-every", "save-interval", FieldGroup::Run, OnResume::Free, "",
     "steps between checkpoints; 0: one at the end only, so a run that is killed leaves none",
     [](RunConfig& c) -> Slot { return &c.save_every; }, 0, kMost}),
    planned({"background-save", "async-save", FieldGroup::Run, OnResume::Free, "",
     "train on while a copy of the state is saved; otherwise training waits, and no memory is needed for a copy",
     [](RunConfig& c) -> Slot { return &c.background_save; }}),
    {"keep-last", "", FieldGroup::Run, OnResume::Free, "",
     "how many of the newest checkpoints to keep; 0: all",
     [](RunConfig& c) -> Slot { return &c.keep_last; }, 0, kMost},
    {"keep-best", "", FieldGroup::Run, OnResume::Free, "",
     "also keep the checkpoint with the lowest validation loss, as checkpoints/best in the output folder; it is saved when it is found",
     [](RunConfig& c) -> Slot { return &c.keep_best; }},
    planned({"eval-every", "eval-interval", FieldGroup::Run, OnResume::Free, "",
     "steps between validations; 0: at the end only",
     [](RunConfig& c) -> Slot { return &c.eval_every; }, 0, kMost}),
    {"eval-iters", "", FieldGroup::Run, OnResume::Notice, "",
     "batches of global-batch-size samples in a validation, from the beginning of the held-out part; 0: all of it",
     [](RunConfig& c) -> Slot { return &c.eval_iters; }, 0, 1e9},
    planned({"eval-texts", "", FieldGroup::Run, OnResume::Notice, "",
     "held-out sources that each validation writes translations of, to score them by BLEU; 0: none",
     [](RunConfig& c) -> Slot { return &c.eval_texts; }, 0, 1e9}),
    planned({"eval-at-end", "", FieldGroup::Run, OnResume::Free, "",
     "validate after the last step",
     [](RunConfig& c) -> Slot { return &c.eval_at_end; }}),
    planned({"sample-every", "", FieldGroup::Run, OnResume::Free, "",
     "steps between text samples; 0: none",
     [](RunConfig& c) -> Slot { return &c.sample_every; }, 0, kMost}),
    {"sample-tokens", "", FieldGroup::Run, OnResume::Free, "",
     "length of a text sample",
     [](RunConfig& c) -> Slot { return &c.sample_tokens; }, 1, kMost},
    {"log-every", "log-interval", FieldGroup::Run, OnResume::Free, "",
     "steps between lines of output if it is not a terminal",
     [](RunConfig& c) -> Slot { return &c.log_every; }, 1, kMost},
    planned({"dump-dir", "", FieldGroup::Run, OnResume::Free, "FOLDER",
     "write the graphs after each pass of the compiler",
     [](RunConfig& c) -> Slot { return &c.dump_dir; }}),
    {"profile", "", FieldGroup::Run, OnResume::Free, "FILE.json",
     "write a trace of every kernel of some steps, for Perfetto or Chrome, and print a table of them",
     [](RunConfig& c) -> Slot { return &c.profile; }},
    {"profile-steps", "", FieldGroup::Run, OnResume::Free, "",
     "steps to record, after 2 for warm-up",
     [](RunConfig& c) -> Slot { return &c.profile_steps; }, 1, 10000, "with --profile"},

    planned({"data", "data-path", FieldGroup::Data, OnResume::Free, "PATH",
     "text files, or folders of text files, joined in the order given",
     [](RunConfig& c) -> Slot { return &c.data; }}),
    planned({"valid-data", "valid-data-path", FieldGroup::Data, OnResume::Free, "PATH",
     "text files and folders to validate on, with the vocabulary of the training text; all of the data then trains",
     [](RunConfig& c) -> Slot { return &c.valid_data; }}),
    planned({"vocabulary", "tokenizer-type", FieldGroup::Data, OnResume::Model, "",
     "whether tokens are bytes, characters of the text, or learned from it by byte-pair encoding, as many as vocab-size says",
     [](RunConfig& c) -> Slot { return &c.vocabulary; }}),
    planned({"held-out", "", FieldGroup::Data, OnResume::Confirm, "FRACTION",
     "share of the text, at its end, that is kept for validation",
     [](RunConfig& c) -> Slot { return &c.held_out; }, 0, 0.99}),
    {"sample-order", "", FieldGroup::Data, OnResume::Confirm, "",
     "every window once per epoch, or samples that begin at random offsets",
     [](RunConfig& c) -> Slot { return &c.sample_order; }},
    planned({"global-batch-size", "", FieldGroup::Data, OnResume::Confirm, "",
     "samples per step",
     [](RunConfig& c) -> Slot { return &c.global_batch_size; }, 1, 1e9}),
    planned({"micro-batch-size", "", FieldGroup::Data, OnResume::Free, "",
     "samples that a data parallel device computes at a time; 0: all of the step; fewer take less memory",
     [](RunConfig& c) -> Slot { return &c.micro_batch_size; }, 0, 1e9}),

    planned({"family", "", FieldGroup::Model, OnResume::Model, "NAME",
     "model family",
     [](RunConfig& c) -> Slot { return &c.model.family; }}),
    planned({"layers", "num-layers", FieldGroup::Model, OnResume::Model, "",
     "Transformer blocks",
     [](RunConfig& c) -> Slot { return &c.model.layers; }}),
    planned({"decoder-layers", "decoder-num-layers", FieldGroup::Model, OnResume::Model, "",
     "layers of the decoder, behind those of the encoder; 0: as many as layers",
     [](RunConfig& c) -> Slot { return &c.model.decoder_layers; }}),
    planned({"heads", "num-attention-heads", FieldGroup::Model, OnResume::Model, "",
     "attention heads",
     [](RunConfig& c) -> Slot { return &c.model.heads; }}),
    planned({"kv-heads", "num-query-groups", FieldGroup::Model, OnResume::Model, "",
     "key-value heads; 0: as many as heads",
     [](RunConfig& c) -> Slot { return &c.model.kv_heads; }}),
    planned({"width", "hidden-size", FieldGroup::Model, OnResume::Model, "",
     "channels of the residual stream",
     [](RunConfig& c) -> Slot { return &c.model.width; }}),
    planned({"ffn-width", "ffn-hidden-size", FieldGroup::Model, OnResume::Model, "",
     "hidden channels of the feed-forward layer; 0: 4 x width",
     [](RunConfig& c) -> Slot { return &c.model.ffn_width; }}),
    planned({"context", "seq-length max-position-embeddings", FieldGroup::Model, OnResume::Model, "",
     "tokens per sample",
     [](RunConfig& c) -> Slot { return &c.model.context; }}),
    planned({"source-context", "encoder-seq-length", FieldGroup::Model, OnResume::Model, "",
     "tokens of a source; context are those of a target; 0: as many",
     [](RunConfig& c) -> Slot { return &c.model.source_context; }}),
    planned({"vocab-size", "", FieldGroup::Model, OnResume::Model, "",
     "size of the vocabulary, special tokens of the family included; 0: that of the data and these",
     [](RunConfig& c) -> Slot { return &c.model.vocabulary; }, 0, 1e9}),
    planned({"masked-positions", "max-predictions-per-seq", FieldGroup::Model, OnResume::Confirm, "",
     "the most tokens of a sample that are masked, and the only positions that the head computes; 0: no limit, and it computes all",
     [](RunConfig& c) -> Slot { return &c.model.masked_positions; }}),
    planned({"dropout", "attention-dropout hidden-dropout", FieldGroup::Model, OnResume::Notice, "",
     "share of values dropped, in attention and after each layer",
     [](RunConfig& c) -> Slot { return &c.model.dropout; }}),
    planned({"bias", "!disable-bias-linear", FieldGroup::Model, OnResume::Model, "",
     "biases in linear layers and norms",
     [](RunConfig& c) -> Slot { return &c.model.bias; }}),
    planned({"tied-head", "!untie-embeddings-and-output-weights", FieldGroup::Model, OnResume::Model, "",
     "the output projection is the token embedding",
     [](RunConfig& c) -> Slot { return &c.model.tied_head; }}),
    planned({"shared-embedding", "", FieldGroup::Model, OnResume::Model, "",
     "one table for the tokens of source and target",
     [](RunConfig& c) -> Slot { return &c.model.shared_embedding; }}),
    planned({"sinusoidal-positions", "", FieldGroup::Model, OnResume::Model, "",
     "positions are sines, not learned",
     [](RunConfig& c) -> Slot { return &c.model.sinusoidal; }}),
    planned({"post-norm", "", FieldGroup::Model, OnResume::Model, "",
     "norms after each part of a layer, not before it",
     [](RunConfig& c) -> Slot { return &c.model.post_norm; }}),
    planned({"activation", "", FieldGroup::Model, OnResume::Model, "gelu|relu",
     "of feed-forward layers",
     [](RunConfig& c) -> Slot { return &c.model.activation; }}),
    {"norm-eps", "layernorm-epsilon norm-epsilon", FieldGroup::Model, OnResume::Model, "",
     "added to the variance in norms",
     [](RunConfig& c) -> Slot { return &c.model.norm_eps; }, 0, 1},
    {"rope-base", "rotary-base", FieldGroup::Model, OnResume::Model, "",
     "base of rotary positions",
     [](RunConfig& c) -> Slot { return &c.model.rope_base; }, 1, 1e12},
    {"init-std", "init-method-std", FieldGroup::Model, OnResume::Free, "",
     "standard deviation of initial weights",
     [](RunConfig& c) -> Slot { return &c.model.init_std; }, 0, 1e6},

    planned({"optimizer", "", FieldGroup::Optimizer, OnResume::Model, "",
     "the optimizer",
     [](RunConfig& c) -> Slot { return &c.optimizer.kind; }}),
    {"lr", "", FieldGroup::Optimizer, OnResume::Notice, "",
     "the highest learning rate",
     [](RunConfig& c) -> Slot { return &c.optimizer.schedule.lr; }},
    {"min-lr", "", FieldGroup::Optimizer, OnResume::Notice, "",
     "learning rate after the decay",
     [](RunConfig& c) -> Slot { return &c.optimizer.schedule.min_lr; }, kAnyLow, kAnyHigh,
     "unless --lr-decay-style constant"},
    planned({"lr-decay-style", "", FieldGroup::Optimizer, OnResume::Notice, "",
     "how the learning rate falls",
     [](RunConfig& c) -> Slot { return &c.optimizer.schedule.kind; }}),
    {"lr-warmup-steps", "lr-warmup-iters", FieldGroup::Optimizer, OnResume::Notice, "",
     "steps in which the learning rate rises from 0",
     [](RunConfig& c) -> Slot { return &c.optimizer.schedule.warmup_steps; }, kAnyLow, kMost},
    {"lr-decay-steps", "lr-decay-iters", FieldGroup::Optimizer, OnResume::Notice, "",
     "steps, warm-up included, after which the lowest rate is reached; 0: all steps",
     [](RunConfig& c) -> Slot { return &c.optimizer.schedule.decay_steps; }, 0, kMost,
     "unless --lr-decay-style constant"},
    {"weight-decay", "", FieldGroup::Optimizer, OnResume::Notice, "",
     "decay of weights of two or more dims; biases and norms do not decay",
     [](RunConfig& c) -> Slot { return &c.optimizer.weight_decay; }},
    {"no-weight-decay-for", "", FieldGroup::Optimizer, OnResume::Notice, "PATTERN",
     "parameters that do not decay either, by their paths: '*' stands for any characters, as in 'embed.*'",
     [](RunConfig& c) -> Slot { return &c.no_weight_decay_for; }},
    {"adam-beta1", "", FieldGroup::Optimizer, OnResume::Notice, "",
     "decay rate of Adam's first moment, the mean of gradients",
     [](RunConfig& c) -> Slot { return &c.optimizer.beta1; }},
    {"adam-beta2", "", FieldGroup::Optimizer, OnResume::Notice, "",
     "decay rate of Adam's second moment, the mean of squared gradients",
     [](RunConfig& c) -> Slot { return &c.optimizer.beta2; }},
    {"adam-eps", "", FieldGroup::Optimizer, OnResume::Notice, "",
     "added to the root of the squared gradients",
     [](RunConfig& c) -> Slot { return &c.optimizer.eps; }},
    planned({"lamb-min-trust-ratio", "", FieldGroup::Optimizer, OnResume::Notice, "",
     "lower bound of LAMB's trust ratio |weights| / |update|",
     [](RunConfig& c) -> Slot { return &c.optimizer.min_trust_ratio; }}),
    planned({"lamb-max-trust-ratio", "", FieldGroup::Optimizer, OnResume::Notice, "",
     "upper bound of LAMB's trust ratio |weights| / |update|; 0: none",
     [](RunConfig& c) -> Slot { return &c.optimizer.max_trust_ratio; }}),
    {"sgd-momentum", "", FieldGroup::Optimizer, OnResume::Notice, "",
     "decay rate of the momentum",
     [](RunConfig& c) -> Slot { return &c.optimizer.momentum; }},
    {"nesterov", "", FieldGroup::Optimizer, OnResume::Notice, "",
     "use Nesterov momentum",
     [](RunConfig& c) -> Slot { return &c.optimizer.nesterov; }},
    planned({"clip-grad", "", FieldGroup::Optimizer, OnResume::Notice, "",
     "clip the norm of the whole gradient to this; 0: no clipping",
     [](RunConfig& c) -> Slot { return &c.optimizer.clip; }}),

    planned({"devices", "", FieldGroup::Parallel, OnResume::Free, "",
     "devices, each a rank with threads of its own; the data parallel size is devices / (pipeline x tensor x context parallel size)",
     [](RunConfig& c) -> Slot { return &c.parallel.devices; }, 1, 4096}),
    planned({"data-parallel-size", "", FieldGroup::Parallel, OnResume::Free, "",
     "devices that share out the batch; those that are left over repeat what their neighbours compute; 0: all that tensor, context and pipeline parallel leave",
     [](RunConfig& c) -> Slot { return &c.data_parallel; }, 0, 4096}),
    planned({"tensor-model-parallel-size", "tensor-parallel-size", FieldGroup::Parallel, OnResume::Free, "",
     "tensor parallel size: shards heads, hidden widths and the vocabulary",
     [](RunConfig& c) -> Slot { return &c.parallel.tensor; }, 1, 4096}),
    planned({"sequence-parallel", "", FieldGroup::Parallel, OnResume::Free, "",
     "shard norms, dropout and residuals along the sequence, over the tensor parallel devices",
     [](RunConfig& c) -> Slot { return &c.parallel.sequence; }, kAnyLow, kAnyHigh, "with --tensor-model-parallel-size"}),
    planned({"context-parallel-size", "", FieldGroup::Parallel, OnResume::Free, "",
     "context parallel size: shards the sequence; attention gathers keys and values",
     [](RunConfig& c) -> Slot { return &c.parallel.context; }, 1, 4096}),
    planned({"pipeline-model-parallel-size", "pipeline-parallel-size", FieldGroup::Parallel, OnResume::Free, "",
     "pipeline stages: the layers are cut into so many parts, each on devices of its own; give --micro-batch-size too, best for several micro-batches per stage",
     [](RunConfig& c) -> Slot { return &c.parallel.pipeline; }, 1, 4096}),
    planned({"pipeline-schedule", "", FieldGroup::Parallel, OnResume::Free, "gpipe|1f1b|interleaved|zb-h1|zb-v",
     "in which order a stage takes the forwards and backwards of its micro-batches",
     [](RunConfig& c) -> Slot { return &c.parallel.schedule; }, kAnyLow, kAnyHigh, "with --pipeline-model-parallel-size"}),
    planned({"virtual-pipeline-stages", "num-virtual-stages-per-pipeline-rank", FieldGroup::Parallel, OnResume::Free, "",
     "chunks of layers on each pipeline stage, which interleaved needs 2 or more of; 0: the fewest that the schedule takes",
     [](RunConfig& c) -> Slot { return &c.parallel.virtual_stages; }, 0, 4096, "with --pipeline-model-parallel-size"}),
    planned({"zero-stage", "zero-optimization-stage", FieldGroup::Parallel, OnResume::Free, "",
     "ZeRO stage: 1 shards optimizer states over the data parallel devices, 2 also accumulated gradients, 3 also parameters; 0: as the switches below say",
     [](RunConfig& c) -> Slot { return &c.zero_stage; }, 0, 3}),
    planned({"zero-1-memory-optimization", "use-distributed-optimizer", FieldGroup::Parallel, OnResume::Free, "",
     "ZeRO-1: shard optimizer states over the data parallel devices",
     [](RunConfig& c) -> Slot { return &c.zero1; }}),
    planned({"zero-2-memory-optimization", "", FieldGroup::Parallel, OnResume::Free, "",
     "ZeRO-2: also shard accumulated gradients",
     [](RunConfig& c) -> Slot { return &c.zero2; }}),
    planned({"zero-3-memory-optimization", "", FieldGroup::Parallel, OnResume::Free, "",
     "ZeRO-3: also shard parameters, which are gathered to be read",
     [](RunConfig& c) -> Slot { return &c.zero3; }}),
    planned({"fsdp-memory-optimization", "", FieldGroup::Parallel, OnResume::Free, "",
     "the same as zero-3-memory-optimization",
     [](RunConfig& c) -> Slot { return &c.fsdp; }}),
    planned({"optimizer-shard-size", "optimizer-weight-shard-size", FieldGroup::Parallel, OnResume::Free, "",
     "ZeRO spreads each state over so many neighbouring data parallel devices, and such groups have copies; 0: over all",
     [](RunConfig& c) -> Slot { return &c.parallel.shard_size; }, 0, 4096, "with --zero-stage"}),
    planned({"optimizer-shard-threshold", "", FieldGroup::Parallel, OnResume::Free, "BYTES",
     "ZeRO leaves states whole of which a device would have fewer bytes; 0: none",
     [](RunConfig& c) -> Slot { return &c.parallel.shard_threshold; }, 0, kMost, "with --zero-stage"}),
    planned(one_of(kGatherScopes, {"fsdp-gather", "", FieldGroup::Parallel, OnResume::Free, "",
     "for how long a parameter that ZeRO-3 gathers, or that is copied from the host, is kept: for one op that reads it, for forward and for backward of its block, or for the step",
     [](RunConfig& c) -> Slot { return &c.fsdp_gather; }})),
    planned({"bucket-mb", "bucket-cap-mb", FieldGroup::Parallel, OnResume::Free, "",
     "sum gradients over devices in buckets of so many MiB at most, instead of one by one; 0: one by one",
     [](RunConfig& c) -> Slot { return &c.parallel.bucket_mb; }, 0, 1 << 20}),
    planned({"gradient-aggregation-group", "", FieldGroup::Parallel, OnResume::Free, "",
     "sum gradients over devices in so many groups of neighbouring layers, instead of one by one; 0: as bucket-mb says",
     [](RunConfig& c) -> Slot { return &c.parallel.gradient_groups; }, 0, 1 << 20}),
    planned({"vocab-emb-dp", "", FieldGroup::Parallel, OnResume::Free, "",
     "every tensor parallel device has the tables of token embeddings whole, instead of a part of the rows",
     [](RunConfig& c) -> Slot { return &c.parallel.whole_embeddings; }}),
    planned({"checkpoint-activations", "", FieldGroup::Parallel, OnResume::Free, "",
     "the same as recompute-granularity full",
     [](RunConfig& c) -> Slot { return &c.checkpoint_activations; }}),
    planned(one_of(kRecomputes, {"recompute-granularity", "", FieldGroup::Parallel, OnResume::Free, "",
     "what backward computes again instead of keeping it from forward; full: layers keep their inputs alone; selective: and products with weights",
     [](RunConfig& c) -> Slot { return &c.recompute_granularity; }})),
    planned({"recompute-layers", "", FieldGroup::Parallel, OnResume::Free, "LIST",
     "the layers that recompute-granularity is for, as 0-5,8; all: every layer",
     [](RunConfig& c) -> Slot { return &c.parallel.recompute_layers; }, kAnyLow, kAnyHigh, "with --recompute-granularity or --memory-cap"}),
    planned({"offload-optimizer", "", FieldGroup::Parallel, OnResume::Free, "",
     "moments lie on the host, and the update runs there",
     [](RunConfig& c) -> Slot { return &c.offload_optimizer; }}),
    planned({"offload-gradients", "", FieldGroup::Parallel, OnResume::Free, "",
     "gradients go to the host as soon as they are computed, and are added up there",
     [](RunConfig& c) -> Slot { return &c.offload_gradients; }}),
    planned({"offload-parameters", "", FieldGroup::Parallel, OnResume::Free, "",
     "parameters lie on the host, and are copied to the device where they are read",
     [](RunConfig& c) -> Slot { return &c.offload_parameters; }}),
    planned({"offload-activations", "", FieldGroup::Parallel, OnResume::Free, "",
     "what forward keeps for backward goes to the host, and comes back before backward reads it",
     [](RunConfig& c) -> Slot { return &c.offload_activations; }}),
    planned(one_of(kRemoteDevices, {"remote-device", "", FieldGroup::Parallel, OnResume::Free, "",
     "where offloaded tensors lie: in main memory, or in a file of --offload-folder (nvme); alone, cpu and nvme offload optimizer and gradients",
     [](RunConfig& c) -> Slot { return &c.remote_device; }})),
    planned({"offload-folder", "", FieldGroup::Parallel, OnResume::Free, "FOLDER",
     "where the file with offloaded tensors is made, and removed when the run ends",
     [](RunConfig& c) -> Slot { return &c.offload_folder; }, kAnyLow, kAnyHigh, "with --remote-device nvme"}),
    planned({"memory-cap", "", FieldGroup::Parallel, OnResume::Free, "BYTES",
     "the most memory of a device that may be planned, as 10GiB or 8GB; how much is recomputed and offloaded, and micro-batch-size, are chosen so that it fits at the least cost; what other flags tell is kept",
     [](RunConfig& c) -> Slot { return &c.memory_cap; }}),
    {"distributed-timeout", "", FieldGroup::Parallel, OnResume::Free, "SECONDS",
     "the run ends with an error once a rank has shown no sign of life for so long",
     [](RunConfig& c) -> Slot { return &c.distributed_timeout; }, 1, 1e6},

    planned({"threads", "", FieldGroup::Machine, OnResume::Free, "",
     "threads per device; 0: the cores divided by the devices",
     [](RunConfig& c) -> Slot { return &c.threads; }, 0, 4096}),
    planned({"graph-optimization", "onnx-runtime-training", FieldGroup::Machine, OnResume::Rounding, "",
     "what the compiler does for speed and memory alone: merging and fusing ops, packing weights, buffers that are shared; results are the same but for rounding",
     [](RunConfig& c) -> Slot { return &c.graph_optimization; }}),
    planned({"max-isa", "", FieldGroup::Machine, OnResume::Rounding, "auto|avx2|avx512|avx512-bf16|amx",
     "the highest instruction set that is used; auto: the machine's; several ranks take the lowest among theirs",
     [](RunConfig& c) -> Slot { return &c.max_isa; }}),
    planned({"amx", "", FieldGroup::Machine, OnResume::Free, "",
     "matrix products on the processor's tile unit (AMX), where it has one; without: at most --max-isa avx512-bf16",
     [](RunConfig& c) -> Slot { return &c.amx; }}),
    planned({"pack-weights", "", FieldGroup::Machine, OnResume::Rounding, "auto|yes|no",
     "copy weights into the order that matrix products read, where that is expected to pay; auto: on Intel's processors; several ranks do as rank 0",
     [](RunConfig& c) -> Slot { return &c.pack_weights; }}),
};
// clang-format on

}  // namespace

std::span<const Field> fields() { return kFields; }

std::string_view to_text(FieldGroup group) {
  constexpr std::string_view kNames[] = {"run",       "data",     "model",
                                         "optimizer", "parallel", "machine"};
  return kNames[static_cast<std::size_t>(group)];
}

std::vector<std::string> field_names(const Field& field) {
  std::vector<std::string> out = {std::string(field.name)};
  for (const std::string& alias : split(field.aliases, ' ')) {
    if (!alias.empty()) out.push_back(alias[0] == '!' ? alias.substr(1) : alias);
  }
  if (is_switch(field)) out.push_back("no-" + std::string(field.name));
  return out;
}

FoundField find_field(std::string_view key) {
  for (const Field& field : kFields) {
    if (field.name == key) return {&field, false};
    if (starts_with(key, "no-") && key.substr(3) == field.name && is_switch(field))
      return {&field, true};
    for (std::string_view rest = field.aliases; !rest.empty();) {
      const std::string_view alias = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(alias.size() + 1, rest.size()));
      if (alias == key) return {&field, false};
      if (alias[0] == '!' && alias.substr(1) == key) return {&field, true};
    }
  }
  return {};
}

std::string near_fields(std::string_view key, std::string_view prefix) {
  std::vector<std::string> names;
  for (const Field& field : kFields) {
    for (const std::string& name : field_names(field)) names.push_back(name);
  }
  const std::string told = hint(key, names, prefix);
  return told.empty() ? "" : "; " + told;
}

}  // namespace tessera
