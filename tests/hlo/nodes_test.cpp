/// Nodes on XLA's plugin, each alone on all its ranks, against reference kernels in f64: every row
/// of the op table, and every node that programs of models on meshes have.

#include <fstream>
#include <map>
#include <set>

#include "hlo/local_node.h"
#include "hlo/on_plugin.h"
#include "hlo/programs.h"
#include "ops/harness.h"

namespace tessera::test {

namespace {

/// By op, how many nodes were compared, and the worst distance.
class Tally {
 public:
  void add(const LocalNode& node, const Distance& d) {
    bool narrow = false;
    for (const Node& each : node.graph->nodes()) {
      for (const Result& result : each.results) narrow = narrow || is_16_bit(result.type.dtype);
    }
    auto& [count, worst] = rows_[{std::string(node.node().op->name), narrow}];
    ++count;
    worst = std::max(worst, d.worst);
    ++total_;
  }
  ~Tally() {
    for (const auto& [op, row] : rows_)
      std::cout << text(op.first, op.second ? " in 16 bits" : "", ": ", row.first, " nodes, worst ",
                        row.second, "\n");
    std::cout << total_ << " nodes\n";
  }

 private:
  std::map<std::pair<std::string, bool>, std::pair<int, double>> rows_;
  int total_ = 0;
};

void compare(const LocalNode& node, Tally& tally, const hlo::EmitOptions& options = {}) {
  SCOPED_TRACE(node.title);
  try {
    const OnPlugin module(hlo::node_module(*node.graph, node.id(), options, node.microbatch));
    const Distance d = distance(node, module.run(node.ins), reference_results(node));
    EXPECT_EQ(d.wrong, "") << text_of_node(node);
    EXPECT_LE(d.worst, d.bound) << text_of_node(node);
    tally.add(node, d);
  } catch (const Error& error) {
    ADD_FAILURE() << error.what() << "\n" << text_of_node(node);
  }
}

/// A row of the op table, with floats of that dtype where the op takes them.
LocalNode node_of_row(const Case& c, DType dtype) {
  const Tensors ins = operands_in(c, dtype);
  Builder builder;
  std::vector<Value> values;
  for (std::size_t i = 0; i < ins.size(); ++i)
    values.push_back(builder.batch(text("in", i), ins[i].type()));
  const NodeId id = builder.add_all(*c.op, values, c.attrs)[0].id().node;
  LocalNode out = node_alone(builder.finish(), id);
  out.title = text(title(c), " in ", dtype);
  out.ins = {ins};
  return out;
}

}  // namespace

TEST(Nodes, RowsOfTheOpTable) {
  if (cpu_plugin() == nullptr) GTEST_SKIP() << kNoPlugin;
  Tally tally;
  for (const Case& c : all_cases()) {
    for (const DType dtype : {DType::F32, DType::BF16, DType::F16})
      compare(node_of_row(c, dtype), tally);
  }
}

/// In blocks of keys, whatever the number of scores.
TEST(Nodes, AttentionInBlocks) {
  if (cpu_plugin() == nullptr) GTEST_SKIP() << kNoPlugin;
  Tally tally;
  hlo::EmitOptions options;
  options.most_scores = 1;
  options.fewest_keys = 4;  // the last block is not full
  for (const Case& c : all_cases()) {
    if (c.op->name != "attention" && c.op->name != "attention_grad") continue;
    for (const DType dtype : {DType::F32, DType::BF16})
      compare(node_of_row(c, dtype), tally, options);
  }
}

TEST(Nodes, OfModelsOnMeshes) {
  if (cpu_plugin() == nullptr) GTEST_SKIP() << kNoPlugin;
  Tally tally;
  std::set<std::string> seen;
  for (const ModelProgram& of : model_programs()) {
    const Program program = of.make();
    for (const Region& region : program.regions) {
      for (NodeId id = 0; id < region.graph.size(); ++id) {
        if (region.graph.node(id).op->traits.leaf) continue;
        LocalNode node = node_alone(region.graph, id);
        if (!seen.insert(text_of_node(node)).second) continue;
        node.title = text(of.name, ": ", node.title);
        fill_operands(node, seen.size());
        compare(node, tally);
      }
    }
  }
}

}  // namespace tessera::test
