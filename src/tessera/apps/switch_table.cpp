#include "tessera/apps/switch_table.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/apps/flags.h"
#include "tessera/base/format.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

constexpr double kBits = 0;         // the same ops on the same operands
constexpr double kRounding = 1e-5;  // sums in another order: docs/internals/design.md
constexpr double kBf16 = 2e-3;      // 8 bits of precision; 2e-4 was seen in ten steps
constexpr double kF16 = 3e-4;       // 11 bits of precision; 3e-5 was seen, no step skipped

constexpr const char* kOtherOrder = "sums in another order";

// clang-format off
constexpr SwitchRow kRows[] = {
    {"fp32", "--no-bf16 --no-fp16 --no-mixed-precision", "", "", "",
     "the default of all three", "", "", "f32 everywhere", kBits},
    {"mixed-precision", "--mixed-precision", "", "", "", "R --mixed-precision (there f16)",
     "as bf16", "as bf16", "the 16-bit floats that suit the machine: bf16 on processors", kBf16},
    {"bf16", "--bf16", "", "", "", "M --bf16; D bf16.enabled",
     "activations half; a 16-bit copy of each parameter (2 bytes) more: less in all only where "
     "activations are the larger part",
     "faster with AVX512-BF16 or AMX", "forward and backward in bf16, updates in f32", kBf16},
    {"fp16", "--fp16", "", "", "", "M --fp16; D fp16.enabled",
     "as bf16, and half of gradients", "no faster on processors",
     "forward, backward and sums of gradients in f16, with a loss scale; more once a step is "
     "skipped",
     kF16},
    {"reduce-dtype", "--reduce-dtype", "NAME", "bf16", "bf16 fp16 mixed-precision",
     "M --grad-reduce-in-bf16; D grad_accum_dtype, communication_data_type",
     "gradients: half in 16 bits, whole in f32",
     "in 16 bits, sums of gradients send half of the bytes",
     "in which floats gradients are added up: f32; or bf16 with bf16, f16 with fp16", kBf16},
    {"graph-optimization", "--graph-optimization", "", "", "", "R --onnx-runtime-training",
     "less", "faster (the default)", "", kBits},
    {"no-graph-optimization", "--no-graph-optimization", "", "", "", "without the one above",
     "more", "slower", kOtherOrder, kRounding},
    {"dp", "--data-parallel-size", "N", "2", "", "M, D: what the other sizes leave",
     "activations / N", "1 sum of gradients a step", kOtherOrder, kRounding},
    {"zero-1", "--zero-stage=1", "", "", "",
     "R --zero-1-memory-optimization, OSS; M --use-distributed-optimizer; D stage 1",
     "optimizer / dp", "sends as much as dp; with bf16 three quarters of it",
     kOtherOrder, kRounding},
    {"zero-2", "--zero-stage=2", "", "", "", "R --zero-2-memory-optimization, OSS+SDP; D stage 2",
     "optimizer and gradients / dp", "sends gradients for each micro-batch",
     kOtherOrder, kRounding},
    {"zero-3", "--zero-stage=3", "", "", "", "R --zero-3-memory-optimization; D stage 3",
     "parameters, optimizer, gradients / dp", "gathers parameters for each micro-batch, twice",
     kOtherOrder, kRounding},
    {"fsdp", "--fsdp-memory-optimization", "", "", "", "R --fsdp-memory-optimization; M FSDP",
     "as zero-3", "as zero-3", "as zero-3", kRounding},
    {"fsdp-gather", "--fsdp-gather", "NAME", "step", "zero-3", "FSDP reshard_after_forward",
     "step: whole parameters for the step; use: less than block",
     "step: gathers once a step; use: most often", "", kBits},
    {"bucket-mb", "--bucket-mb", "N", "1", "", "DDP bucket_cap_mb; D reduce_bucket_size",
     "none to a little", "fewer and longer messages", "", kBits},
    {"tp", "--tensor-model-parallel-size", "N", "2", "", "R, M --tensor-model-parallel-size",
     "parameters and most activations / N", "4 sums of activations a layer",
     kOtherOrder, kRounding},
    {"sequence-parallel", "--sequence-parallel", "", "", "tp", "M --sequence-parallel",
     "all activations / N", "the sums of tp in two halves", kOtherOrder,
     kRounding},
    {"vocab-emb-dp", "--vocab-emb-dp", "", "", "tp", "MindSpore vocab_emb_dp",
     "whole tables of embeddings", "no sum of embeddings", kOtherOrder,
     kRounding},
    {"cp", "--context-parallel-size", "N", "2", "", "M --context-parallel-size",
     "activations / N", "sends keys and values, or tokens for heads", kOtherOrder, kRounding},
    {"cp-comm-type", "--cp-comm-type", "NAME", "all_gather", "cp", "M --cp-comm-type",
     "all_gather: all keys and values", "a2a: sends less where heads are many; p2p: hides it", kOtherOrder,
     kRounding},
    {"pp", "--pipeline-model-parallel-size", "N", "2", "", "R, M --pipeline-model-parallel-size",
     "parameters and optimizer / N", "stages wait: several micro-batches for each stage are needed",
     kOtherOrder, kRounding},
    {"schedule", "--pipeline-schedule", "NAME", "zb-h1", "pp", "M interleaved; zero bubble",
     "how many micro-batches are in flight", "how long stages wait",
     kOtherOrder, kRounding},
    {"micro-batch-size", "--micro-batch-size", "N", "1", "", "R, M --micro-batch-size",
     "activations of N samples", "slower where products get small", kOtherOrder,
     kRounding},
    {"recompute", "--recompute-granularity=full", "", "", "",
     "R --checkpoint-activations; M --recompute-granularity full",
     "a layer keeps its input", "forward once more: up to a third more FLOPs", "", kBits},
    {"recompute-selective", "--recompute-granularity=selective", "", "", "",
     "M --recompute-activations", "a layer keeps its products", "some 1 % more FLOPs", "", kBits},
    {"no-recompute", "--recompute-granularity=none", "", "", "", "the default there",
     "a layer keeps all that backward reads", "a little faster than elementwise, the default", "",
     kBits},
    {"offload", "--offload-optimizer", "", "", "", "M --optimizer-cpu-offload; D offload_optimizer",
     "moments, in mixed precision f32 parameters too, on the host",
     "gradients and parameters are copied once a step", "", kBits},
    {"offload-gradients", "--offload-gradients", "", "", "", "D offload_optimizer",
     "gradients on the host", "gradients are copied for each micro-batch", "", kBits},
    {"offload-parameters", "--offload-parameters", "", "", "", "D offload_param",
     "parameters (in mixed precision their 16-bit copies) on the host",
     "parameters are copied for each micro-batch, twice", "", kBits},
    {"offload-activations", "--offload-activations", "", "", "", "M --cpu-offloading; D cpu_checkpointing",
     "what forward keeps is on the host", "activations are copied there and back", "", kBits},
    {"nvme", "--remote-device=nvme --offload-folder", "FOLDER", "{}", "", "D offload device nvme",
     "what is offloaded is in a file; alone: moments and gradients", "as fast as the disk", "",
     kBits},
    {"memory-cap", "--memory-cap", "BYTES", "300KiB", "", "none",
     "at most so much is planned", "the cheapest recomputing, offloading and micro-batches that fit",
     "sums in another order if micro-batches get smaller", kRounding},
    {"mmap", "--data-impl=mmap", "", "", "", "R, M --data-impl mmap",
     "token files stay on disk", "starts at once", "", kBits},
};
// clang-format on

