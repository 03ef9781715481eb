#include "tessera/models/config.h"

#include <algorithm>

#include "tessera/base/size.h"
#include "tessera/base/text.h"
#include "tessera/models/expert_layers.h"
#include "tessera/models/family.h"
#include "tessera/models/layer.h"

namespace tessera {

namespace {

/// A bound above the parameters; a check that does not pass names what is too large.
void check_weight_sizes(const ModelConfig& c) {
  constexpr std::int64_t kBytes = 16;  // of an f32 weight with its gradient and two moments
  const std::string_view all = "bytes of all weights with gradients and moments";
  std::int64_t layers = 0, attentions = 0;
  for (const LayerStack& stack : c.family->stacks(c)) {
    layers += stack.layers;
    attentions += stack.layers * stack.attentions;
  }
  const std::int64_t read = std::max({c.width, c.latent.query_rank, c.latent.kv_rank});
  std::int64_t sum =
      c.head_width == 0 && !c.has_latent_attention()
          ? size_product({attentions, 4, c.width, c.width, kBytes},
                         "bytes of attention (layers x 4 x width x width x 16)")
          : size_product({attentions, 4, read, c.heads, c.head_dim(), kBytes},
                         "bytes of attention (layers x 4 x width x heads x head-width x 16)");
  const auto add = [&](std::initializer_list<std::int64_t> factors, std::string_view what) {
    sum = size_sum(sum, size_product(factors, what), all);
  };
  if (c.has_latent_attention())
    add({attentions, 2, c.width, read, kBytes},
        "bytes of attention (layers x 2 x width x kv-lora-rank or q-lora-rank x 16)");
  add({layers, 3, c.width, std::max(c.hidden(), c.hidden_of_decoder()), kBytes},
      "bytes of feed-forward layers (layers x 3 x width x ffn-width x 16)");
  if (has_experts(c)) {
    add({layers, 3, c.experts.experts, c.width, c.hidden_of_experts(), kBytes},
        "bytes of experts (layers x 3 x num-experts x width x moe-ffn-hidden-size x 16)");
    add({layers, 3, c.width, c.experts.shared_width, kBytes},
        "bytes of shared experts (layers x 3 x width x moe-shared-expert-intermediate-size x 16)");
  }
  const std::int64_t embedded = std::max(c.width, c.embedded());
  add({2, c.vocabulary, embedded, kBytes},
      "bytes of embedding and head (2 x vocabulary x width x 16)");
  add({c.most_positions(), embedded, kBytes}, "bytes of positions (context x width x 16)");
  add({2, c.width, embedded, kBytes},
      "bytes between embedding and layers (2 x width x embedding-width x 16)");
}

void find_expert_layer_problems(const ModelConfig& c, FieldProblems& out) {
  try {
    const ExpertLayers layers(c.expert_layers);
    if (c.experts.experts < 1 || c.layers < 1 || c.layers > kMaxLayers) return;
    if (layers.listed() > 0 && layers.listed() != c.layers)
      out.add({"moe-layer-freq", "layers"},
              text("moe-layer-freq has numbers for ", layers.listed(), " layers, and layers is ",
                   c.layers, "; give one for each layer"));
    for (std::int64_t i = 0; i < c.layers; ++i)
      if (layers.has(i)) return;
    out.add({"moe-layer-freq", "num-experts"},
            text("moe-layer-freq ", c.expert_layers,
                 " gives no layer experts; give some, or num-experts 0"));
  } catch (const Error& error) {
    out.add({"moe-layer-freq"}, error.what());
  }
}

/// Of linear layers that are experts where a layer has some.
bool is_of_experts(std::string_view target) {
  return target == "up" || target == "gate" || target == "down";
}

}  // namespace

bool ModelConfig::has_latent_attention() const {
  return latent.kv_rank > 0 && reads_field(*this, "kv-lora-rank");
}

std::int64_t ModelConfig::head_dim() const {
  if (has_latent_attention()) return latent.rotary_width + latent.plain_width;
  return head_width == 0 ? width / heads : head_width;
}

bool ModelConfig::has_whole_heads() const {
  return head_width > 0 || has_latent_attention() || (heads > 0 && width % heads == 0);
}

ModelConfig with_derived(ModelConfig config) {
  complete(config);
  config.kv_heads = config.groups();
  config.ffn_width = config.hidden();
  config.embedding_width = config.embedded();
  config.generator_width = config.generator();
  if (config.heads > 0 && config.head_width == config.width / config.heads) config.head_width = 0;
  config.source_context = config.source();
  config.decoder_layers = config.decoder();
  config.decoder_heads = config.heads_of_decoder();
  config.decoder_ffn_width = config.hidden_of_decoder();
  return config;
}

ModelConfig at_length(ModelConfig config, std::int64_t length) {
  config.positions = config.most_positions();
  config.source_positions = config.most_source_positions();
  config.source_context = std::min(config.source(), length);
  config.context = std::min(config.context, length);
  return config;
}

FieldProblems problems(const ModelConfig& c) {
  FieldProblems out;
  const auto positive = [&](std::string_view name, std::int64_t value,
                            std::int64_t most = kMaxFieldSize) {
    if (value < 1) out.add({name}, text(name, " is ", value, "; it must be 1 or more"));
    if (value > most) out.add({name}, text(name, " is ", value, "; it must be at most ", most));
    return value >= 1 && value <= most;
  };
  positive("layers", c.layers, kMaxLayers);
  positive("context", c.context, kMaxContext);
  if (c.positions < 0 || c.positions > kMaxContext || (c.positions > 0 && c.positions < c.context))
    out.add({"positions", "context"},
            text("positions is ", c.positions, "; give 0, or at least the context of ", c.context,
                 " and at most ", kMaxContext));
  if (c.source_context != 0) positive("source-context", c.source_context, kMaxContext);
  if (c.decoder_layers != 0) positive("decoder-layers", c.decoder_layers, kMaxLayers);
  if (c.vocabulary < 1)
    out.add({"vocab-size"}, text("vocabulary is ", c.vocabulary, "; it must be 1 or more"));
  if (c.vocabulary > kMaxFieldSize)
    out.add({"vocab-size"},
            text("vocabulary is ", c.vocabulary, "; it must be at most ", kMaxFieldSize));
  const bool heads = positive("heads", c.heads), width = positive("width", c.width);
  for (const auto& [name, value] :
       {std::pair("kv-heads", c.kv_heads),
        {"head-width", c.head_width},
        {"ffn-width", c.ffn_width},
        {"decoder-heads", c.decoder_heads},
        {"decoder-ffn-width", c.decoder_ffn_width},
        {"embedding-width", c.embedding_width},
        {"generator-width", c.generator_width},
        {"query-scalar", c.query_scalar},
        {"q-lora-rank", c.latent.query_rank},
        {"kv-lora-rank", c.latent.kv_rank},
        {"moe-ffn-hidden-size", std::max<std::int64_t>(c.experts.width, 0)},
        {"num-experts", std::max<std::int64_t>(c.experts.experts, 0)},
        {"moe-shared-expert-intermediate-size",
         std::max<std::int64_t>(c.experts.shared_width, 0)}}) {
    if (value < 0) out.add({name}, text(name, " is ", value, "; it must not be negative"));
    if (value > 0) positive(name, value);
  }
  if (c.head_width > 0 || c.has_latent_attention()) {
    // Heads of a width of their own divide nothing.
  } else if (heads && width && c.heads > c.width) {
    out.add({"heads", "width"}, text("heads ", c.heads, " are more than the width ", c.width,
                                     "; choose heads that divide the width"));
  } else if (heads && width && c.width % c.heads != 0) {
    const std::int64_t below = c.width / c.heads * c.heads;
    out.add({"heads", "width"}, text("heads ", c.heads, " do not divide the width ", c.width,
                                     "; nearest widths are ", below, " and ", below + c.heads));
  }
  if (width && c.decoder_heads > 0 && c.head_width == 0 && c.width % c.decoder_heads != 0)
    out.add({"decoder-heads", "width"},
            text("decoder-heads ", c.decoder_heads, " do not divide the width ", c.width,
                 "; choose a divisor of it"));
  if (heads && c.kv_heads > 0 && c.kv_heads <= kMaxFieldSize && c.heads % c.kv_heads != 0) {
    out.add({"kv-heads", "heads"}, text("kv-heads ", c.kv_heads, " do not divide heads ", c.heads,
                                        "; choose a divisor of ", c.heads));
  }
  if (!(c.dropout >= 0 && c.dropout < 1)) {
    out.add({"dropout"}, text("dropout is ", c.dropout, "; it must be at least 0 and less than 1"));
  }
  if (!(c.attention_dropout == -1 || (c.attention_dropout >= 0 && c.attention_dropout < 1))) {
    out.add({"attention-dropout"},
            text("attention-dropout is ", c.attention_dropout,
                 "; it must be at least 0 and less than 1, or -1 for dropout's rate"));
  }
  for (const FieldProblem& problem : problems(c.lora)) out.add(problem);
  if (reads_field(c, "num-experts")) {
    for (const FieldProblem& problem : problems(c.experts)) out.add(problem);
    find_expert_layer_problems(c, out);
  }
  for (const std::string& target : c.lora.targets) {
    if (c.lora.rank > 0 && has_experts(c) && is_of_experts(target))
      out.add({"lora-targets", "num-experts"},
              text("lora-targets has ", target, ", and experts have no adapters; leave it out"));
  }
  const ModelFamily& family = *c.family;
  if (c.vocabulary > 0 && c.vocabulary <= family.special_tokens) {
    out.add({"vocab-size", "family"},
            text("vocabulary is ", c.vocabulary, ", and ", family.special_tokens,
                 " tokens of family ", c.family, " are special; it must be larger"));
  }
  const FamilyTask* const task = find_task(c);
  if (task == nullptr) {
    try {
      family_task(c);
    } catch (const Error& error) {
      out.add({"task", "family"}, error.what());
    }
    return out;
  }
  if (heads && width) {
    family.find_problems(c, out);
    if (task->find_problems != nullptr) task->find_problems(c, out);
  }
  if (!out.empty()) return out;
  try {
    check_weight_sizes(c);
    check_step_sizes(c, 1);
  } catch (const Error& error) {
    out.add({"layers", "decoder-layers", "width", "embedding-width", "ffn-width", "heads",
             "kv-heads", "head-width", "context", "source-context", "vocab-size", "num-experts",
             "moe-router-topk", "moe-shared-expert-intermediate-size"},
            error.what());
  }
  return out;
}

void check_step_sizes(const ModelConfig& c, std::int64_t batch) {
  constexpr std::int64_t kBytes = 4;
  size_product({batch, c.context, c.vocabulary, kBytes},
               "bytes of logits (samples x context x vocabulary x 4)");
  size_product(
      {batch, std::max(c.context, c.source()), std::max(c.hidden(), c.hidden_of_decoder()), kBytes},
      "bytes of the feed-forward layer (samples x context x ffn-width x 4)");
  if (has_experts(c)) {
    size_product({batch, c.context, c.experts.experts, kBytes},
                 "bytes of probabilities of experts (samples x context x num-experts x 4)");
    size_product(
        {batch, c.context, c.experts.chosen, std::max(c.hidden_of_experts(), c.width), kBytes},
        "bytes of rows of experts (samples x context x moe-router-topk x "
        "moe-ffn-hidden-size x 4)");
  }
  size_product(
      {batch, std::max(c.context, c.source()), 3, c.heads, c.head_dim(), kBytes},
      "bytes of queries, keys and values (samples x context x 3 x heads x head-width x 4)");
  size_product({layer_count(c), batch, std::max(c.context, c.source()), 3, c.width, kBytes},
               "bytes for the backward pass (layers x samples x context x 3 x width x 4)");
}

}  // namespace tessera
