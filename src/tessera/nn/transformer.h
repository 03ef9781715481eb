#pragma once
/// Transformer layers: attention, feed-forward, encoder and decoder layers and their stacks. Like
/// all layers they are functions that add nodes to a graph and declare parameters as states of it.

#include <functional>
#include <optional>

#include "tessera/nn/layers.h"
#include "tessera/nn/lora.h"
#include "tessera/ops/rotary.h"

namespace tessera {

/// RmsPlusOne: RMS norm times 1 + weight.
enum class NormKind { Layer, Rms, RmsPlusOne };
/// Relu, Silu and the two forms of GELU: down(act(up(x))). SwiGlu: down(silu(gate(x)) * up(x));
/// GeGlu: the same with GELU by tanh; GeGluErf: by erf. CappedSwiGlu: down(gate(x) sigmoid(1.702
/// gate(x)) * (up(x) + 1)), gate at most 7 and up from -7 to 7, as gpt-oss has it.
enum class FeedForward { Relu, Silu, GeluErf, GeluTanh, SwiGlu, GeGlu, GeGluErf, CappedSwiGlu };

/// What makes an expert's logit of a token the score by which the token chooses.
enum class RouterScore { Softmax, Sigmoid };
/// Which tokens an expert keeps of those that chose it, where they are too many: those of the
/// largest weight, the first, the first choices of all tokens before their second ones, or any.
enum class DropPolicy { Probs, Position, Choice, Random };

/// Feed-forward parts of which each token reads some, which a router chooses (nn/experts.h).
struct ExpertsConfig {
  std::int64_t experts = 0;  // of a layer; 0: its feed-forward part is one
  std::int64_t width = 0;    // hidden width of each; 0: that of the layer's feed-forward part
  std::int64_t chosen = 2;   // by each token: those of the best score
  RouterScore score = RouterScore::Softmax;
  /// What the chosen ones add is weighted by their scores; else by their share in those of the
  /// chosen ones.
  bool pre_softmax = false;
  double scale = 1;  // of these weights
  /// Above 0: experts lie in so many groups, and a token chooses among those of its best
  /// `chosen_groups`, by the sum of the best chosen / chosen_groups scores of a group.
  std::int64_t groups = 0, chosen_groups = 0;
  /// Scores are chosen by with a number of each expert added to them, which goes up after a step in
  /// which it had fewer tokens than in the mean, and down where more, by `bias_rate`.
  bool bias = false;
  double bias_rate = 1e-3;
  double jitter =
      0;  // in training a router reads x times a number drawn from [1 - jitter, 1 + jitter]
  /// Samples, one behind another in the batch, that share a balance loss and a capacity: these do not
  /// depend on how the batch is cut.
  std::int64_t samples = 1;
  /// Above 0: an expert takes capacity x tokens x chosen / experts of the tokens of such a group,
  /// rounded up, and at least `least_capacity`. To the others it adds nothing.
  double capacity = 0;
  std::int64_t least_capacity = 0;
  DropPolicy drop = DropPolicy::Probs;
  /// Beside the experts stands a feed-forward part as wide as one, and both are added by weights
  /// that are a softmax of a linear layer of the token.
  bool residual = false;
  /// Hidden width of a feed-forward part that every token reads beside its experts; 0: none.
  std::int64_t shared_width = 0;
  bool shared_gate = false;  // it is multiplied by the sigmoid of a linear layer of the token
  double balance = 0;        // weight of Routing::balance
  double z_loss = 0;         // of Routing::z_loss
  friend bool operator==(const ExpertsConfig&, const ExpertsConfig&) = default;
};

FieldProblems problems(const ExpertsConfig& config);

/// Attention of which keys and values are products of a short vector of each token, but for a part of
/// keys that turns by position and that all heads share.
/// Source: DeepSeek-AI 2024, DeepSeek-V2, arXiv 2405.04434, section 2.1.
struct LatentConfig {
  std::int64_t kv_rank = 0;     // of that vector; 0: keys and values are products of the token
  std::int64_t query_rank = 0;  // of one of which queries are; 0: of the token
  /// Channels of a head: of queries and keys, those that turn by position and the others; of values.
  std::int64_t rotary_width = 64, plain_width = 128, value_width = 128;
  friend bool operator==(const LatentConfig&, const LatentConfig&) = default;
};

/// Values wider than keys, pairs of channels that are none.
FieldProblems problems(const LatentConfig& config);

/// The parameters of experts, by their paths; dim 0 of each counts the experts.
inline constexpr std::string_view kExpertPaths = "*.mlp.experts.*";

/// One layer. Its width is that of its input.
struct TransformerLayer {
  std::int64_t heads = 8;
  std::int64_t kv_heads = 0;    // key-value heads; 0: as many as heads
  std::int64_t head_width = 0;  // 0: width / heads, which must be whole
  double attention_scale = 0;   // of scores; 0: 1 / sqrt(width of a head)
  double attention_cap = 0;     // above 0: scores become cap * tanh(score / cap)
  std::int64_t window = 0;      // self-attention sees keys less than so far away; 0: all
  std::int64_t ffn_width = 0;   // hidden width of the feed-forward part; 0: 4 x width
  FeedForward feed_forward = FeedForward::GeluTanh;
  NormKind norm = NormKind::Layer;
  double norm_eps = 1e-5;
  bool post_norm = false;  // norm(x + f(x)), as in the first Transformer; else x + f(norm(x))
  bool bare = false;       // of pre-norm, attention reads x itself: there is no norm1
  bool norm_out = false;   // x + norm(f(norm(x))): what each part adds is normed too
  /// Above 0: what each part adds is multiplied by a weight for each channel, so much at first.
  double layer_scale = 0;
  bool parallel = false;  // x + attention(norm(x)) + feed_forward(norm(x))
  bool one_norm = false;  // of parallel parts, for both
  bool bias = true;       // of linear layers and layer norms
  // Of these linear layers and of layer norms, where bias is false:
  bool qkv_bias = false, proj_bias = false, ffn_bias = false, norm_bias = false;
  /// Beside the keys that a query sees in self-attention stands one of no value, whose score is a
  /// number of each head: what is paid to it is paid to nothing.
  bool sinks = false;
  bool head_norm = false;      // self-attention norms each head of queries and keys
  bool norm_together = false;  // or all heads of a token together
  bool rotary = false;         // rotary positions in self-attention
  Rotary rope = {};            // how, where `rotary`
  LatentConfig latent = {};    // self-attention's, of `heads` heads, which is then rotary
  double attention_dropout = 0, hidden_dropout = 0;  // of probabilities; after each part
  double activation_dropout = 0;                     // of what feed-forward's down reads
  WeightInit init = normal_init(0.02);               // of weights
  /// Of queries, keys and values; none: `init`.
  std::optional<WeightInit> attention_init = std::nullopt;
  /// Of the weights whose results are added to the residual stream; see residual_init.
  WeightInit residual_init = normal_init(0.02);
  LoraConfig lora = {};        // adapters of linear layers
  ExpertsConfig experts = {};  // of feed-forward parts

