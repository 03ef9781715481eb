#pragma once
/// The sizes of a model, and what can be wrong with them.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/field_problems.h"
#include "tessera/models/preference_config.h"
#include "tessera/nn/transformer.h"

namespace tessera {

struct ModelFamily;  // models/family.h

/// Which family a model is of: one of the library's, or one of the program's own, which outlives
/// every configuration that refers to it.
class FamilyRef {
 public:
  FamilyRef();  // the one that is ModelFamily::standard
  FamilyRef(const ModelFamily& family) : family_(&family) {}
  /// By name, of the library's. Errors: Fault::Usage: there is none; the message lists them.
  FamilyRef(std::string_view name);
  FamilyRef(const char* name) : FamilyRef(std::string_view(name)) {}
  FamilyRef(const std::string& name) : FamilyRef(std::string_view(name)) {}
  const ModelFamily& operator*() const { return *family_; }
  const ModelFamily* operator->() const { return family_; }
  std::string_view name() const;
  friend bool operator==(const FamilyRef&, const FamilyRef&) = default;
  friend std::string to_text(const FamilyRef& family) { return std::string(family.name()); }

 private:
  const ModelFamily* family_;
};

/// ModelConfig::pooling, as Hugging Face's config.json has it.
inline constexpr const char *kFirstPooling = "cls", *kMeanPooling = "mean";

/// The sizes of a Transformer. A family reads some of them: ModelFamily::reads.
struct ModelConfig {
  FamilyRef family = {};
  std::string task = {};  // what it is trained to do: FamilyTask::name; empty: the family's first
  std::int64_t layers = 4;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 0;         // key-value heads; 0: as many as heads
  std::int64_t width = 128;          // of the residual stream
  std::int64_t embedding_width = 0;  // of the tables of tokens and positions; 0: width
  std::int64_t head_width = 0;       // of queries, keys and values; 0: width / heads
  std::int64_t ffn_width = 0;        // hidden width of the feed-forward layer; 0: 4 x width
  std::int64_t context = 64;         // tokens per sample
  std::int64_t positions = 0;  // most that a sequence can have, where they are learned; 0: context
  std::int64_t vocabulary = 256;
  std::int64_t masked_positions = 0;  // most tokens of a sample that are predicted; 0: no limit
  std::int64_t generator_width = 0;   // of ELECTRA's generator; 0: a quarter of width
  double dropout = 0;                 // after the embedding, in attention, after each sub-layer
  double attention_dropout = -1;      // of the probabilities of attention; -1: as dropout
  bool bias = true;                   // of linear layers and layer norms
  bool tied_head = true;              // the output projection is the token embedding
  double norm_eps = 1e-5;
  double rope_base = 10'000;
  double local_rope_base = 0;       // of layers with windows; 0: rope_base
  double rotary_share = 1;          // of a head's channels that rotate
  std::string rope_scaling = {};    // as rotary_scaling_of reads it; empty: none
  bool one_norm = false;            // of parallel parts, for both
  bool residual_attention = false;  // scores of the layer before are added to those of each layer
  // Of causal attention:
  std::int64_t window = 0;        // a token sees so many, itself and those before it; 0: all
  std::int64_t global_every = 0;  // of layers with windows, each so-many-th sees all; 0: none does
  std::int64_t query_scalar = 0;  // scores are divided by its root; 0: the width of a head
  double score_cap = 0, logit_cap = 0;            // c tanh(x / c) in place of x; 0: no cap
  bool attention_bias = false, ffn_bias = false;  // of these linear layers, of a model without bias
  // Of causal models, where a sample holds several documents:
  bool reset_positions = false;  // positions count from the start of each document
  bool reset_attention = false;  // a token sees its own document only
  // Of encoder-decoder models:
  std::int64_t decoder_layers = 0;     // `layers` are the encoder's; 0: as many as it has
  std::int64_t decoder_heads = 0;      // 0: as many as heads, which are the encoder's
  std::int64_t decoder_ffn_width = 0;  // 0: as ffn_width, which is the encoder's
  std::int64_t source_context = 0;     // tokens of a source; 0: as many as context, of a target
  std::int64_t source_positions = 0;   // as positions, of a source; 0: as many as source_context
  bool post_norm = false;         // norms after each part, as in the first Transformer; else before
  bool shared_embedding = false;  // one table for the tokens of source and target
  bool sinusoidal = false;        // positions are sines; else learned
  bool scale_embedding = false;   // rows of token tables times sqrt(width)
  /// Ids of tokens that no text has, with commas, as translation_tokens has them. Empty: those of
  /// the data's vocabulary, or the last ones of the model's.
  std::string special_tokens = {};
  /// Of models that know positions by distances: so many kinds, and from which on all are one kind.
  std::int64_t distance_kinds = 32, far_distance = 128;
  double logit_scale = 0;           // of the head's result; 0: as the family has it
  std::string activation = "gelu";  // of feed-forward layers, as its family names it
  // Of models of pictures:
  std::int64_t image_size = 224;    // pixels of a side: pictures are square
  std::int64_t patch_size = 16;     // pixels of a side of a patch
  std::int64_t image_channels = 3;  // numbers for each pixel
  double layer_scale = 1;           // of what each part of a layer adds, for each channel, at first
  bool distilled = false;           // two heads tell classes, and their mean counts
  // Of models that answer questions about texts:
  std::int64_t doc_stride = 128;        // tokens that two windows of a long text share
  std::int64_t max_answer_length = 30;  // tokens of a predicted answer, at most
  // Of models that classify:
  std::int64_t classes = 0;             // 0: as many as the data has labels
  double classifier_dropout = -1;       // before the classifier of texts; -1: as dropout
  std::string pooling = kFirstPooling;  // the row that it reads: of the first token, or of all
  // Of models that choose among texts, or make vectors of them:
  std::int64_t texts = 0;  // of a sample: choices; anchor, positive, negative; 0: as the data has
  double similarity_scale = 20;                 // of cosines, in logits
  std::string sentence_pooling = kMeanPooling;  // as `pooling`, of the vector
  PreferenceConfig preference = {};             // of models that learn from preferences
  double init_std = 0.02;      // of weights; residual projections get init_std / sqrt(2 layers)
  LoraConfig lora = {};        // adapters, which are trained in place of the weights
  ExpertsConfig experts = {};  // of feed-forward layers
  /// Which layers have experts, as ExpertLayers reads it: "1" all, "2" every second one, the first
  /// one too, "[0]*3+[1]*58" all but the first three.
  std::string expert_layers = "1";
  LatentConfig latent = {};  // of self-attention

