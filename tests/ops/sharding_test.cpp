/// Factor rules at work: every op, with everything that gradients and expansions are made of, under
/// every sharding that its rule admits, on simulated ranks, gives what it gives on whole tensors.
///
/// Nothing is sampled: all rows, all nodes of their gradients and expansions (one of each op,
/// attributes and operand types), all assignments of the axes of each mesh to factors.

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "ops/sharded.h"
#include "tessera/ir/print.h"
#include "tessera/ops/expansion.h"

namespace tessera::test {

namespace {

/// Rows, the nodes of their gradients, the nodes of expansions of both; each use of an op once.
class Subjects {
 public:
  Subjects() {
    for (const Case& c : all_cases()) add(subject_of(c));
    rows = list.size();
    for (const Case& c : all_cases()) {
      if (is_differentiable(c)) add_gradient(c);
    }
  }

  std::vector<Subject> list;
  std::size_t rows = 0;

 private:
  void add(Subject subject) {
    if (!seen_.insert(to_text(*subject.graph)).second) return;
    list.push_back(std::move(subject));
    if (list.back().op().expand != nullptr) add_expansion(Subject(list.back()));
  }

  void add_expansion(const Subject& of) {
    Builder builder;
    std::vector<Value> ins;
    for (std::size_t i = 0; i < of.ins.size(); ++i)
      ins.push_back(builder.batch(text("in", i), of.graph->type({static_cast<NodeId>(i), 0})));
    const std::vector<Value> outs = expansion(of.graph->call(of.node), ins);
    for (std::size_t j = 0; j < outs.size(); ++j)
      builder.output(Output::Kind::Metric, text("out", j), outs[j]);
    add_nodes(text("the expansion of ", of.title), builder.finish(), test::bind(of.ins), 0);
  }

  void add_gradient(const Case& c) {
    const Derivative d = differentiate(c);
    const Tensors ins = operands(c);
    Bindings inputs = bind(ins);
    for (std::size_t j = 0; j < d.douts.size(); ++j) {
      if (!d.douts[j].valid()) continue;
      const Shape& shape = d.graph.type(d.douts[j]).shape;
      inputs.batch.emplace(text("dout", j), filled(normal(shape), 1000 + j));
    }
    add_nodes(text("the gradient of ", title(c)), d.graph, inputs, d.forward + 1);
  }

  /// The nodes from `first` on, with the numbers that they have on these inputs.
  void add_nodes(const std::string& title, const Graph& graph, const Bindings& inputs,
                 NodeId first) {
    std::vector<Tensors> values;
    Interpretation how;
    how.f64 = true;
    how.observe = [&](NodeId, const Tensors& results) { values.push_back(results); };
    interpret(graph, inputs, how);
    for (NodeId id = first; id < graph.size(); ++id) {
      const Node& node = graph.node(id);
      if (node.op->traits.leaf) continue;
      Tensors ins;
      for (const ValueId input : node.inputs) {
        ins.push_back(
            values[static_cast<std::size_t>(input.node)][static_cast<std::size_t>(input.index)]);
      }
      add(subject_of(text(node.op->name, " in ", title), graph, id, std::move(ins),
                     values[static_cast<std::size_t>(id)]));
    }
  }

