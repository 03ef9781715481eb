/// Routers against plain loops over tokens: scores, groups of experts, biases, capacities.

#include "tessera/nn/router.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "nn/drawn_numbers.h"
#include "tessera/nn/transformer.h"

namespace tessera {
namespace {

constexpr std::int64_t kTextsRouted = 4, kTokensRouted = 3, kChannelsRouted = 5;

/// What a router said of drawn tokens.
struct RouterRun {
  /// `counted`: which samples count; empty: all.
  explicit RouterRun(const ExpertsConfig& experts, std::vector<double> counted = {})
      : config(experts) {
    Builder builder;
    TransformerLayer layer;
    layer.experts = experts;
    layer.bias = false;
    Routing routing;
    Pass pass;
    pass.routing = &routing;
    const Value x =
        builder.batch("x", {DType::F32, {kTextsRouted, kTokensRouted, kChannelsRouted}, {}});
    if (!counted.empty())
      routing.counted = builder.batch("counted", {DType::F32, {kTextsRouted}, {}});
    const Routed routed = route(x, layer, pass, Where::here());
    builder.output(Output::Kind::Metric, "ids", routed.ids);
    builder.output(Output::Kind::Metric, "weights", routed.weights);
    builder.output(Output::Kind::Metric, "balance", routing.balance[0].value());
    builder.output(Output::Kind::Metric, "tokens", routing.tokens[0]);
    builder.output(Output::Kind::Metric, "z", routing.z_loss[0].value());
    if (experts.bias) builder.output(Output::Kind::Metric, "next", routing.biases[0].next());
    if (experts.capacity > 0)
      builder.output(Output::Kind::Metric, "dropped", routing.dropped[0].value());
    const Graph graph = builder.finish();
    in = drawn_numbers(graph, {kTextsRouted, kTokensRouted, kChannelsRouted});
    if (!counted.empty()) {
      HostTensor given(DType::F64, {kTextsRouted});
      for (std::int64_t i = 0; i < kTextsRouted; ++i)
        given.set(i, counted[static_cast<std::size_t>(i)]);
      in.batch["counted"] = given;
    }
    Interpretation how;
    how.f64 = true;
    results = interpret(graph, in, how);
  }
  double logit(std::int64_t token, std::int64_t e) const {
    double out = 0;
    for (std::int64_t i = 0; i < kChannelsRouted; ++i)
      out += in.batch.at("x").at(token * kChannelsRouted + i) *
             in.states.at("router.weight").at(e * kChannelsRouted + i);
    return out;
  }
  double bias(std::int64_t e) const {
    return config.bias ? in.states.at("router.expert_bias").at(e) : 0;
  }
  ExpertsConfig config;
  Bindings in;
  std::vector<HostTensor> results;
};

/// The first `k` places of the largest numbers.
std::vector<std::int64_t> best_of(const std::vector<double>& numbers, std::int64_t k) {
  std::vector<std::int64_t> order(numbers.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {},
                           [&](std::int64_t i) { return -numbers[static_cast<std::size_t>(i)]; });
  order.resize(static_cast<std::size_t>(k));
  return order;
}

/// Experts that a token may choose: all, or those of its best groups.
std::vector<double> open_scores(const std::vector<double>& scores, const ExpertsConfig& c) {
  if (c.groups == 0) return scores;
  const std::int64_t each = c.experts / c.groups;
  std::vector<double> of_groups;
  for (std::int64_t g = 0; g < c.groups; ++g) {
    const std::vector<double> own(scores.begin() + g * each, scores.begin() + (g + 1) * each);
    double sum = 0;
    for (const std::int64_t e : best_of(own, c.chosen / c.chosen_groups))
      sum += own[static_cast<std::size_t>(e)];
    of_groups.push_back(sum);
  }
  std::vector<double> out(scores.size(), -1e300);
  for (const std::int64_t g : best_of(of_groups, c.chosen_groups))
    std::copy_n(scores.begin() + g * each, each, out.begin() + g * each);
  return out;
}

TEST(Router, ChoosesByScoresGroupsAndBias) {
  const ExpertsConfig base{.experts = 6, .chosen = 2, .score = RouterScore::Sigmoid};
  ExpertsConfig own = base, scaled = base, grouped = base, biased = base, all = base;
  own.pre_softmax = true;
  scaled.scale = 2.5;
  grouped.groups = 3, grouped.chosen_groups = 2;
  biased.bias = true;
  all.groups = 3, all.chosen_groups = 1, all.bias = true, all.scale = 2, all.samples = 2;
  ExpertsConfig soft = all;
  soft.score = RouterScore::Softmax;
  for (const ExpertsConfig& c : {base, own, scaled, grouped, biased, all, soft}) {
    const RouterRun run(c);
    const std::int64_t groups = kTextsRouted / c.samples, of_group = kTokensRouted * c.samples;
    double balance = 0;
    for (std::int64_t g = 0; g < groups; ++g) {
      std::vector<double> counts(6, 0), mass(6, 0);
      for (std::int64_t t = g * of_group; t < (g + 1) * of_group; ++t) {
        std::vector<double> scores, judged;
        double sum = 0, of_all = 0;
        for (std::int64_t e = 0; e < 6; ++e) of_all += std::exp(run.logit(t, e));
        for (std::int64_t e = 0; e < 6; ++e) {
          const double logit = run.logit(t, e);
          scores.push_back(c.score == RouterScore::Sigmoid ? 1 / (1 + std::exp(-logit))
                                                           : std::exp(logit) / of_all);
          judged.push_back(scores.back() + run.bias(e));
          sum += scores.back();
        }
        for (std::size_t e = 0; e < 6; ++e) mass[e] += scores[e] / sum;
        for (const std::int64_t e : best_of(scores, 2)) counts[static_cast<std::size_t>(e)] += 1;
        const std::vector<std::int64_t> chosen = best_of(open_scores(judged, c), 2);
        const double both = scores[static_cast<std::size_t>(chosen[0])] +
                            scores[static_cast<std::size_t>(chosen[1])];
        for (std::int64_t j = 0; j < 2; ++j) {
          const std::int64_t e = chosen[static_cast<std::size_t>(j)];
          EXPECT_EQ(run.results[0].at(t * 2 + j), static_cast<double>(e));
          EXPECT_NEAR(run.results[1].at(t * 2 + j),
                      scores[static_cast<std::size_t>(e)] * c.scale / (c.pre_softmax ? 1 : both),
                      1e-12);
        }
      }
      const auto tokens = static_cast<double>(of_group);
      for (std::size_t e = 0; e < 6; ++e)
        balance += 6 * counts[e] / (2 * tokens) * mass[e] / tokens / static_cast<double>(groups);
    }
    EXPECT_NEAR(run.results[2].at(0), balance, 1e-12);
  }
}

TEST(Router, BiasGoesAgainstTheLoad) {
  const RouterRun run(
      {.experts = 5, .chosen = 2, .score = RouterScore::Sigmoid, .bias = true, .bias_rate = 0.125});
  const double mean = kTextsRouted * kTokensRouted * 2 / 5.0;
  int moved = 0;
  for (std::int64_t e = 0; e < 5; ++e) {
    const double tokens = run.results[3].at(e), more = run.results[5].at(e) - run.bias(e);
    EXPECT_NEAR(more, tokens < mean ? 0.125 : -0.125, 1e-12) << tokens;  // 4.8 is no number of them
    moved += more != 0;
  }
  EXPECT_EQ(moved, 5);
}

/// What fills up a validation's last batch is in no mean; a group that it cuts is a smaller one.
TEST(Router, MeasuresWhatCounts) {
  const ExpertsConfig c{.experts = 3, .chosen = 1, .samples = 2};
  const RouterRun run(c, {1, 1, 1, 0});
  double balance = 0, z = 0;
  for (const auto& [begin, end] : {std::pair<std::int64_t, std::int64_t>{0, 2}, {2, 3}}) {
    std::vector<double> counts(3, 0), mass(3, 0);
    for (std::int64_t t = begin * kTokensRouted; t < end * kTokensRouted; ++t) {
      double all = 0;
      for (std::int64_t e = 0; e < 3; ++e) all += std::exp(run.logit(t, e));
      for (std::int64_t e = 0; e < 3; ++e)
        mass[static_cast<std::size_t>(e)] += std::exp(run.logit(t, e)) / all;
      counts[static_cast<std::size_t>(run.results[0].at(t))] += 1;
      z += std::pow(std::log(all), 2) / (3 * kTokensRouted);
    }
    const auto tokens = static_cast<double>((end - begin) * kTokensRouted),
               share = static_cast<double>(end - begin) / 3;
    for (std::size_t e = 0; e < 3; ++e)
      balance += share * 3 * counts[e] / tokens * mass[e] / tokens;
  }
  EXPECT_NEAR(run.results[2].at(0), balance, 1e-12);
  EXPECT_NEAR(run.results[4].at(0), z, 1e-12);
}

/// Each expert keeps as many tokens of a group as it has room for, by the policy's order.
TEST(Router, DropsWhatIsBeyondACapacity) {
  for (const DropPolicy policy :
       {DropPolicy::Probs, DropPolicy::Position, DropPolicy::Choice, DropPolicy::Random}) {
    for (const auto& [capacity, least] :
         {std::pair<double, std::int64_t>{0.5, 0}, {1, 0}, {1e-9, 0}, {0.5, 4}, {1e9, 0}}) {
      ExpertsConfig c{.experts = 3, .chosen = 2};
      const RouterRun whole(c);
      c.samples = 2, c.capacity = capacity, c.least_capacity = least, c.drop = policy;
      const RouterRun run(c);
      const std::int64_t of_group = 2 * kTokensRouted * 2;  // choices
      const auto room = std::max(least, static_cast<std::int64_t>(std::ceil(std::min(
                                            capacity * static_cast<double>(of_group) / 3, 1e3))));
      double dropped = 0;
      for (std::int64_t i = 0; i < kTextsRouted * kTokensRouted * 2; ++i) {
        const double id = whole.results[0].at(i);
        const std::int64_t begin = i / of_group * of_group;
        std::int64_t before = 0;
        for (std::int64_t j = begin; j < begin + of_group; ++j) {
          if (whole.results[0].at(j) != id) continue;
          const double mine = run.results[1].at(i), its = run.results[1].at(j);
          const bool first = policy == DropPolicy::Probs ? its > mine || (its == mine && j < i)
                             : policy == DropPolicy::Choice
                                 ? std::pair(j % 2, j) < std::pair(i % 2, i)
                                 : j < i;  // as Random while nothing trains
          before += first;
        }
        EXPECT_EQ(run.results[0].at(i), before < room ? id : -1);
        dropped += before >= room;
      }
      EXPECT_NEAR(run.results[5].at(0), dropped / (kTextsRouted * kTokensRouted * 2), 1e-12);
      EXPECT_GE(dropped, capacity < 1 && least == 0 ? 1 : 0) << capacity;
      EXPECT_LE(dropped, capacity == 1e9 ? 0 : 1e9);
      for (std::int64_t e = 0; e < 3; ++e)
        EXPECT_EQ(run.results[3].at(e), whole.results[3].at(e)) << "choices count, dropped or not";
    }
  }
}

}  // namespace
}  // namespace tessera
