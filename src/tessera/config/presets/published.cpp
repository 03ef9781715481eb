#include "tessera/config/presets/published.h"

#include "tessera/config/presets/begin.h"

namespace tessera::published_presets {

namespace {

/// What recipes of so many parameters share. Validation is left out at the end, as in presets for
/// measuring.
void large(RunConfig& c, std::int64_t batch, std::int64_t steps) {
  c.global_batch_size = batch;
  c.micro_batch_size = 1;
  c.steps = steps;
  c.eval_at_end = false;
}

/// Samples that `tokens` fill.
constexpr std::int64_t samples_of(double tokens, std::int64_t context) {
  return static_cast<std::int64_t>(tokens / static_cast<double>(context));
}

/// Brown et al. 2020, arXiv 2005.14165, table 2.1 and appendix B: Adam with betas 0.9 and 0.95, eps
/// 1e-8, clipping at 1, weight decay 0.1; warm-up over 375 million tokens, then a cosine to a tenth
/// after 260 billion; 300 billion in all. The batch is the final one: the paper's grows from 32
/// thousand tokens in the first 4 to 12 billion. Half of the paper's layers have banded sparse
/// attention; here all are dense. It names no dropout.
void gpt3(RunConfig& c, const PresetSizes& sizes, std::int64_t batch, double lr, double min_lr) {
  begin_preset(c, "gpt2", sizes);
  c.model.vocabulary = 50'257;
  large(c, batch, samples_of(300e9, sizes.context) / batch);
  c.optimizer = {.beta2 = 0.95,
                 .weight_decay = 0.1,
                 .schedule = {.lr = lr,
                              .min_lr = min_lr,
                              .warmup_steps = samples_of(375e6, sizes.context) / batch,
                              .decay_steps = samples_of(260e9, sizes.context) / batch}};
  c.fp16 = true;
}

/// Touvron et al. 2023, arXiv 2302.13971 (tables 1 and 2, section 2.3) and 2307.09288 (section
/// 2.2): AdamW with betas 0.9 and 0.95, weight decay 0.1, clipping at 1, 2000 steps of warm-up, a
/// cosine to a tenth, batches of 4 million tokens (here 2^22). The papers name no precision; the
/// published weights have 16 bits.
void llama(RunConfig& c, const PresetSizes& sizes, double tokens, double lr, double min_lr,
           const FamilyRef& family = "llama") {
  begin_preset(c, family, sizes);
  c.model.vocabulary = 32'000;
  const std::int64_t batch = (std::int64_t{1} << 22) / sizes.context;
  large(c, batch, samples_of(tokens, sizes.context) / batch);
  c.optimizer = {.beta2 = 0.95,
                 .weight_decay = 0.1,
                 .schedule = {.lr = lr, .min_lr = min_lr, .warmup_steps = 2000}};
  c.bf16 = true;
}

/// Zeng et al. 2021, arXiv 2104.12369: table 1, 40,000 tokens, samples of 1024, 16-bit floats in
/// forward and backward with f32 in the optimizer. Where the paper says nothing, the rest is that
/// of MindSpore's model zoo (model_zoo/official/nlp/pangu_alpha: pangu_alpha_config.py, utils.py,
/// train.py): AdamWeightDecay, dropout, warm-up, a cosine over 200,000 steps, sums of gradients in
/// f32 (gradient_fp32_sync, MindSpore's default), and the batch, which is its batch of each data
/// parallel rank times these ranks on the paper's devices. Layers
/// count the query layer, but that of the model of 13 billion, which has as many parameters only
/// with one more.
void pangu_alpha(RunConfig& c, const PresetSizes& sizes, std::int64_t batch, double lr,
                 double min_lr) {
  begin_preset(c, "pangu", sizes);
  c.model.vocabulary = 40'000;
  c.model.dropout = 0.1;
  large(c, batch, 200'000);
  c.optimizer = {.kind = OptimizerKind::AdamWeightDecay,
                 .beta2 = 0.95,
                 .weight_decay = 0.1,
                 .schedule = {.lr = lr, .min_lr = min_lr, .warmup_steps = 2000}};
  c.fp16 = true;
  c.reduce_dtype = "f32";
}

}  // namespace

/// Devlin et al. 2018, arXiv 1810.04805, section 3 and appendix A.2: Adam with 0.9 and 0.999,
/// weight decay 0.01, 10,000 steps of warm-up, linear decay, 1,000,000 steps of 256 samples,
/// dropout 0.1; 15 % of the tokens are predicted. The paper trains nine tenths of the steps on
/// samples of 128 tokens, and then on 512; here all have 512.
void bert_large(RunConfig& c) {
  begin_preset(c, "bert", {.layers = 24, .heads = 16, .width = 1024, .context = 512});
  c.model.vocabulary = 30'522;
  c.model.masked_positions = 77;
  c.model.dropout = 0.1;
  large(c, 256, 1'000'000);
  c.optimizer = {.beta2 = 0.999,
                 .weight_decay = 0.01,
                 .schedule = {.kind = ScheduleKind::Linear, .lr = 1e-4, .warmup_steps = 10'000}};
}

void gpt3_6_7b(RunConfig& c) {
  gpt3(c, {.layers = 32, .heads = 32, .width = 4096, .context = 2048}, 1024, 1.2e-4, 1.2e-5);
}

/// 3.2 million tokens are 1562.5 samples; 1536 is what later recipes of this model take.
void gpt3_175b(RunConfig& c) {
  gpt3(c, {.layers = 96, .heads = 96, .width = 12'288, .context = 2048}, 1536, 6e-5, 6e-6);
}

void llama_7b(RunConfig& c) {
  llama(c, {.layers = 32, .heads = 32, .width = 4096, .context = 2048}, 1e12, 3e-4, 3e-5);
  c.model.ffn_width = 11'008;
  c.model.norm_eps = 1e-6;  // of its published configuration
}

/// Llama 2.
void llama_70b(RunConfig& c) {
  llama(c, {.layers = 80, .heads = 64, .width = 8192, .context = 4096}, 2e12, 1.5e-4, 1.5e-5);
  c.model.kv_heads = 8;
  c.model.ffn_width = 28'672;
  c.optimizer.eps = 1e-5;
}

/// Its authors publish sizes and no recipe: this one is of Llama 2's model with as many active
/// parameters.
void mixtral_8x7b(RunConfig& c) {
  llama(c, {.layers = 32, .heads = 32, .width = 4096, .context = 4096}, 2e12, 3e-4, 3e-5,
        "mixtral");
  c.model.kv_heads = 8;
  c.model.ffn_width = 14'336;
  c.model.rope_base = 1e6;
  c.model.experts = {.experts = 8, .chosen = 2, .balance = 0.02};
}

/// DeepSeek-AI 2024, arXiv 2412.19437, section 4.2: 14.8 trillion tokens. The batch is the final one:
/// the paper's grows from 3072 samples in the first 469 billion tokens. Its rate stays at the highest
/// up to 10 trillion tokens and falls only then; here it falls from the warm-up on. The module that
/// predicts a second token is left out. Weights have 16 bits, where the paper computes products in 8.
void deepseek_v3(RunConfig& c) {
  begin_preset(c, "deepseek_v3", {.layers = 61, .heads = 128, .width = 7168, .context = 4096});
  c.model.vocabulary = 129'280;
  c.model.ffn_width = 18'432;
  c.model.experts.width = 2048;
  c.model.experts.balance = 1e-4;
  c.model.expert_layers = "[0]*3+[1]*58";
  c.model.init_std = 0.006;
  large(c, 15'360, samples_of(14.8e12, 4096) / 15'360);
  c.optimizer = {.beta2 = 0.95,
                 .weight_decay = 0.1,
                 .schedule = {.lr = 2.2e-4, .min_lr = 2.2e-5, .warmup_steps = 2000}};
  c.bf16 = true;
}

/// 512 devices, 8 of them for tensor parallelism, 16 samples on each data parallel rank.
void pangu_alpha_2_6b(RunConfig& c) {
  pangu_alpha(c, {.layers = 32, .heads = 40, .width = 2560, .context = 1024}, 1024, 1e-4, 1e-6);
}

/// 1024 devices, 8 of them for tensor parallelism, 8 samples on each data parallel rank.
void pangu_alpha_13b(RunConfig& c) {
  pangu_alpha(c, {.layers = 41, .heads = 40, .width = 5120, .context = 1024}, 1024, 5e-5, 1e-6);
}

/// 2048 devices: 16 stages x 8 for tensor parallelism x 16 for data; 32 micro-batches of 1. The
/// rate is the paper's; the model zoo has 6e-5, which falls to a tenth, as here.
void pangu_alpha_200b(RunConfig& c) {
  pangu_alpha(c, {.layers = 64, .heads = 128, .width = 16'384, .context = 1024}, 512, 2e-5, 2e-6);
}

}  // namespace tessera::published_presets