  std::set<std::string> seen_;
};

struct Count {
  int ops = 0, shardings = 0, uneven = 0;
  void tell(const std::string& where) const {
    std::cout << where << ": " << shardings << " shardings of " << ops << " uses of ops, " << uneven
              << " of them uneven\n";
    ::testing::Test::RecordProperty("shardings", shardings);
    ::testing::Test::RecordProperty("uneven", uneven);
  }
};

/// Every sharding of one use of an op on one mesh that needs no expansion.
void try_all(const Subject& subject, const Mesh& mesh, Count& count) {
  const Factors factors = subject.factors();
  ++count.ops;
  for (const Assignment& assignment : admitted(factors, mesh)) {
    if (needs_expansion(factors, assignment)) continue;  // spmd_test.cpp has those
    SCOPED_TRACE(text(subject.title, " | ", factors, " | ", describe(factors, assignment, mesh)));
    ++count.shardings;
    count.uneven += is_uneven(factors, assignment, mesh);
    // Integers beyond the extent may name something or nothing.
    for (const double garbage : {-999, 1}) {
      const Tensors outs =
          run_on_ranks(*subject.graph, subject.node, subject.ins, mesh, assignment, garbage);
      for (std::size_t j = 0; j < outs.size(); ++j)
        expect_near(outs[j], subject.outs[j], 1e-10, 1e-10, text("result ", j));
      if (!has_integers(subject.ins)) break;
    }
    if (has_failed()) return;
  }
}

class Shardings : public testing::TestWithParam<Mesh> {};

}  // namespace

TEST_P(Shardings, OfEveryOpGiveTheWhole) {
  const Subjects subjects;
  const Mesh mesh = GetParam();
  Count count;
  for (const Subject& subject : subjects.list) {
    try_all(subject, mesh, count);
    if (has_failed()) return;
  }
  count.tell(text("forward and backward on ", mesh));
  EXPECT_GT(count.ops, 340);
  EXPECT_GT(count.uneven, count.ops);
}

INSTANTIATE_TEST_SUITE_P(Meshes, Shardings, testing::ValuesIn(test_meshes()),
                         [](const auto& info) { return mesh_name(info.param); });

/// The minor factors of compound dims, where the axis before takes the whole major one.
TEST(Shardings, OfCompoundDimsGiveTheWhole) {
  const Subjects subjects;
  Count count;
  for (const Subject& subject : subjects.list) {
    for (const Mesh& mesh : meshes_of_compound_dims(subject.factors())) {
      try_all(subject, mesh, count);
      if (has_failed()) return;
    }
  }
  count.tell("of compound dims");
  EXPECT_GT(count.ops, 10);
}

/// An operand that its rule calls linear may be a sum of addends: the results are then addends of
/// the result.
TEST(FactorRules, LinearOperandsMayBePartial) {
  int checked = 0;
  for (const Case& c : all_cases()) {
    Builder builder;
    const NodeId node = use(builder, c).outs[0].id().node;
    const Factors factors = builder.so_far().factors(node);
    if (factors.linear == Linear::None) continue;
    SCOPED_TRACE(text(title(c), " | ", factors));
    const Tensors ins = operands(c), want = results(c, ins);
    // joint: all linear operands are split together; each: one at a time.
    std::vector<std::vector<int>> splits;
    if (factors.linear == Linear::Joint)
      splits.push_back(factors.linear_operands);
    else
      for (const int i : factors.linear_operands) splits.push_back({i});
    for (const std::vector<int>& split : splits) {
      Tensors left = ins, right = ins;
      for (const int i : split) {
        const auto at = static_cast<std::size_t>(i);
        left[at] = ins[at].clone(), right[at] = ins[at].clone();
        const HostTensor part = filled(c.ins[at].type.dtype == DType::F32
                                           ? normal(ins[at].shape())
                                           : ids(ins[at].shape(), -5, 5, ins[at].dtype()),
                                       77 + at);
        for (std::int64_t k = 0; k < ins[at].numel(); ++k) {
          left[at].set(k, part.at(k));
          right[at].set(k, ins[at].at(k) - part.at(k));
        }
      }
      const bool splittable = std::none_of(split.begin(), split.end(), [&](int i) {
        return ins[static_cast<std::size_t>(i)].dtype() == DType::Bool;
      });
      if (!splittable) continue;
      ++checked;
      const Tensors a = results(c, left), b = results(c, right);
      for (std::size_t j = 0; j < want.size(); ++j) {
        HostTensor sum(DType::F64, want[j].shape());
        for (std::int64_t k = 0; k < sum.numel(); ++k) sum.set(k, a[j].at(k) + b[j].at(k));
        expect_near(sum, want[j].cast(DType::F64), 1e-10, 1e-10,
                    text("result ", j, " of partial operand ", split[0]));
      }
    }
  }
  RecordProperty("operands", checked);
  EXPECT_GT(checked, 50);
}

}  // namespace tessera::test
