#pragma once
/// The room `nn`: layers, losses, optimizers, schedules of the rate.
/// For: what a model is written with, as functions over the values of a graph.
/// Not for: whole models (models), or how they are split (shard, models/parallel.h).
/// Rejected: layers as objects with a forward(): a function needs no second phase, and its
/// parameters are states of the graph. Weights as [in, out]: they are [out, in] as PyTorch's.
///
/// Layers: functions that add nodes to a graph and declare their parameters as states of it.

#include <string_view>

#include "tessera/nn/init.h"

namespace tessera {

struct LinearOptions {
  bool bias = true;
  WeightInit init = normal_init(0.02), bias_init = zeros_init();
};
/// x W^T + b. Parameters: weight [out, in], bias [out]. Shapes: x [..., in] -> [..., out].
Value linear(Value x, std::string_view name, std::int64_t out, LinearOptions options = {},
             Where where = Where::here());
/// The same of each x, with one weight and one bias.
std::vector<Value> linear(const std::vector<Value>& xs, std::string_view name, std::int64_t out,
                          LinearOptions options = {}, Where where = Where::here());

struct EmbeddingResult {
  Value rows, table;
};
/// A lookup in the table, the parameter weight [rows, width]: ids [...] of i32 -> rows [...,
/// width]. A head can be tied to the table: matmul(x, table, {.trans_b = true}). MindSpore's
/// VocabEmbedding.
///
/// On a mesh the table is whole on every device, or cut by rows along an axis, of which the shards
/// need not be equal: each device then looks up its rows, and the results are added. A Pin of the
/// table says which ("[tp,-]"); of models, ParallelConfig::whole_embeddings.
EmbeddingResult embedding(Value ids, std::string_view name, std::int64_t rows, std::int64_t width,
                          const WeightInit& init = normal_init(0.02), Where where = Where::here());

/// Adds one learned vector per position to x [b, s, d]. Parameter: weight [context, d]. `first`:
/// the position of the first, an i32 scalar; empty: 0. Positions behind the last have zeros.
/// `at`: the positions themselves, [b, s] of i32; empty: they count from the first. `unread`: so
/// many rows more, before that of position 0, which nothing reads.
Value learned_positions(Value x, std::string_view name, std::int64_t context,
                        const WeightInit& init = normal_init(0.02), Value first = {}, Value at = {},
                        std::int64_t unread = 0, Where where = Where::here());
/// Adds sines (channels [0, d/2)) and cosines (the rest) of positions to x [b, s, d], d even.
/// `first`: the position of the first, an i32 scalar; empty: 0.
/// Source: Vaswani et al. 2017, arXiv 1706.03762, section 3.5, which interleaves the two.
Value sinusoidal_positions(Value x, Value first = {}, double base = 10'000,
                           Where where = Where::here());

/// Which side a distance between positions may be on.
enum class Distances { Both, Before };
/// How many kinds of distances are told apart, and from which on all are one kind: T5's.
inline constexpr std::int64_t kMaxDistanceKinds = 1000;  // each compares all pairs of positions
struct DistanceKinds {
  std::int64_t count = 32, far = 128;
};
/// One number for each head and each distance of a key from a query: [heads, queries, keys], to be
/// added to the scores of attention. Near distances have a number each, those further off share
/// one, of kinds that get wider by a factor. Before: keys behind the query have that of distance 0.
/// Parameter: weight [kinds.count, heads]. `first`: the position of the first query, an i32
/// scalar; empty: 0. Keys count from 0.
/// Source: Raffel et al. 2019, arXiv 1910.10683, section 2.1.
Value relative_bias(Builder& builder, std::string_view name, std::int64_t heads,
                    std::int64_t queries, std::int64_t keys, Distances distances,
                    const WeightInit& init = normal_init(0.02), Value first = {},
                    DistanceKinds of = {}, Where where = Where::here());

/// The kind of each distance of a query from a key, both ways: [queries, keys] of i32, from 0 to
/// 2 count - 1, where `count` is that of no distance. Up to count / 2 each has one of its own;
/// those further off share them by the logarithm, so that far - 1 has the last but one.
/// Numeric: bounds of kinds are those of logarithms in f32, as transformers computes them.
/// Source: He et al. 2021, arXiv 2111.09543; transformers' make_log_bucket_position.
Value log_distance_kinds(Builder& builder, std::int64_t queries, std::int64_t keys,
                         DistanceKinds of, Where where = Where::here());

/// By how much each head's scores fall with each token of distance: [groups, per_group] of f32, for
/// heads h = 1..n in order. 2^(-8 h / n) where n is a power of two; else those of the power p below
/// it, then 2^(-4 (2 i - 1) / p), i = 1..n - p.
/// Source: Press et al. 2022, arXiv 2108.12409; transformers' build_alibi_tensor.
Value alibi_slopes(Builder& builder, std::int64_t groups, std::int64_t per_group,
                   Where where = Where::here());

/// Layer norm over the last dim. Parameters: weight [d], initially ones; bias [d], initially zeros,
/// absent if `bias` is false.
Value layer_norm_layer(Value x, std::string_view name, double eps, bool bias = true,
                       Where where = Where::here());
/// PlusOne: x is multiplied by 1 + weight.
enum class RmsWeight { Whole, PlusOne };
/// RMS norm over the last dim. Parameter: weight [d], initially ones, or zeros of PlusOne.
Value rms_norm_layer(Value x, std::string_view name, double eps, RmsWeight kind = RmsWeight::Whole,
                     Where where = Where::here());

/// Dropout that is off in evaluation: returns x itself if `step` is empty or the rate p is 0.
Value dropout_layer(Value x, double p, Value step, std::string_view name,
                    Where where = Where::here());

}  // namespace tessera
