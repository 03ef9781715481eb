/// Nodes on XLA's plugin, each alone on all its ranks, against reference kernels in f64: every row
/// of the op table, and every node that programs of models on meshes have.

#include <cstdlib>
#include <limits>
#include <map>
#include <set>

#include "hlo/local_node.h"
#include "hlo/model_runs.h"
#include "hlo/on_plugin.h"
#include "ops/harness.h"
#include "tessera/hlo/module_text.h"
#include "tessera/ops/attention.h"
#include "tessera/ops/matmul.h"

namespace tessera::test {

namespace {

using hlo::Port;

/// By op, how many nodes were compared, and the worst distance.
class Tally {
 public:
  void add(const LocalNode& node, const Distance& d) {
    DType type = DType::F32;  // or the 16-bit floats that it has
    for (const Node& each : node.graph->nodes()) {
      for (const Result& result : each.results) {
        if (is_16_bit(result.type.dtype)) type = result.type.dtype;
      }
    }
    auto& [count, worst] = rows_[{std::string(node.node().op->name), type}];
    ++count;
    worst = std::max(worst, d.worst);
    ++total_;
  }
  ~Tally() {
    for (const auto& [op, row] : rows_)
      std::cout << text(op.first, " in ", op.second, ": ", row.first, " nodes, worst ", row.second,
                        "\n");
    std::cout << total_ << " nodes\n";
  }

 private:
  std::map<std::pair<std::string, DType>, std::pair<int, double>> rows_;
  int total_ = 0;
};

/// Nodes of one mesh as one module, which takes a compiler less time than a module for each does.
/// They share no operand, so that none changes another.
hlo::Module module_of(const std::vector<LocalNode>& nodes, const hlo::EmitOptions& options) {
  hlo::ModuleText out("nodes", nodes[0].graph->mesh(), options);
  for (const LocalNode& each : nodes) {
    hlo::Emitter::Known known;
    for (NodeId i = 0; i < each.id(); ++i)
      known[{i, 0}] = out.argument({Port::Kind::Operand, "", each.graph->node(i).results[0]});
    out.emitter().microbatch =
        out.code().constant(static_cast<double>(each.microbatch), hlo::Element::I64);
    const auto no_leaf = [](const Node&) -> hlo::Value { throw Broken("a leaf"); };
    out.emitter().node(*each.graph, each.id(), no_leaf, known);
    for (std::size_t i = 0; i < each.node().results.size(); ++i)
      out.result({Port::Kind::Operand, "", each.node().results[i]},
                 known.at({each.id(), static_cast<std::int32_t>(i)}));
  }
  return out.finish();
}

void compare(const std::vector<LocalNode>& nodes, Tally& tally,
             const hlo::EmitOptions& options = {}) {
  const std::size_t ranks = at(nodes[0].graph->mesh().ranks());
  std::vector<std::vector<HostTensor>> ins(ranks), outs;
  for (const LocalNode& each : nodes) {
    for (std::size_t rank = 0; rank < ranks; ++rank)
      ins[rank].insert(ins[rank].end(), each.ins[rank].begin(), each.ins[rank].end());
  }
  try {
    outs = OnPlugin(module_of(nodes, options)).run(ins);
  } catch (const Error& error) {
    if (nodes.size() == 1) {
      ADD_FAILURE() << error.what() << "\nof " << nodes[0].title << "\n" << text_of_node(nodes[0]);
    } else {  // which of them it is
      for (const LocalNode& each : nodes) compare({each}, tally, options);
    }
    return;
  }
  std::ptrdiff_t next = 0;
  for (const LocalNode& each : nodes) {
    const auto count = static_cast<std::ptrdiff_t>(each.node().results.size());
    std::vector<std::vector<HostTensor>> got;
    for (const auto& of_rank : outs)
      got.emplace_back(of_rank.begin() + next, of_rank.begin() + next + count);
    next += count;
    const Distance d = distance(each, got, reference_results(each));
    EXPECT_EQ(d.wrong, "") << each.title << "\n" << text_of_node(each);
    EXPECT_LE(d.worst, d.bound) << each.title << "\n" << text_of_node(each);
    tally.add(each, d);
  }
}

/// Nodes in modules of `kOfModule`, by mesh.
class Comparison {
 public:
  explicit Comparison(hlo::EmitOptions options = {}) : options_(options) {}
  ~Comparison() {
    for (const auto& [mesh, nodes] : waiting_) {
      if (!nodes.empty()) compare(nodes, tally_, options_);
    }
  }
  void add(LocalNode node) {
    std::vector<LocalNode>& nodes = waiting_[text(node.graph->mesh())];
    nodes.push_back(std::move(node));
    if (nodes.size() < kOfModule) return;
    compare(nodes, tally_, options_);
    nodes.clear();
  }

