/// A layer of experts against plain loops over tokens, and what its router measures.

#include "tessera/nn/experts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "nn/drawn_numbers.h"
#include "tessera/base/text.h"
#include "tessera/nn/transformer.h"

namespace tessera {
namespace {

constexpr std::int64_t kTexts = 3, kTokensOfText = 4, kChannels = 5, kHiddenChannels = 6;

struct ExpertsCase {
  const char* name;
  FeedForward activation;
  ExpertsConfig experts;
  bool biased = false;
};

/// The layer with every number of it drawn, and all of its results.
struct ExpertLayer {
  explicit ExpertLayer(const ExpertsCase& c)
      : experts(c.experts),
        gated(c.activation != FeedForward::Relu),
        capped(c.activation == FeedForward::CappedSwiGlu),
        biased(c.biased) {
    Builder builder;
    const TransformerLayer layer{.ffn_width = kHiddenChannels,
                                 .feed_forward = c.activation,
                                 .bias = c.biased,
                                 .experts = c.experts};
    Routing routing;
    Pass pass;
    pass.routing = &routing;
    const Value x = builder.batch("x", {DType::F32, {kTexts, kTokensOfText, kChannels}, {}});
    builder.output(Output::Kind::Metric, "y", expert_feed_forward(x, layer, pass));
    builder.output(Output::Kind::Metric, "balance", routing.balance[0].value());
    builder.output(Output::Kind::Metric, "z", routing.z_loss[0].value());
    builder.output(Output::Kind::Metric, "tokens", routing.tokens[0]);
    const Graph graph = builder.finish();
    in = drawn_numbers(graph, {kTexts, kTokensOfText, kChannels});
    if (capped) {  // some of them beyond the caps
      HostTensor& x = in.batch.at("x");
      for (std::int64_t i = 0; i < x.numel(); ++i) x.set(i, 6 * x.at(i));
    }
    Interpretation how;
    how.f64 = true;
    results = interpret(graph, in, how);
  }

  double weight(const std::string& name, std::int64_t e, std::int64_t row,
                std::int64_t column) const {
    const HostTensor& w = in.states.at(text("mlp.experts.", name, ".weight"));
    return w.at((e * w.shape()[1] + row) * w.shape()[2] + column);
  }
  double bias(const std::string& of, std::int64_t i) const {
    return biased ? in.states.at(text("mlp.", of, ".bias")).at(i) : 0;
  }
  double x(std::int64_t token, std::int64_t i) const {
    return in.batch.at("x").at(token * kChannels + i);
  }
  std::vector<double> logits(std::int64_t token) const {
    const HostTensor& w = in.states.at("mlp.router.weight");
    std::vector<double> out(static_cast<std::size_t>(experts.experts), 0);
    for (std::size_t e = 0; e < out.size(); ++e) out[e] = bias("router", static_cast<int>(e));
    for (std::size_t e = 0; e < out.size(); ++e)
      for (std::int64_t i = 0; i < kChannels; ++i)
        out[e] += x(token, i) * w.at(static_cast<std::int64_t>(e) * kChannels + i);
    return out;
  }
  /// Of one expert.
  std::vector<double> output(std::int64_t token, std::int64_t e) const {
    std::vector<double> hidden, out(kChannels, 0);
    for (std::int64_t h = 0; h < kHiddenChannels; ++h) {
      double gate = bias("experts.gate", e * kHiddenChannels + h),
             up = bias("experts.up", e * kHiddenChannels + h);
      for (std::int64_t i = 0; i < kChannels; ++i) {
        if (gated) gate += x(token, i) * weight("gate", e, h, i);
        up += x(token, i) * weight("up", e, h, i);
      }
      if (capped) {
        gate = std::min(gate, 7.0);
        hidden.push_back(gate / (1 + std::exp(-1.702 * gate)) * (std::clamp(up, -7.0, 7.0) + 1));
      } else {
        hidden.push_back(gated ? gate / (1 + std::exp(-gate)) * up : std::max(up, 0.0));
      }
    }
    for (std::int64_t i = 0; i < kChannels; ++i)
      out[static_cast<std::size_t>(i)] = bias("experts.down", e * kChannels + i);
    for (std::int64_t i = 0; i < kChannels; ++i)
      for (std::int64_t h = 0; h < kHiddenChannels; ++h)
        out[static_cast<std::size_t>(i)] +=
            weight("down", e, i, h) * hidden[static_cast<std::size_t>(h)];
    return out;
  }

