#pragma once
/// Models: functions that build graphs, and the registry of families.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/ir/builder.h"

namespace tessera {

/// The shape of a Transformer. Which fields a family reads is said in its file.
struct ModelConfig {
  std::string family = "gpt2";
  std::int64_t layers = 4;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 0;   // key-value heads; 0: as many as heads
  std::int64_t width = 128;    // of the residual stream
  std::int64_t ffn_width = 0;  // hidden width of the feed-forward layer; 0: 4 x width
  std::int64_t context = 64;   // most positions a sequence can have
  std::int64_t vocabulary = 256;
  double dropout = 0;     // after the embedding, in attention, after each sub-layer
  bool bias = true;       // of linear layers and layer norms
  bool tied_head = true;  // the output projection is the token embedding
  double norm_eps = 1e-5;
  double rope_base = 10'000;
  double init_std = 0.02;  // of weights; residual projections get init_std / sqrt(2 layers)

  std::int64_t groups() const { return kv_heads == 0 ? heads : kv_heads; }
  std::int64_t head_dim() const { return width / heads; }
  std::int64_t hidden() const { return ffn_width == 0 ? 4 * width : ffn_width; }
  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

inline constexpr std::int64_t kMaxLayers = 100'000;
inline constexpr std::int64_t kMaxFieldSize = 1'000'000'000'000'000;  // of every other field

/// All that is wrong with a configuration, one sentence each; empty if it can be built. Sizes of
/// tensors are among it: none of a model that passes has more than 2^62 bytes for one sample.
std::vector<std::string> problems(const ModelConfig& config);

/// Logits [b, s, vocabulary] of token ids [b, s]. `step` is an i64 scalar that tells dropout masks
/// of different steps apart; empty (an invalid Value): no dropout, as in evaluation. Parameters are
/// declared as states of the graph.
using ModelFunction = Value (*)(const ModelConfig& config, Value ids, Value step);

struct ModelFamily {
  std::string_view name;
  ModelFunction logits;
  std::string_view doc;
};

std::span<const ModelFamily> model_families();
/// Errors: an unknown family; the message names the nearest.
const ModelFamily& find_model(std::string_view family);

// The families, one file each.
Value gpt2(const ModelConfig& config, Value ids, Value step);
Value llama(const ModelConfig& config, Value ids, Value step);

/// Errors: Fault::Usage: a tensor of a training step on `batch` samples has more than 2^62 bytes.
void check_step_sizes(const ModelConfig& config, std::int64_t batch);

/// Mean cross-entropy over all labels of the step that are not ignored: one token count, however
/// the batch is cut.
struct Loss {
  Value mean;   // f32 scalar
  Value sum;    // f32 scalar
  Value count;  // f32 scalar: labels that count
};
/// Shapes: logits [b, s, v]; labels [b, s] i32, -100 where there is none.
Loss token_loss(Value logits, Value labels);

}  // namespace tessera
