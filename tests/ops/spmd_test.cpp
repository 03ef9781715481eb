/// What is sharded through more than one op: expansions, where a stat factor is sharded,
/// and gradients, under every sharding that the forward op admits, on simulated ranks.
///
/// Both must do with what an op's rule promises: operands that lie as the op's operands lie, slices
/// of them, and reductions of partial results. Nothing is gathered, nothing moves; but a factor of
/// size 1 is not followed where dims of size 1 come and go, as there is nothing to follow.

#include <gtest/gtest.h>

#include <iostream>

#include "ops/spmd.h"

namespace tessera::test {

namespace {

class Spmds : public testing::TestWithParam<Mesh> {
 protected:
  Mesh mesh_ = GetParam();

  void tell(const char* what, int shardings, int nodes) const {
    std::cout << what << " on " << to_text(mesh_) << ": " << shardings << " shardings, " << nodes
              << " runs of nodes\n";
    ::testing::Test::RecordProperty("shardings", shardings);
    ::testing::Test::RecordProperty("nodes", nodes);
  }
};

std::vector<Held> held(const Tensors& wholes, const std::vector<Factors::Dims>& dims,
                       const Assignment& assignment) {
  std::vector<Held> out;
  for (std::size_t i = 0; i < wholes.size(); ++i)
    out.push_back({wholes[i], sharding_of(dims[i], assignment)});
  return out;
}

}  // namespace

TEST_P(Spmds, OfExpansionsGiveTheWhole) {
  int shardings = 0, nodes = 0;
  for (const Case& c : all_cases()) {
    if (c.op->expand == nullptr) continue;
    const Subject subject = subject_of(c);
    const Factors factors = subject.factors();
    for (const Assignment& assignment : admitted(factors, mesh_)) {
      if (!needs_expansion(factors, assignment)) continue;
      SCOPED_TRACE(text(title(c), " | ", factors, " | ", describe(factors, assignment, mesh_)));
      Spmd spmd{.mesh = mesh_};
      const std::vector<Held> outs = spmd.run(
          *subject.graph, subject.node, held(subject.ins, factors.ins, assignment), assignment);
      ASSERT_FALSE(has_failed());
      for (std::size_t j = 0; j < outs.size(); ++j) {
        expect_near(outs[j].whole, subject.outs[j], c.expand_tolerance, c.expand_tolerance,
                    text("result ", j));
        if (shards_nothing(factors, assignment)) continue;
        EXPECT_EQ(to_text(outs[j].sharding), to_text(sharding_of(factors.outs[j], assignment)))
            << "result " << j << " does not lie where the rule says";
      }
      EXPECT_TRUE(spmd.moved.empty() || shards_nothing(factors, assignment))
          << join(spmd.moved, "\n");
      ASSERT_FALSE(has_failed());
      ++shardings;
      nodes += spmd.nodes;
    }
  }
  tell("expansions", shardings, nodes);
  EXPECT_GT(shardings, 10);
}

TEST_P(Spmds, OfGradientsGiveTheWhole) {
  int shardings = 0, nodes = 0;
  for (const Case& c : all_cases()) {
    if (!is_differentiable(c)) continue;
    const Subject subject = subject_of(c);
    const Factors factors = subject.factors();
    const Derivative d = differentiate(c);
    Bindings inputs = test::bind(subject.ins);
    std::map<ValueId, HostTensor> douts;
    for (std::size_t j = 0; j < d.douts.size(); ++j) {
      if (!d.douts[j].valid()) continue;
      const HostTensor dout = filled(normal(subject.outs[j].shape()), 1000 + j);
      douts.emplace(d.douts[j], dout);
      inputs.batch.emplace(text("dout", j), dout);
    }
    const Tensors want = run(d.graph, inputs);
    for (const Assignment& assignment : admitted(factors, mesh_)) {
      SCOPED_TRACE(text("gradient of ", title(c), " | ", factors, " | ",
                        describe(factors, assignment, mesh_)));
      std::map<ValueId, Held> known;
      for (std::size_t i = 0; i < d.ins.size(); ++i)
        known.emplace(d.ins[i], Held{subject.ins[i], sharding_of(factors.ins[i], assignment)});
      for (std::size_t j = 0; j < d.douts.size(); ++j) {
        const Sharding lies = sharding_of(factors.outs[j], assignment);
        const ValueId out{d.forward, static_cast<std::int32_t>(j)};
        known.emplace(out, Held{subject.outs[j], lies});
        if (d.douts[j].valid()) known.emplace(d.douts[j], Held{douts.at(d.douts[j]), lies});
      }
      Spmd spmd{.mesh = mesh_};
      spmd.run_all(d.graph, known);
      ASSERT_FALSE(has_failed());
      std::size_t next = 0;
      for (std::size_t i = 0; i < d.dins.size(); ++i) {
        if (!d.dins[i].valid()) continue;
        const Held& din = known.at(d.dins[i]);
        expect_near(din.whole, want[next++], 1e-10, 1e-10, text("the gradient of operand ", i));
        if (shards_nothing(factors, assignment)) continue;
        EXPECT_TRUE(is_slice(din.sharding, sharding_of(factors.ins[i], assignment)))
            << "the gradient of operand " << i << " lies at " << to_text(din.sharding);
      }
      EXPECT_TRUE(spmd.moved.empty() || shards_nothing(factors, assignment))
          << join(spmd.moved, "\n");
      ASSERT_FALSE(has_failed());
      ++shardings;
      nodes += spmd.nodes;
    }
  }
  tell("gradients", shardings, nodes);
  EXPECT_GT(shardings, 350);
}

INSTANTIATE_TEST_SUITE_P(Meshes, Spmds, testing::ValuesIn(test_meshes()),
                         [](const auto& info) { return mesh_name(info.param); });

}  // namespace tessera::test
