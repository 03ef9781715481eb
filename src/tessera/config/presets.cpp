#include "tessera/config/presets.h"

#include "tessera/base/text.h"
#include "tessera/config/presets/begin.h"
#include "tessera/config/presets/published.h"
#include "tessera/models/family.h"

namespace tessera {

namespace {

/// The recipe of nanoGPT for a CPU: character Shakespeare in minutes.
void nanogpt_shakespeare_cpu(RunConfig& c) {
  begin_preset(c, "gpt2", {.layers = 4, .heads = 4, .width = 128, .context = 64});
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
  begin_preset(c, family, {.layers = 4, .heads = 8, .width = 64, .context = 32});
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

void mixtral_tiny(RunConfig& c) {
  tiny(c, "mixtral");
  c.model.kv_heads = 4;
  c.model.ffn_width = 172;
  c.model.vocabulary = 256;  // of any text's characters or bytes, so that it is planned without one
  c.optimizer.schedule.decay_steps = c.steps;  // also of a run that is to go on with more steps
  c.model.experts = {.experts = 4, .chosen = 2, .balance = 0.01};
}

void transformer_tiny(RunConfig& c) {
  tiny(c, "transformer");
  c.model.layers = 2;
}

/// The shapes that are benchmarked.
void gpt2_small(RunConfig& c) {
  begin_preset(c, "gpt2", {.layers = 12, .heads = 12, .width = 768, .context = 256});
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
  begin_preset(c, "bert", {.layers = 12, .heads = 12, .width = 768, .context = 128});
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
  begin_preset(c, "gpt2", {.layers = 24, .heads = 32, .width = 2048, .context = 1024});
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

constexpr std::string_view kPangu = "arXiv 2104.12369", kGpt3 = "arXiv 2005.14165";

constexpr Preset kPresets[] = {
    {"nanogpt-shakespeare-cpu", "4 layers, width 128, context 64, 2000 steps of batch 12: minutes",
     nanogpt_shakespeare_cpu},
    {"gpt2-tiny", "GPT-2 of 4 layers, width 64, context 32: seconds, for tests", gpt2_tiny},
    {"llama-tiny", "LLaMA of 4 layers, width 64, context 32: seconds, for tests", llama_tiny},
    {"mixtral-tiny", "Mixtral of 4 layers, 4 experts, width 64, context 32: seconds, for tests",
     mixtral_tiny},
    {"bert-tiny", "BERT of 4 layers, width 64, context 32: seconds, for tests", bert_tiny},
    {"transformer-tiny",
     "encoder-decoder of 2 + 2 layers, width 64, context 32: seconds, for tests", transformer_tiny},
    {"gpt2-small", "GPT-2 of 12 layers, width 768, vocabulary 50257: for measuring", gpt2_small},
    {"bert-base-pretrain", "BERT of 12 layers, width 768, vocabulary 30522: for measuring",
     bert_base_pretrain},
    {"gpt-1.3b",
     "GPT-2 of 24 layers, width 2048, vocabulary 50304: for planning, and large machines",
     gpt_1_3b},
    {"bert-large", "BERT as published: 24 layers, width 1024", published_presets::bert_large,
     "arXiv 1810.04805", 340e6},
    {"gpt3-6.7b", "GPT-3 as published: 32 layers, width 4096", published_presets::gpt3_6_7b, kGpt3,
     6.7e9},
    {"gpt3-175b", "GPT-3 as published: 96 layers, width 12288", published_presets::gpt3_175b, kGpt3,
     175e9},
    {"llama-7b", "LLaMA as published: 32 layers, width 4096", published_presets::llama_7b,
     "arXiv 2302.13971", 6.7e9},
    {"llama-70b", "Llama 2 as published: 80 layers, width 8192, 8 key-value heads",
     published_presets::llama_70b, "arXiv 2307.09288", 70e9},
    {"mixtral-8x7b", "Mixtral as published: 32 layers of 8 experts, width 4096",
     published_presets::mixtral_8x7b, "arXiv 2401.04088", 46.7e9},
    {"deepseek-v3", "DeepSeek-V3 as published: 61 layers, 58 of them of 256 experts, width 7168",
     published_presets::deepseek_v3, "arXiv 2412.19437", 671e9},
    {"pangu-alpha-2.6b", "PanGu-alpha as published: 31 layers and the query layer, width 2560",
     published_presets::pangu_alpha_2_6b, kPangu, 2.6e9},
    {"pangu-alpha-13b", "PanGu-alpha as published: 40 layers and the query layer, width 5120",
     published_presets::pangu_alpha_13b, kPangu, 13.1e9},
    {"pangu-alpha-200b", "PanGu-alpha as published: 63 layers and the query layer, width 16384",
     published_presets::pangu_alpha_200b, kPangu, 207.0e9},
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
       near.empty() ? text("presets are ", join(names)) : text("nearest: ", join(near)));
}

}  // namespace tessera