/// ", with `bf16`, `fp16` or `mixed-precision`", each name between quotes; empty: needs nothing.
std::string needs_text(const SwitchRow& row, std::string_view quote) {
  if (row.needs[0] == '\0') return {};
  const std::vector<std::string> names = split(row.needs, ' ');
  std::string out = ", with ";
  for (std::size_t i = 0; i < names.size(); ++i)
    out += text(i == 0 ? "" : i + 1 < names.size() ? ", " : " or ", quote, names[i], quote);
  return out;
}

/// "0", "1e-05", "2e-03: updates in f32": the page says that 1e-05 is of sums in another order.
std::string short_numbers(const SwitchRow& row) {
  const std::string what = row.tolerance == 0 ? "0" : format("%.0e", row.tolerance);
  const bool is_said = row.numbers[0] == '\0' || std::string_view(row.numbers) == kOtherOrder;
  return is_said ? what : text(what, ": ", row.numbers);
}

}  // namespace

std::span<const SwitchRow> switch_table() { return kRows; }

std::string flags_text(const SwitchRow& row) {
  return text(row.flags, row.value[0] == '\0' ? "" : "=", row.value);
}

std::string numbers_text(const SwitchRow& row) {
  const std::string what =
      row.tolerance == 0 ? "the same bits" : format("within %.0e", row.tolerance);
  return row.numbers[0] == '\0' ? what : text(what, ": ", row.numbers);
}

std::string switches_markdown() {
  std::string out = "| name | flags | memory | time | losses |\n|---|---|---|---|---|\n";
  for (const SwitchRow& row : kRows)
    out += text("| `", row.name, row.value[0] == '\0' ? "" : text("=", row.value), "` | `",
                flags_text(row), "`", needs_text(row, "`"), " | ", row.memory, " | ", row.time,
                " | ", short_numbers(row), " |\n");
  return out;
}

std::string switches_text(int columns) {
  std::string out =
      "R, M, D: names in Rapidformer, Megatron-LM, DeepSpeed; dp: data parallel devices\n";
  for (const SwitchRow& row : kRows) {
    out += text(row.name, "\n    ", flags_text(row), needs_text(row, ""), "\n");
    const std::pair<const char*, std::string> cells[] = {{"elsewhere", row.elsewhere},
                                                         {"memory", row.memory},
                                                         {"time", row.time},
                                                         {"losses", numbers_text(row)}};
    for (const auto& [what, value] : cells) {
      if (value.empty()) continue;
      out += text("    ", what);
      wrap(out, value, 15, static_cast<std::size_t>(std::clamp(columns, 60, 110)));
    }
  }
  return out;
}

}  // namespace tessera
