/// Gradients against finite differences, in f64.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "ops/harness.h"

namespace tessera::test {

namespace {

constexpr double kStep = 1e-6;
constexpr double kAbsolute = 1e-5, kRelative = 1e-3;  // the numbers that torch's gradcheck takes

/// A row with fixed random weights: loss = sum over results of sum(result * weight).
struct Trial {
  const Case& c;
  Tensors ins, weights;  // an empty weight: no gradient flows through that result

  explicit Trial(const Case& row) : c(row), ins(operands(row)) {
    const Tensors outs = results(c, ins);
    for (int j = 0; j < static_cast<int>(outs.size()); ++j) {
      const HostTensor& out = outs[static_cast<std::size_t>(j)];
      weights.push_back(test::flows(c, j, out.dtype())
                            ? filled(normal(out.shape()), 1000 + static_cast<std::uint64_t>(j))
                            : HostTensor());
    }
  }

  double loss(const Tensors& at) const {
    const Tensors outs = results(c, at);
    double total = 0;
    for (std::size_t j = 0; j < outs.size(); ++j) {
      if (!flows(j)) continue;
      for (std::int64_t i = 0; i < outs[j].numel(); ++i) total += outs[j].at(i) * weights[j].at(i);
    }
    return total;
  }

  bool flows(std::size_t j) const { return weights[j].bytes().data() != nullptr; }
  bool has_loss() const {
    for (std::size_t j = 0; j < weights.size(); ++j) {
      if (flows(j)) return true;
    }
    return false;
  }

  /// The gradients of the wanted operands, as the op's `grad` builds them; none where it says that
  /// there is none.
  std::vector<std::optional<HostTensor>> gradients(const std::vector<bool>& wanted,
                                                   int* like = nullptr) const {
    const Derivative d = differentiate(c, wanted);
    Bindings inputs = bind(ins);
    for (std::size_t j = 0; j < weights.size(); ++j) {
      if (d.douts[j].valid()) inputs.batch.emplace(text("dout", j), weights[j]);
    }
    const int sharing = expect_shared_names(d.graph, d.forward);
    if (like != nullptr) *like = sharing;
    const Tensors outputs = run(d.graph, inputs);
    std::vector<std::optional<HostTensor>> out(d.dins.size());
    std::size_t next = 0;
    for (std::size_t i = 0; i < d.dins.size(); ++i) {
      if (d.dins[i].valid()) out[i] = outputs[next++];
    }
    return out;
  }

  /// Nodes that say that they are like the forward node have its factors under its names; returns
  /// how many say so.
  static int expect_shared_names(const Graph& graph, NodeId forward) {
    const Factors first = graph.factors(forward);
    int nodes = 0;
    for (NodeId id = forward + 1; id < graph.size(); ++id) {
      if (graph.node(id).like < 0) continue;
      EXPECT_EQ(graph.node(id).like, forward);
      int shared = 0;
      for (const Factor& factor : graph.factors(id).list) {
        const int at = first.find(factor.name);
        if (at < 0) continue;
        ++shared;
        EXPECT_EQ(first.list[static_cast<std::size_t>(at)].size, factor.size) << factor.name;
      }
      EXPECT_TRUE(shared > 0 || first.list.empty()) << "like a node with which it shares no factor";
      ++nodes;
    }
    return nodes;
  }
};

}  // namespace

TEST(Gradients, AgreeWithFiniteDifferences) {
  int checked = 0;
  for (const Case& c : all_cases()) {
    if (c.op->grad == nullptr) continue;
    SCOPED_TRACE(title(c));
    const Trial trial(c);
    const int n = static_cast<int>(c.ins.size());
    std::vector<bool> wanted;
    for (int i = 0; i < n; ++i) wanted.push_back(is_variable(c, i));
    if (!trial.has_loss() || std::none_of(wanted.begin(), wanted.end(), [](bool w) { return w; }))
      continue;
    const auto analytic = trial.gradients(wanted);
    for (int i = 0; i < n; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (!wanted[at]) continue;
      ++checked;
      HostTensor numeric(DType::F64, trial.ins[at].shape());
      Tensors moved = trial.ins;
      moved[at] = trial.ins[at].clone();
      for (std::int64_t k = 0; k < numeric.numel(); ++k) {
        const double x = trial.ins[at].at(k);
        moved[at].set(k, x + kStep);
        const double above = trial.loss(moved);
        moved[at].set(k, x - kStep);
        const double below = trial.loss(moved);
        moved[at].set(k, x);
        numeric.set(k, (above - below) / (2 * kStep));
      }
      // No gradient means that it is zero.
      expect_near(analytic[at] ? *analytic[at] : HostTensor(DType::F64, numeric.shape()), numeric,
                  kAbsolute, kRelative, text("the gradient of operand ", i));
    }
  }
  RecordProperty("operands", checked);
  EXPECT_GT(checked, 60);
}

/// Gradients of contracting and indexing ops take their axes from the forward node: each says which
/// one that is.
TEST(Gradients, OfContractionsAndLookupsAreLikeTheForwardNode) {
  const std::set<std::string_view> ops = {"matmul",      "grouped_matmul", "gather",
                                          "scatter_add", "pick",           "place"};
  for (const Case& c : all_cases()) {
    if (!ops.contains(c.op->name)) continue;
    SCOPED_TRACE(title(c));
    const Trial trial(c);
    std::vector<bool> wanted;
    for (int i = 0; i < static_cast<int>(c.ins.size()); ++i) wanted.push_back(is_variable(c, i));
    int like = 0;
    trial.gradients(wanted, &like);
    EXPECT_EQ(like, std::count(wanted.begin(), wanted.end(), true));
  }
}

/// Asking for one gradient gives the one that asking for all gives.
TEST(Gradients, OneAtATime) {
  for (const Case& c : all_cases()) {
    if (c.op->grad == nullptr || c.ins.size() < 2) continue;
    SCOPED_TRACE(title(c));
    const Trial trial(c);
    if (!trial.has_loss()) continue;
    std::vector<bool> all;
    for (int i = 0; i < static_cast<int>(c.ins.size()); ++i) all.push_back(is_variable(c, i));
    const auto together = trial.gradients(all);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!all[i]) continue;
      std::vector<bool> one(all.size(), false);
      one[i] = true;
      const auto alone = trial.gradients(one);
      ASSERT_EQ(alone[i].has_value(), together[i].has_value()) << "operand " << i;
      if (alone[i]) expect_near(*alone[i], *together[i], 0, 0, text("operand ", i));
    }
  }
}

}  // namespace tessera::test
