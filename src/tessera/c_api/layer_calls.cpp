/// The layers and losses of nn.

#include "tessera/c_api/graph_calls.h"
#include "tessera/c_api/layer_words.h"
#include "tessera/nn/loss.h"

namespace tessera {

namespace {

using LayerValues = std::vector<Value>;

LinearOptions linear_options(CallArguments& c) {
  return {.bias = c.flag("bias"), .init = c.init(), .bias_init = c.init("bias_init")};
}

DistanceKinds distance_kinds(CallArguments& c) {
  const DistanceKinds out{c.integer("kinds"), c.integer("far")};
  require(out.count >= 2 && out.count <= kMaxDistanceKinds, c.what(), ": kinds is ", out.count,
          "; give 2 to ", kMaxDistanceKinds);
  constexpr std::int64_t kFurthest = 1 << 24;  // floats count so far
  require(out.far > out.count / 2 + 1 && out.far <= kFurthest, c.what(), ": far is ", out.far,
          " with ", out.count, " kinds; give ", out.count / 2 + 2, " to ", kFurthest);
  return out;
}

/// [queries, keys] of a table of distances.
std::pair<std::int64_t, std::int64_t> pairs_of(CallArguments& c) {
  const std::int64_t queries = c.integer("queries"), keys = c.integer("keys");
  require(queries >= 1 && keys >= 1, c.what(), " is of ", queries, " queries and ", keys,
          " keys; give at least 1 of each");
  return {queries, keys};
}

template <typename Norm>
LayerValues normed(CallArguments& c, const Norm& norm) {
  const Value x = c.value("x");
  require(x.ndim() >= 1, c.what(), ": x is ", x.type(), "; give one with dims");
  return {norm(x, c.plain_name("name"), c.number("eps"))};
}

/// x [b, s, d] of a layer.
Value rows_of(CallArguments& c, const char* name = "x") {
  const Value x = c.value(name);
  require(x.ndim() == 3 && is_float(x.dtype()), c.what(), ": ", name, " is ", x.type(),
          "; give floats [b, s, d]");
  return x;
}

LayerValues sum_and_count(const Mean& mean) { return {mean.sum, mean.count}; }

/// At least one dim, the last of which is what a weight multiplies.
Value last_dim_of(CallArguments& c, Value x) {
  require(x.ndim() >= 1, c.what(), ": x is ", x.type(), "; give one with dims");
  return x;
}

/// What an encoder made, and not what is kept of it already.
Encoded made_by_encoder(CallArguments& c) {
  Encoded out = encoded_of(c.part("encoded"));
  require(out.values.valid(), c.what(), ": encoded: values is missing; give what the encoder made");
  return out;
}

std::int64_t width_of(CallArguments& c, const char* name) {
  const std::int64_t out = c.integer(name);
  require(out >= 1, c.what(), ": ", name, " is ", out, "; give at least 1");
  return out;
}

constexpr GraphCall kLayerCalls[] = {
    {"linear",
     "x name out bias=true init={\"kind\":\"normal\",\"value\":0.02} "
     "bias_init={\"kind\":\"constant\",\"value\":0.0}",
     [](CallArguments& c) -> LayerValues {
       const CallJson* x = c.find("x");
       const LayerValues xs =
           x != nullptr && x->is_array() ? c.values("x") : LayerValues{c.value("x")};
       for (const Value each : xs) last_dim_of(c, each);
       return linear(xs, c.plain_name("name"), width_of(c, "out"), linear_options(c), c.where);
     }},
    {"embedding", "ids name rows width init={\"kind\":\"normal\",\"value\":0.02}",
     [](CallArguments& c) -> LayerValues {
       const EmbeddingResult out =
           embedding(c.value("ids"), c.plain_name("name"), width_of(c, "rows"),
                     width_of(c, "width"), c.init(), c.where);
       return {out.rows, out.table};
     }},
    {"learned_positions",
     "x name context init={\"kind\":\"normal\",\"value\":0.02} first=null at=null unread=0",
     [](CallArguments& c) -> LayerValues {
       return {learned_positions(rows_of(c), c.plain_name("name"), width_of(c, "context"), c.init(),
                                 c.maybe("first"), c.maybe("at"), c.integer("unread"), c.where)};
     }},
    {"sinusoidal_positions", "x first=null base=10000.0",
     [](CallArguments& c) -> LayerValues {
       return {sinusoidal_positions(rows_of(c), c.maybe("first"), c.number("base"), c.where)};
     }},
    {"relative_bias",
     "name heads queries keys distances=\"both\" init={\"kind\":\"normal\",\"value\":0.02} "
     "first=null kinds=32 far=128",
     [](CallArguments& c) -> LayerValues {
       Distances distances = Distances::Both;
       c.get_word("distances", std::array<std::string_view, 2>{"both", "before"}, distances);
       const auto [queries, keys] = pairs_of(c);
       return {relative_bias(c.graph.builder, c.plain_name("name"), width_of(c, "heads"), queries,
                             keys, distances, c.init(), c.maybe("first"), distance_kinds(c),
                             c.where)};
     }},
    {"log_distance_kinds", "queries keys kinds far",
     [](CallArguments& c) -> LayerValues {
       const auto [queries, keys] = pairs_of(c);
       return {log_distance_kinds(c.graph.builder, queries, keys, distance_kinds(c), c.where)};
     }},
    {"alibi_slopes", "groups per_group",
     [](CallArguments& c) -> LayerValues {
       return {
           alibi_slopes(c.graph.builder, width_of(c, "groups"), width_of(c, "per_group"), c.where)};
     }},
    {"layer_norm_layer", "x name eps=1e-05 bias=true",
     [](CallArguments& c) -> LayerValues {
       return normed(c, [&](Value x, const std::string& name, double eps) {
         return layer_norm_layer(x, name, eps, c.flag("bias"), c.where);
       });
     }},
    {"rms_norm_layer", "x name eps=1e-05 plus_one=false",
     [](CallArguments& c) -> LayerValues {
       return normed(c, [&](Value x, const std::string& name, double eps) {
         return rms_norm_layer(x, name, eps,
                               c.flag("plus_one") ? RmsWeight::PlusOne : RmsWeight::Whole, c.where);
       });
     }},
    {"dropout_layer", "x p step name",
     [](CallArguments& c) -> LayerValues {
       return {dropout_layer(c.value("x"), c.number("p"), c.maybe("step"), c.plain_name("name"),
                             c.where)};
     }},
    {"norm", "x name layer",
     [](CallArguments& c) -> LayerValues {
       return {norm(last_dim_of(c, c.value("x")), c.plain_name("name"), layer_of(c.part("layer")),
                    c.where)};
     }},
    // Transformers.
    {"attention_mask", "input_mask",
     [](CallArguments& c) -> LayerValues {
       return {attention_mask(c.value("input_mask"), c.where)};
     }},
    {"self_attention", "x layer visible={} run={}",
     [](CallArguments& c) -> LayerValues {
       return {self_attention(rows_of(c), layer_of(c.part("layer")), visible_of(c.part("visible")),
                              pass_of(c.part("run")), c.where)};
     }},
    {"query_attention", "queries x layer visible={} run={}",
     [](CallArguments& c) -> LayerValues {
       return {query_attention(rows_of(c, "queries"), rows_of(c), layer_of(c.part("layer")),
                               visible_of(c.part("visible")), pass_of(c.part("run")), c.where)};
     }},
    {"cross_attention", "x encoded layer run={}",
     [](CallArguments& c) -> LayerValues {
       return {cross_attention(rows_of(c), encoded_of(c.part("encoded")), layer_of(c.part("layer")),
                               pass_of(c.part("run")), c.where)};
     }},
    {"keep_encoded", "encoded width layer",
     [](CallArguments& c) -> LayerValues {
       keep_encoded(made_by_encoder(c), width_of(c, "width"), layer_of(c.part("layer")), c.where);
       return {};
     }},
    {"feed_forward", "x layer run={}",
     [](CallArguments& c) -> LayerValues {
       return {feed_forward(last_dim_of(c, c.value("x")), layer_of(c.part("layer")),
                            pass_of(c.part("run")), c.where)};
     }},
    {"encoder_layer", "x layer visible={} run={}",
     [](CallArguments& c) -> LayerValues {
       return {encoder_layer(rows_of(c), layer_of(c.part("layer")), visible_of(c.part("visible")),
                             pass_of(c.part("run")), c.where)};
     }},
    {"query_layer", "queries x layer visible={} run={}",
     [](CallArguments& c) -> LayerValues {
       return {query_layer(rows_of(c, "queries"), rows_of(c), layer_of(c.part("layer")),
                           visible_of(c.part("visible")), pass_of(c.part("run")), c.where)};
     }},
    {"decoder_layer", "x encoded layer visible={} run={}",
     [](CallArguments& c) -> LayerValues {
       return {decoder_layer(rows_of(c), encoded_of(c.part("encoded")), layer_of(c.part("layer")),
                             visible_of(c.part("visible")), pass_of(c.part("run")), c.where)};
     }},
    {"transformer_encoder", "x config visible={} run={}",
     [](CallArguments& c) -> LayerValues {
       return {transformer_encoder(rows_of(c), transformer_config_of(c.part("config")),
                                   visible_of(c.part("visible")), pass_of(c.part("run")), c.where)};
     }},
    {"transformer_decoder", "x encoded config visible={} run={}",
     [](CallArguments& c) -> LayerValues {
       return {transformer_decoder(rows_of(c), encoded_of(c.part("encoded")),
                                   transformer_config_of(c.part("config")),
                                   visible_of(c.part("visible")), pass_of(c.part("run")), c.where)};
     }},
    {"keep_for_decoder", "encoded width config",
     [](CallArguments& c) -> LayerValues {
       keep_for_decoder(made_by_encoder(c), width_of(c, "width"),
                        transformer_config_of(c.part("config")), c.where);
       return {};
     }},
    {"transformer", "source target config of_source={} of_target={} run={}",
     [](CallArguments& c) -> LayerValues {
       return {transformer(rows_of(c, "source"), rows_of(c, "target"),
                           transformer_config_of(c.part("config")), visible_of(c.part("of_source")),
                           visible_of(c.part("of_target")), pass_of(c.part("run")), c.where)};
     }},
    // Losses: a sum and a count.
    {"masked_mean", "losses mask",
     [](CallArguments& c) -> LayerValues {
       return sum_and_count(masked_mean(c.value("losses"), c.value("mask")));
     }},
    {"mean_of", "losses",
     [](CallArguments& c) -> LayerValues { return sum_and_count(mean_of(c.value("losses"))); }},
    {"counted_labels", "labels",
     [](CallArguments& c) -> LayerValues { return {counted_labels(c.value("labels"))}; }},
    {"squared_error", "x y",
     [](CallArguments& c) -> LayerValues { return {squared_error(c.value("x"), c.value("y"))}; }},
    {"huber", "x y delta=1",
     [](CallArguments& c) -> LayerValues {
       return {huber(c.value("x"), c.value("y"), c.number("delta"))};
     }},
    {"smooth_l1", "x y beta=1",
     [](CallArguments& c) -> LayerValues {
       return {smooth_l1(c.value("x"), c.value("y"), c.number("beta"))};
     }},
    {"binary_cross_entropy", "logits labels",
     [](CallArguments& c) -> LayerValues {
       return {binary_cross_entropy(c.value("logits"), c.value("labels"))};
     }},
    {"smoothed_cross_entropy", "logits labels smoothing",
     [](CallArguments& c) -> LayerValues {
       return {smoothed_cross_entropy(c.value("logits"), c.value("labels"), c.number("smoothing"))};
     }},
    {"focal", "logits labels gamma=2",
     [](CallArguments& c) -> LayerValues {
       return {focal(c.value("logits"), c.value("labels"), c.number("gamma"))};
     }},
    {"cross_entropy_mean", "logits labels mask=null",
     [](CallArguments& c) -> LayerValues {
       const Value logits = c.value("logits"), labels = c.value("labels"), mask = c.maybe("mask");
       return sum_and_count(mask.valid() ? cross_entropy_mean(logits, labels, mask)
                                         : cross_entropy_mean(logits, labels));
     }},
    {"accuracy", "logits labels",
     [](CallArguments& c) -> LayerValues {
       return sum_and_count(accuracy(c.value("logits"), c.value("labels")));
     }},
    {"mean_value", "sum count",
     [](CallArguments& c) -> LayerValues {
       return {Mean{c.value("sum"), c.value("count")}.value()};
     }},
};

}  // namespace

std::span<const GraphCall> layer_calls() { return kLayerCalls; }

}  // namespace tessera
