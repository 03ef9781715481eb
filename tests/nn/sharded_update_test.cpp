/// Updates of sharded parameters, on simulated ranks: every sharding of the parameters, with their
/// gradients and moments alike, gives what whole tensors give, with no communication but the sums
/// that norms are.

#include <gtest/gtest.h>

#include <iostream>

#include "ops/spmd.h"
#include "tessera/nn/optimizer.h"
#include "tessera/ops/elementwise.h"

namespace tessera::test {

namespace {

/// An update of a matrix and a vector, with inputs: all its states and gradients, and the loss.
struct Update {
  explicit Update(OptimizerKind kind) {
    OptimizerConfig config;
    config.kind = kind;
    config.clip = 0.5;
    config.weight_decay = 0.1;
    config.schedule = {.kind = ScheduleKind::Constant, .lr = 0.1};
    Builder builder;
    std::vector<Value> parameters, grads;
    for (const Shape& shape : {Shape{5, 3}, Shape{7}}) {
      const TensorType type{DType::F32, shape, {}};
      parameters.push_back(builder.state(text("w", shape.ndim()), type, Role::Parameter, {}));
      grads.push_back(builder.batch(text("g", shape.ndim()), type));
    }
    const Value loss = builder.batch("loss", {DType::F32, {}, {}});
    const Value samples = builder.state("data.samples", {DType::I64, {}, {}}, Role::Counter, {});
    update(parameters, grads, loss, samples, 4, config);
    graph = builder.finish();
    for (NodeId id = 0; id < graph.size(); ++id) {
      const Node& node = graph.node(id);
      if (node.op != &kState && node.op != &kBatch) continue;
      const bool number = node.type().dtype == DType::F32;
      const Operand fill =
          number ? positive(node.type().shape) : exactly(4, DType::I64, node.type().shape);
      const HostTensor value = filled(fill, static_cast<std::uint64_t>(id));
      leaves.emplace(id, value);
      const std::string& name = std::get<std::string>(node.attrs[0]);
      (node.op == &kState ? inputs.states : inputs.batch).emplace(name, value);
    }
    want = run(graph, inputs);
  }

  Graph graph;
  std::map<NodeId, HostTensor> leaves;
  Bindings inputs;
  Tensors want;  // per output
};

/// The rule of an elementwise op over a matrix: its assignments are the shardings of one.
Factors dims_of_a_matrix() { return Factors::parse("m n -> m n", {2, 2}); }

/// A matrix as assigned; a vector along the axes of the matrix's rows.
Sharding lies(const Shape& shape, const Assignment& assignment) {
  Sharding out = Sharding::replicated(shape.ndim());
  for (const auto& [f, axes] : assignment) {
    if (f < shape.ndim()) out.dims[static_cast<std::size_t>(f)] = axes;
  }
  return out;
}

const char* kind_name(OptimizerKind kind) {
  constexpr const char* kNames[] = {"AdamW", "Adam", "Sgd", "Lamb", "AdamWeightDecay"};
  return kNames[static_cast<std::size_t>(kind)];
}

class ShardedUpdate : public testing::TestWithParam<OptimizerKind> {};

}  // namespace

TEST_P(ShardedUpdate, GivesTheWhole) {
  const Update update(GetParam());
  int shardings = 0;
  for (const Mesh& mesh : test_meshes()) {
    for (const Assignment& assignment : admitted(dims_of_a_matrix(), mesh)) {
      SCOPED_TRACE(describe(dims_of_a_matrix(), assignment, mesh));
      std::map<ValueId, Held> known;
      for (const auto& [id, value] : update.leaves)
        known.emplace(ValueId{id, 0}, Held{value, lies(value.shape(), assignment)});
      Spmd spmd{.mesh = mesh};
      spmd.run_all(update.graph, known);
      ASSERT_FALSE(has_failed());
      EXPECT_EQ(join(spmd.moved, "\n"), "");
      for (std::size_t i = 0; i < update.want.size(); ++i) {
        const Output& output = update.graph.outputs()[i];
        const Held& have = known.at(output.value);
        expect_near(have.whole, update.want[i], 1e-12, 1e-12, output.name);
        EXPECT_EQ(to_text(have.sharding), to_text(lies(have.whole.shape(), assignment)))
            << output.name << " does not lie where the state lies";
      }
      ASSERT_FALSE(has_failed());
      ++shardings;
    }
  }
  std::cout << shardings << " shardings\n";
  RecordProperty("shardings", shardings);
}

INSTANTIATE_TEST_SUITE_P(Optimizers, ShardedUpdate,
                         testing::Values(OptimizerKind::AdamW, OptimizerKind::Sgd,
                                         OptimizerKind::Lamb, OptimizerKind::AdamWeightDecay),
                         [](const auto& info) { return kind_name(info.param); });

}  // namespace tessera::test