  ExpertsConfig experts;
  bool gated, capped, biased;
  Bindings in;
  std::vector<HostTensor> results;
};

TEST(Experts, AreThoseThatTokensChose) {
  for (const ExpertsCase& c :
       {ExpertsCase{"two of four", FeedForward::SwiGlu, {.experts = 4, .chosen = 2}},
        ExpertsCase{
            "among all", FeedForward::SwiGlu, {.experts = 5, .chosen = 3, .pre_softmax = true}},
        ExpertsCase{"one", FeedForward::Relu, {.experts = 3, .chosen = 1, .pre_softmax = true}},
        ExpertsCase{"all", FeedForward::Relu, {.experts = 3, .chosen = 3}},
        ExpertsCase{"biases", FeedForward::SwiGlu, {.experts = 4, .chosen = 2}, true},
        ExpertsCase{
            "caps and biases", FeedForward::CappedSwiGlu, {.experts = 4, .chosen = 2}, true}}) {
    SCOPED_TRACE(c.name);
    const ExpertLayer layer(c);
    const auto experts = static_cast<std::size_t>(c.experts.experts),
               chosen = static_cast<std::size_t>(c.experts.chosen);
    std::vector<double> tokens(experts, 0);
    double balance = 0, z = 0;
    for (std::int64_t b = 0; b < kTexts; ++b) {
      std::vector<double> counts(experts, 0), mass(experts, 0);
      for (std::int64_t t = 0; t < kTokensOfText; ++t) {
        const std::int64_t token = b * kTokensOfText + t;
        const std::vector<double> logits = layer.logits(token);
        double all = 0;
        for (const double logit : logits) all += std::exp(logit);
        z += std::pow(std::log(all), 2) / (kTexts * kTokensOfText);
        std::vector<std::size_t> order(experts);
        std::iota(order.begin(), order.end(), 0);
        std::ranges::sort(order, {}, [&](std::size_t e) { return -logits[e]; });
        double of_chosen = 0;
        for (std::size_t j = 0; j < chosen; ++j) of_chosen += std::exp(logits[order[j]]);
        for (std::size_t e = 0; e < experts; ++e)
          mass[e] += std::exp(logits[e]) / all / kTokensOfText;
        std::vector<double> sum(kChannels, 0);
        for (std::size_t j = 0; j < chosen; ++j) {
          const std::size_t e = order[j];
          counts[e] += 1;
          const double weight = std::exp(logits[e]) / (c.experts.pre_softmax ? all : of_chosen);
          const std::vector<double> y = layer.output(token, static_cast<std::int64_t>(e));
          for (std::size_t i = 0; i < y.size(); ++i) sum[i] += weight * y[i];
        }
        for (std::int64_t i = 0; i < kChannels; ++i)
          EXPECT_NEAR(layer.results[0].at(token * kChannels + i), sum[static_cast<std::size_t>(i)],
                      1e-12);
      }
      for (std::size_t e = 0; e < experts; ++e) {
        tokens[e] += counts[e];
        balance += static_cast<double>(experts) * counts[e] /
                   static_cast<double>(kTokensOfText * static_cast<std::int64_t>(chosen)) *
                   mass[e] / kTexts;
      }
    }
    EXPECT_NEAR(layer.results[1].at(0), balance, 1e-12);
    EXPECT_NEAR(layer.results[2].at(0), z, 1e-12);
    for (std::size_t e = 0; e < experts; ++e)
      EXPECT_EQ(layer.results[3].at(static_cast<std::int64_t>(e)), tokens[e]);
  }
}

TEST(Experts, NumbersThatDoNotFitAreTold) {
  EXPECT_EQ(problems(ExpertsConfig{}).size(), 0U);
  EXPECT_EQ(problems(ExpertsConfig{.experts = 4, .chosen = 2}).size(), 0U);
  EXPECT_EQ(problems(ExpertsConfig{.experts = 0, .shared_gate = true}).size(), 0U);
  for (const ExpertsConfig& wrong :
       {ExpertsConfig{.experts = -1},
        ExpertsConfig{.experts = 4, .chosen = 5},
        ExpertsConfig{.experts = 4, .chosen = 0},
        ExpertsConfig{.experts = 4, .balance = -1},
        ExpertsConfig{.experts = 4, .z_loss = std::nan("")},
        ExpertsConfig{.experts = 0, .shared_width = 3},
        ExpertsConfig{.experts = 4, .shared_gate = true},
        ExpertsConfig{.experts = 4, .scale = 0},
        ExpertsConfig{.experts = 4, .bias = true},
        ExpertsConfig{.experts = 4, .groups = 3, .chosen_groups = 1},
        ExpertsConfig{.experts = 4, .groups = 2, .chosen_groups = 3},
        ExpertsConfig{.experts = 4, .chosen = 3, .groups = 2, .chosen_groups = 1},
        ExpertsConfig{.experts = 4, .chosen = 3, .groups = 2, .chosen_groups = 2},
        ExpertsConfig{.experts = 4, .chosen_groups = 1},
        ExpertsConfig{.experts = 4, .jitter = 1},
        ExpertsConfig{.experts = 4, .samples = 0},
        ExpertsConfig{.experts = 4, .capacity = -1},
        ExpertsConfig{.experts = 4, .least_capacity = 1},
        ExpertsConfig{.experts = 4, .bias_rate = 1},
        ExpertsConfig{.experts = 4, .drop = DropPolicy::Position}})
    EXPECT_EQ(problems(wrong).size(), 1U);
}

}  // namespace
}  // namespace tessera