 private:
  static constexpr std::size_t kOfModule = 64;
  Tally tally_;
  hlo::EmitOptions options_;
  std::map<std::string, std::vector<LocalNode>> waiting_;
};

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

Attrs own_attrs(const Node& node) { return node.attrs; }
/// Of attention.
Attrs with_window(const Node& node) {
  return node.attrs.with(at(node.op->attrs.find("window")), std::int64_t{3});
}

/// Adds the run's nodes that are wanted, each text once.
void add_nodes(const ModelRun& run, bool (*wanted)(const OpDef*), std::set<std::string>& seen,
               Comparison& comparison, Attrs (*attrs)(const Node&) = own_attrs) {
  for (const Program& program : run.programs()) {
    for (const Region& region : program.regions) {
      for (NodeId id = 0; id < region.graph.size(); ++id) {
        if (!wanted(region.graph.node(id).op)) continue;
        LocalNode node = node_alone(region.graph, id, attrs(region.graph.node(id)));
        if (!seen.insert(text_of_node(node)).second) continue;
        node.title = text(run.family, " ", run.flags, ": ", node.title);
        fill_operands(node, seen.size());
        comparison.add(std::move(node));
      }
    }
  }
}

bool is_computed(const OpDef* op) { return !op->traits.leaf; }
bool is_attention(const OpDef* op) { return op == &kAttention || op == &kAttentionGrad; }

/// Blocks of keys, whatever the number of scores.
hlo::EmitOptions in_blocks(std::int64_t keys) {
  hlo::EmitOptions out;
  out.most_scores = 1;
  out.fewest_keys = keys;
  return out;
}

}  // namespace

TEST(Nodes, RowsOfTheOpTable) {
  if (cpu_plugin() == nullptr) GTEST_SKIP() << kNoPlugin;
  Comparison comparison;
  for (const Case& c : all_cases()) {
    for (const DType dtype : {DType::F32, DType::BF16, DType::F16})
      comparison.add(node_of_row(c, dtype));
  }
}

/// Of a product by groups: zero times infinity is no number, and no row of another group.
TEST(Nodes, GroupsThatAreNotFiniteStayAlone) {
  if (cpu_plugin() == nullptr) GTEST_SKIP() << kNoPlugin;
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const HostTensor ids = HostTensor::of({4}, std::vector<std::int32_t>{1, 2, -1, 0});
  HostTensor matrices = HostTensor::of({3, 2, 2}, std::vector<float>(12, 1)),
             rows = HostTensor::of({4, 2}, std::vector<float>(8, 1));
  const auto on_plugin = [&](const OpDef* op, const HostTensor& second, const Attrs& attrs) {
    Builder builder;
    std::vector<Value> ins;
    const std::vector<HostTensor> all = {ids, rows, second};
    for (const HostTensor& in : all) ins.push_back(builder.batch(text("in", ins.size()), in.type()));
    const NodeId id = builder.add_all(*op, ins, attrs)[0].id().node;
    LocalNode node = node_alone(builder.finish(), id);
    node.ins = {all};
    return OnPlugin(module_of({node}, {})).run(node.ins)[0][0];
  };
  for (std::int64_t i = 0; i < 4; ++i) matrices.set(i, kInf);  // of group 0
  const HostTensor y =
      on_plugin(&kGroupedMatmul, matrices, {false, false, false, std::int64_t{3}});
  for (std::int64_t i = 0; i < 8; ++i)
    EXPECT_EQ(y.at(i), i < 4 ? 2 : i < 6 ? 0 : kInf) << "row " << i / 2;
  HostTensor others = rows;
  for (std::int64_t i = 4; i < 8; ++i) others.set(i, kInf);  // of no group, of group 0
  const HostTensor sums =
      on_plugin(&kGroupedOuter, others, {std::int64_t{3}, std::int64_t{3}});
  for (std::int64_t i = 0; i < 12; ++i)
    EXPECT_EQ(sums.at(i), i < 4 ? kInf : 1) << "group " << i / 4;
}

/// The last block is not full.
TEST(Nodes, AttentionInBlocks) {
  if (cpu_plugin() == nullptr) GTEST_SKIP() << kNoPlugin;
  for (const std::int64_t keys : {2, 4}) {
    Comparison comparison(in_blocks(keys));
    for (const Case& c : all_cases()) {
      if (!is_attention(c.op)) continue;
      for (const DType dtype : {DType::F32, DType::BF16}) comparison.add(node_of_row(c, dtype));
    }
  }
}

/// A rank's first query and head, the rows that it does not have, and its random numbers.
TEST(Nodes, AttentionInBlocksOnMeshes) {
  if (cpu_plugin() == nullptr) GTEST_SKIP() << kNoPlugin;
  constexpr ModelRun kRuns[] = {
      {"gpt2", "--devices 2 --context-parallel-size 2"},
      {"gpt2", "--devices 3 --micro-batch-size 1"},  // uneven
      {"gpt2", "--devices 2 --context-parallel-size 2 --context 7"},
      {"gpt2", "--devices 2 --reset-position-ids --reset-attention-mask"},
      {"llama", "--kv-heads 2 --devices 4 --tensor-model-parallel-size 2 --bf16"},
      {"llama", "--kv-heads 2 --devices 4 --context-parallel-size 2 --zero-stage 3"},
      {"bert", "--devices 2 --context-parallel-size 2"},
      {"transformer", "--devices 2 --context-parallel-size 2"},
  };
  for (const std::int64_t keys : {3, 4}) {
    Comparison comparison(in_blocks(keys));
    std::set<std::string> seen;
    for (const ModelRun& run : kRuns) {
      add_nodes(run, is_attention, seen, comparison);
      add_nodes(run, is_attention, seen, comparison, with_window);
    }
    EXPECT_GE(seen.size(), 4 * std::size(kRuns));
  }
}

/// So many scores that there are blocks by default, of which the last is not full.
TEST(Nodes, AttentionOfALongContext) {
  if (cpu_plugin() == nullptr) GTEST_SKIP() << kNoPlugin;
  constexpr std::int64_t kTokens = 4201;
  ASSERT_GT(kTokens * kTokens, hlo::EmitOptions().most_scores);
  const Shape q = {1, kTokens, 1, 1, 4}, k = {1, kTokens, 1, 4};
  Comparison comparison;
  const auto compare_with = [&](const OpDef* op, std::int64_t window) {
    const Attrs attrs = {true, 0.5, 0.1, false, std::string("attn.dropout"), window};
    Builder builder;
    std::vector<Value> ins;
    const auto add = [&](const Shape& shape, DType dtype = DType::F32) {
      ins.push_back(builder.batch(text("in", ins.size()), {dtype, shape, {}}));
    };
    if (op == &kAttentionGrad) add(q);
    add(q), add(k), add(k);
    if (op == &kAttentionGrad) add(q), add({1, 1, 1, kTokens});
    add({}, DType::I64);
    const NodeId id = builder.add_all(*op, ins, attrs)[0].id().node;
    LocalNode node = node_alone(builder.finish(), id);
    fill_operands(node, 1);
    comparison.add(std::move(node));
  };
  for (const OpDef* op : {&kAttention, &kAttentionGrad}) {
    compare_with(op, 0);
    compare_with(op, 300);
  }
}

TEST(ModelRuns, HavePrograms) {
  for (const ModelRun& run : model_runs()) {
    SCOPED_TRACE(text(run.family, " ", run.flags));
    EXPECT_NO_THROW(EXPECT_GE(run.programs().size(), 3));
  }
}

/// With TESSERA_ALL_NODES=1 of all runs, which takes ten minutes; else of some.
class ModelNodes : public testing::TestWithParam<std::string> {};

TEST_P(ModelNodes, OnMeshes) {
  if (cpu_plugin() == nullptr) GTEST_SKIP() << kNoPlugin;
  const bool all = std::getenv("TESSERA_ALL_NODES") != nullptr;
  Comparison comparison;
  std::set<std::string> seen;
  for (const ModelRun& run : model_runs()) {
    if (run.family == GetParam() && (run.always || all))
      add_nodes(run, is_computed, seen, comparison);
  }
}

/// Each once.
std::vector<std::string> families_of_runs() {
  std::vector<std::string> out;
  for (const ModelRun& run : model_runs()) {
    if (out.empty() || out.back() != run.family) out.emplace_back(run.family);
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Families, ModelNodes, testing::ValuesIn(families_of_runs()),
                         [](const auto& info) { return info.param; });

}  // namespace tessera::test