  std::int64_t groups() const { return kv_heads == 0 ? heads : kv_heads; }
};

/// Positions of DeBERTa. Of each kind of distance there is a row of a table, of which a layer makes
/// a query and a key, as of a token; to a score are added those of the query's token with the key
/// of its distance, and of the query of the distance with the key's token.
/// Source: He et al. 2021, arXiv 2006.03654, section 3.1; 2111.09543.
struct DistanceRows {
  Value rows = {};   // [m, d]; empty: there are none
  Value kinds = {};  // [s, t] of i32, the row of each distance: log_distance_kinds
};

/// Which keys a query sees.
struct Visible {
  bool causal = false;  // those at its own position and before
  Value mask = {};      // [b, t] or [b, s, t], bool: true where a key may be seen; empty: all
  /// Added to scores, as relative_bias makes it: [heads, s, t]; or [b, g, r, s, t]. Empty: nothing.
  /// With one, all scores [b, heads, s, t] of a layer are held, and a query that sees no key sees
  /// all alike.
  Value bias = {};
  DistanceRows distances = {};  // of self-attention without caches and bias
  /// RealFormer's: scores [b, g, r, s, t] of the layer before, without masks, which are added to
  /// this one's; these are put in their place. Empty: this is the first layer. nullptr: no scores
  /// are added. With it all scores are held, as with a bias. Source: He et al. 2020, arXiv
  /// 2012.11747.
  Value* residual = nullptr;
  /// Of the heads [g, r], f32: slope * (key position - query position) is added to scores (ALiBi).
  /// Empty: nothing.
  Value slopes = {};
};

/// The mask of causal attention over samples with padding: a query sees the keys at its own
/// position and before, where both it and the key are tokens. MindSpore's AttentionMask. In
/// self-attention a Visible{.causal = true, .mask = input_mask of bool} gives the same result at
/// tokens, and needs no [s, s]. Shapes: input_mask [b, s] of i32, f32 or bool, not 0 at tokens ->
/// [b, s, s] of bool.
Value attention_mask(Value input_mask, Where where = Where::here());

struct Routing;  // nn/experts.h

/// How a model is run.
struct Pass {
  /// An i64 scalar that makes the dropout masks of different steps different; empty: no dropout, as
  /// in evaluation.
  Value step = {};
  /// While text is written, the keys and values of earlier tokens are kept in caches: states of
  /// Role::Cache. An i32 scalar: how many tokens they hold, behind which those of this run are put.
  /// Empty: no caches, the sequence begins with this run.
  Value position = {};
  std::int64_t room = 0;  // tokens that caches have room for: the caller puts in no more
  /// Where caches are: tokens of the longest text, on which some rotary positions hang. `room` is
  /// this and that of padding.
  std::int64_t context = 0;
  /// Positions of tokens where they do not count from 0: [b, s] of i32, for tables of positions.
  /// Empty: they do.
  Value positions = {};
  /// Of causal self-attention, the first token that each one sees: [b, s] of i32. Empty: all see
  /// the first.
  Value first_seen = {};
  /// Which tokens are seen at all, of causal self-attention and of what an encoder reads: [b, s] of
  /// i32, 0 at padding. Empty: a causal model sees all, an encoder what the family says.
  Value mask = {};
  /// An i32 scalar: the one token of this run whose logits are wanted; empty: those of all.
  Value wanted = {};
  Routing* routing = nullptr;  // what routers of experts measure is added to it
};

/// What a decoder reads beside its own sequence: the encoder's result [b, t, d], and what of it.
struct Encoded {
  Value values = {};
  Visible visible = {};
  /// Above 0: cross attention reads keys, values and mask from the caches that keep_encoded wrote,
  /// of so many tokens; `values` and `visible` are empty.
  std::int64_t kept = 0;
};

/// Self-attention: g key-value heads, r query heads for each, head width e. Parameters: qkv.weight
/// [g (r+2) e, d], whose rows hold, for each key-value head, its r query heads, its key and its
/// value, so that to split the rows is to split the heads; proj.weight [d, g r e]; their biases;
/// with head_norm q_norm.weight and k_norm.weight [e], with norm_together [g r e] and [g e]; with sinks sinks.weight [g r].
/// With layer.latent: as latent_attention (nn/attention/latent.h).
/// Caches: keys and values [b, room, g, e]; with them attention is causal and has no mask, and a
/// bias is [heads, s, room].
/// Shapes: x [b, s, d] -> [b, s, d].
Value self_attention(Value x, const TransformerLayer& layer, const Visible& visible,
                     const Pass& pass, Where where = Where::here());

/// Self-attention whose queries are products of other rows: causal, keys and values are of x. As
/// cross_attention it has q.weight, kv.weight and proj.weight, and it has self_attention's caches.
/// Shapes: queries, x [b, s, d] -> [b, s, d].
Value query_attention(Value queries, Value x, const TransformerLayer& layer, const Visible& visible,
                      const Pass& pass, Where where = Where::here());

/// Attention of x [b, s, d] to what an encoder made [b, t, m] -> [b, s, d]. Parameters: q.weight [g
/// r e, d]; kv.weight [g 2 e, m], for each key-value head its key and its value; proj.weight [d, g
/// r e]. Caches, where encoded.kept: keys, values [b, t, g, e]; seen [b, t] of i32, 0 at what no
/// token sees.
Value cross_attention(Value x, const Encoded& encoded, const TransformerLayer& layer,
                      const Pass& pass, Where where = Where::here());

/// Writes the caches from which cross attention of width `width` reads: what the encoder made is
/// turned into keys and values once, and not again for each token. Parameters: kv.weight.
/// Errors: a mask that is not [b, t].
void keep_encoded(const Encoded& encoded, std::int64_t width, const TransformerLayer& layer,
                  Where where = Where::here());

/// Parameters: up, down and, for SwiGlu, GeGlu and GeGluErf, gate.
Value feed_forward(Value x, const TransformerLayer& layer, const Pass& pass = {},
                   Where where = Where::here());

/// A layer of an encoder, or of a decoder without one. Blocks: norm1, attn, norm2, mlp; with
/// norm_out also norm1_out, norm2_out, with layer_scale norm1_scale, norm2_scale; without norm1
/// where bare, without norm2 where one_norm. Its result, and what it is after attention, are called
/// "residual".
Value encoder_layer(Value x, const TransformerLayer& layer, const Visible& visible,
                    const Pass& pass, Where where = Where::here());

/// The same whose attention is query_attention. Blocks: norm1, cross, norm2, mlp.
/// Source: Zeng et al. 2021, PanGu-alpha, arXiv 2104.12369, section 2.2.
Value query_layer(Value queries, Value x, const TransformerLayer& layer, const Visible& visible,
                  const Pass& pass, Where where = Where::here());

/// A layer that also reads an encoder's result. Blocks: norm1, attn, norm_cross, cross, norm2, mlp.
Value decoder_layer(Value x, const Encoded& encoded, const TransformerLayer& layer,
                    const Visible& visible, const Pass& pass, Where where = Where::here());

/// Norm by the layer's kind, in the block `name`.
Value norm(Value x, std::string_view name, const TransformerLayer& layer,
           Where where = Where::here());

}  // namespace tessera
