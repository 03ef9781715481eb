#include "tessera/train/presets.h"

#include "tessera/base/text.h"
#include "tessera/models/family.h"

namespace tessera {

namespace {

struct PresetSizes {
  std::int64_t layers, heads, width, context;
};

/// A model of the family as it was published, in these sizes, with the vocabulary of the data.
void begin(RunConfig& c, const FamilyRef& family, const PresetSizes& sizes) {
  c.model = published(family);
  c.model.layers = sizes.layers, c.model.heads = sizes.heads;
  c.model.width = sizes.width, c.model.context = sizes.context;
  c.model.vocabulary = 0;
}

/// The recipe of nanoGPT for a CPU: character Shakespeare in minutes.
void nanogpt_shakespeare_cpu(RunConfig& c) {
  begin(c, "gpt2", {.layers = 4, .heads = 4, .width = 128, .context = 64});
  c.model.bias = false;
  c.optimizer = {.beta2 = 0.99,
                 .weight_decay = 0.1,
                 .schedule = {.lr = 1e-3, .min_lr = 1e-4, .warmup_steps = 100}};
  c.sample_order = SampleOrder::RandomOffsets;
  c.global_batch_size = 12;
  c.steps = 2000;
  c.sample_every = 500;
}

/// What the small models for tests share; all else is as the family was published.
void tiny(RunConfig& c, const char* family) {
  begin(c, family, {.layers = 4, .heads = 8, .width = 64, .context = 32});
  c.optimizer = {.beta2 = 0.99,
                 .weight_decay = 0.1,
                 .schedule = {.lr = 1e-3, .min_lr = 1e-4, .warmup_steps = 10}};
  c.global_batch_size = 8;
  c.steps = 200;
}

void gpt2_tiny(RunConfig& c) { tiny(c, "gpt2"); }
void bert_tiny(RunConfig& c) { tiny(c, "bert"); }

void llama_tiny(RunConfig& c) {
  tiny(c, "llama");
  c.model.kv_heads = 4;
  c.model.ffn_width = 172;
}

void transformer_tiny(RunConfig& c) {
  tiny(c, "transformer");
  c.model.layers = 2;
}

/// The shapes that are benchmarked.
void gpt2_small(RunConfig& c) {
  begin(c, "gpt2", {.layers = 12, .heads = 12, .width = 768, .context = 256});
  c.model.vocabulary = 50'257;
  c.model.dropout = 0.1;
  c.optimizer = {.beta2 = 0.95,
                 .weight_decay = 0.1,
                 .schedule = {.lr = 6e-4, .min_lr = 6e-5, .warmup_steps = 100}};
  c.global_batch_size = 4;
  c.steps = 1000;
  c.eval_at_end = false;  // a whole held-out part can take longer than a trial of the step
}

/// BERT-base with the published sizes and rates; the head predicts at every position.
void bert_base_pretrain(RunConfig& c) {
  begin(c, "bert", {.layers = 12, .heads = 12, .width = 768, .context = 128});
  c.model.vocabulary = 30'522;
  c.model.dropout = 0.1;
  c.optimizer = {.beta2 = 0.999,
                 .weight_decay = 0.01,
                 .schedule = {.kind = ScheduleKind::Linear, .lr = 1e-4, .warmup_steps = 100}};
  c.global_batch_size = 8;
  c.steps = 1000;
  c.eval_at_end = false;  // as gpt2-small
}

/// GPT-3 of 1.3 billion parameters with the sizes and the rate of Megatron-LM's examples, its
/// vocabulary padded to a multiple of 128.
void gpt_1_3b(RunConfig& c) {
  begin(c, "gpt2", {.layers = 24, .heads = 32, .width = 2048, .context = 1024});
  c.model.vocabulary = 50'304;
  c.model.dropout = 0.1;
  c.optimizer = {.beta2 = 0.95,
                 .weight_decay = 0.1,
                 .schedule = {.lr = 2e-4, .min_lr = 2e-5, .warmup_steps = 100}};
  c.global_batch_size = 4;
  c.micro_batch_size = 1;
  c.steps = 1000;
  c.eval_at_end = false;  // as gpt2-small
}

constexpr Preset kPresets[] = {
    {"nanogpt-shakespeare-cpu", "4 layers, width 128, context 64, 2000 steps of batch 12: minutes",
     nanogpt_shakespeare_cpu},
    {"gpt2-tiny", "GPT-2 of 4 layers, width 64, context 32: seconds, for tests", gpt2_tiny},
    {"llama-tiny", "LLaMA of 4 layers, width 64, context 32: seconds, for tests", llama_tiny},
    {"bert-tiny", "BERT of 4 layers, width 64, context 32: seconds, for tests", bert_tiny},
    {"transformer-tiny",
     "encoder-decoder of 2 + 2 layers, width 64, context 32: seconds, for tests", transformer_tiny},
    {"gpt2-small", "GPT-2 of 12 layers, width 768, vocabulary 50257: for measuring", gpt2_small},
    {"bert-base-pretrain", "BERT of 12 layers, width 768, vocabulary 30522: for measuring",
     bert_base_pretrain},
    {"gpt-1.3b",
     "GPT-2 of 24 layers, width 2048, vocabulary 50304: for planning, and large machines",
     gpt_1_3b},
};

}  // namespace

std::span<const Preset> presets() { return kPresets; }

const Preset& find_preset(std::string_view name) {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) {
    if (preset.name == name) return preset;
    names.emplace_back(preset.name);
  }
  const std::vector<std::string> near = nearest(name, names);
  fail(Fault::Usage, "unknown preset '", name, "'; ",
       near.empty() ? text("known are ", join(names)) : text("nearest: ", join(near)));
}

}  // namespace tessera