  std::int64_t groups() const { return kv_heads == 0 ? heads : kv_heads; }
  double attention_rate() const { return attention_dropout < 0 ? dropout : attention_dropout; }
  bool has_latent_attention() const;
  /// Of queries and keys.
  std::int64_t head_dim() const;
  /// Whether each head has a whole number of channels.
  bool has_whole_heads() const;
  std::int64_t embedded() const { return embedding_width == 0 ? width : embedding_width; }
  std::int64_t generator() const {
    return generator_width == 0 ? (width + 3) / 4 : generator_width;
  }
  std::int64_t most_positions() const { return positions == 0 ? context : positions; }
  std::int64_t decoder() const { return decoder_layers == 0 ? layers : decoder_layers; }
  std::int64_t heads_of_decoder() const { return decoder_heads == 0 ? heads : decoder_heads; }
  std::int64_t hidden_of_decoder() const {
    return decoder_ffn_width == 0 ? hidden() : decoder_ffn_width;
  }
  std::int64_t source() const { return source_context == 0 ? context : source_context; }
  std::int64_t most_source_positions() const {
    return source_positions == 0 ? source() : source_positions;
  }
  std::int64_t hidden() const { return ffn_width == 0 ? 4 * width : ffn_width; }
  std::int64_t hidden_of_experts() const { return experts.width == 0 ? hidden() : experts.width; }
  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

inline constexpr std::int64_t kMaxLayers = 100'000;
inline constexpr std::int64_t kMaxContext = 1'000'000'000;     // of source_context too
inline constexpr std::int64_t kMaxFieldSize = 10'000'000'000;  // of every other field

/// The same model with every size written out that follows from others where it is 0.
ModelConfig with_derived(ModelConfig config);

/// The same model, weights included, on samples of up to `length` tokens, where it had longer ones.
ModelConfig at_length(ModelConfig config, std::int64_t length);

/// All problems of a configuration, one sentence each; empty if it can be built. Sizes of
/// tensors are among it: none of a model that passes has more than 2^62 bytes for one sample.
FieldProblems problems(const ModelConfig& config);

/// Errors: Fault::Usage: a tensor of a training step on `batch` samples has more than 2^62 bytes.
void check_step_sizes(const ModelConfig& config, std::int64_t batch);

}  // namespace tessera
