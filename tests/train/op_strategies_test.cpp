/// Random strategies of single ops on the training step of a tiny GPT-2, on 8 ranks that are
/// interpreted in f64: legal ones compute what one device computes, illegal ones are refused with
/// every reason at once.
///
/// More of them, from a seed on: TESSERA_OP_FUZZ="FIRST COUNT" train_test
/// --gtest_filter='MoreOpStrategies.Asked'

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <sstream>

#include "runtime/random_pool.h"
#include "tessera/ir/op_paths.h"
#include "tessera/passes/add_uses.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/interpret_program.h"
#include "tessera/passes/merge_pads.h"
#include "tessera/passes/partition.h"
#include "tessera/passes/propagate.h"
#include "tessera/passes/simplify.h"
#include "tessera/plan/graph_dump.h"
#include "tessera/shard/auto_parallel.h"
#include "tessera/shard/op_strategy.h"
#include "tessera/train/step.h"
#include "train/op_strategy_oracle.h"

namespace tessera {
namespace {

using fuzz::Random;
using test::Oracle;
using test::Verdict;

constexpr std::int64_t kRows = 8, kWords = 4, kVocabulary = 24;

ModelConfig model() {
  ModelConfig c;
  c.layers = 1;
  c.heads = 4;
  c.width = 16;
  c.ffn_width = 24;
  c.context = 8;
  c.vocabulary = kVocabulary;
  c.dropout = 0.2;
  return c;
}

/// The step and what it computes on one device.
struct Reference {
  Graph step;                      // as it is built
  Graph graph;                     // as strategies see it
  std::vector<std::string> paths;  // of ops, else empty
  std::vector<NodeId> ops;         // that take strategies
  Bindings inputs;
  std::vector<HostTensor> outputs;
  Interpretation how;
};

Reference reference() {
  OptimizerConfig optimizer;
  optimizer.schedule.kind = ScheduleKind::Constant;
  // So large that the zero gradients of key biases stay small after Adam divides them.
  optimizer.eps = 1e-3;
  Reference out{
      with_gradients(train_step(model(), optimizer, kRows, kWords)), {}, {}, {}, {}, {}, {}};
  out.graph = simplify(merge_pads(out.step));
  out.paths = op_paths(out.graph);
  for (NodeId id = 0; id < out.graph.size(); ++id) {
    if (!out.graph.node(id).op->traits.leaf && !out.paths[static_cast<std::size_t>(id)].empty())
      out.ops.push_back(id);
  }
  Random random(7, 0);
  for (const State& state : out.step.states()) {
    HostTensor value(out.step.type(state.value));
    for (std::int64_t i = 0; i < value.numel() && state.role == Role::Parameter; ++i)
      value.set(i, random.between(-0.5, 0.5));
    out.inputs.states.emplace(state.path, value);
  }
  HostTensor ids(DType::I32, {kRows, kWords}), labels(DType::I32, {kRows, kWords});
  for (std::int64_t i = 0; i < ids.numel(); ++i) {
    ids.set(i, static_cast<double>(random.below(kVocabulary)));
    labels.set(i, random.chance(0.2) ? -100 : static_cast<double>(random.below(kVocabulary)));
  }
  out.inputs.batch = {{"ids", ids}, {"labels", labels}};
  out.how.f64 = true;
  out.outputs = interpret(out.step, out.inputs, out.how);
  return out;
}

struct Drawn {
  AutoParallel options;
  std::map<NodeId, Splits> told;
  std::map<NodeId, Verdict> verdicts;
  std::size_t illegal() const {
    return static_cast<std::size_t>(std::count_if(
        verdicts.begin(), verdicts.end(), [](const auto& v) { return !v.second.wrong.empty(); }));
  }
};

std::string describe(const Drawn& drawn) {
  std::vector<std::string> ops;
  for (const OpShard& shard : drawn.options.shards)
    ops.push_back(text(shard.ops, " ", shard, shard.outs.empty() ? "" : " -> ",
                       shard.outs.empty() ? "" : to_text(shard.outs)));
  return text(drawn.options.mode == ParallelMode::AutoParallel ? "auto" : "semi_auto", ", dataset ",
              static_cast<int>(drawn.options.dataset_strategy.kind), ", ",
              drawn.options.micro_batches, " micro-batches\n", join(ops, "\n"));
}

/// Splits that the rule allows.
Splits legal_splits(const Graph& graph, NodeId id, Random& random) {
  const Oracle oracle(graph, id);
  const Factors rule = graph.factors(id);
  std::map<int, std::int64_t> factors;
  std::int64_t left = test::kDevices;
  const auto count = static_cast<std::int64_t>(rule.list.size());
  for (std::int64_t tries = 0; tries < 2 * count && left > 1; ++tries) {
    const int f = static_cast<int>(random.below(count));
    const std::int64_t n = random.one_of({2, 2, 2, 4, 8});
    if (factors.contains(f) || n > left || !oracle.cuttable(f)) continue;
    factors[f] = n;
    if (oracle.judge(oracle.write(factors)).wrong.empty()) {
      left /= n;
    } else {
      factors.erase(f);
    }
  }
  return oracle.write(factors);
}

/// The same strategy on named axes of 2 x 2 x 2 devices, which factors take at random; nothing
/// where a dim is split beyond its first factor.
std::vector<TensorLayout> on_axes(const Factors& rule, const Verdict& verdict, Random& random) {
  std::vector<int> axes = {0, 1, 2};
  std::map<int, std::vector<int>> axes_of;
  for (const auto& [f, n] : verdict.splits) {
    for (std::int64_t left = n; left > 1; left /= 2) {
      const auto taken = axes.begin() + random.below(static_cast<std::int64_t>(axes.size()));
      axes_of[f].push_back(*taken);
      axes.erase(taken);
    }
    std::sort(axes_of[f].rbegin(), axes_of[f].rend());  // axes meet in one order on all dims
  }
  for (const Factors::Dims& dims : rule.outs) {
    for (const std::vector<int>& fs : dims) {
      for (std::size_t k = 1; k < fs.size(); ++k) {
        if (!axes_of[fs[k]].empty()) return {};
      }
    }
  }
  std::vector<TensorLayout> out;
  for (const Factors::Dims& dims : rule.ins) {
    TensorLayout& layout = out.emplace_back(TensorLayout{{2, 2, 2}, {}, {"dp", "sp", "mp"}});
    for (const std::vector<int>& fs : dims) {
      layout.map.push_back(fs.empty() ? std::vector<int>{} : axes_of[fs[0]]);
      for (std::size_t k = 1; k < fs.size(); ++k) {
        if (!axes_of[fs[k]].empty()) return {};
      }
    }
  }
  return out;
}

/// Results as the op leaves them, but for one dim: whole, or cut further along what the result is
/// not cut by yet.
Splits other_results(const Graph& graph, NodeId id, const Verdict& verdict, Random& random) {
  const Factors rule = graph.factors(id);
  Splits out;
  for (std::size_t r = 0; r < rule.outs.size(); ++r) {
    std::vector<std::int64_t>& parts = out.emplace_back();
    for (const std::vector<int>& fs : rule.outs[r]) {
      parts.push_back(1);
      for (const int f : fs) parts.back() *= verdict.splits.contains(f) ? verdict.splits.at(f) : 1;
    }
    if (parts.empty()) continue;
    const auto d = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(parts.size())));
    std::vector<std::int64_t> free;  // dims of the matrix that do not cut the result
    std::int64_t ranks = 1;
    for (const auto& [f, n] : verdict.splits) {
      ranks *= n;
      if (n > 1 && !rule.has(rule.outs[r], f)) free.push_back(n);
    }
    if (ranks < test::kDevices) free.push_back(test::kDevices / ranks);
    const std::int64_t size = graph.node(id).type(static_cast<int>(r)).shape[static_cast<int>(d)];
    const std::int64_t more =
        free.empty()
            ? 1
            : free[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(free.size())))];
    if (size % (parts[d] * more) == 0 && random.chance(0.7)) {
      parts[d] *= more;
    } else {
      parts[d] = 1;
    }
  }
  return out;
}

/// Strategies of some parameters.
void draw_states(const Graph& graph, Random& random, std::vector<OpShard>& out) {
  for (const State& state : graph.states()) {
    if (state.role != Role::Parameter || !random.chance(0.1)) continue;
    std::vector<std::int64_t> splits;
    for (const std::int64_t size : graph.type(state.value).shape) {
      const std::int64_t n = random.one_of({1, 2, 2, 4, 8});
      splits.push_back(size % n == 0 && (splits.empty() || splits[0] * n <= test::kDevices) ? n
                                                                                            : 1);
    }
    out.push_back({state.path, {splits}});
  }
}

void spoil(Splits& splits, Random& random) {
  if (splits.empty()) return;
  auto& operand =
      splits[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(splits.size())))];
  if (random.chance(0.08)) {
    splits.pop_back();
  } else if (random.chance(0.08)) {
    operand.push_back(1);
  } else if (!operand.empty()) {
    operand[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(operand.size())))] =
        random.one_of({-1, 0, 2, 2, 3, 4, 4, 5, 6, 8, 16});
  }
}

Drawn draw(const Reference& reference, std::uint64_t seed) {
  Random random(seed, 0);
  Drawn out;
  AutoParallel& o = out.options;
  o.mode = random.chance(0.5) ? ParallelMode::AutoParallel : ParallelMode::SemiAutoParallel;
  o.device_num = test::kDevices;
  o.micro_batches = random.chance(0.25) ? 2 : 1;
  o.dataset_strategy.kind = static_cast<DatasetStrategy::Kind>(random.below(3));
  if (o.dataset_strategy.kind == DatasetStrategy::Kind::Splits) {
    for (int i = 0; i < 2; ++i)
      o.dataset_strategy.splits.push_back({random.one_of({1, 2, 4}), random.one_of({1, 2})});
  }
  o.enable_parallel_optimizer = random.chance(0.25);
  const double share = random.chance(0.2) ? 1 : random.chance(0.3) ? 0 : random.between(0.1, 1);
  const bool legal = random.chance(0.6);
  std::vector<NodeId> chosen;
  for (const NodeId id : reference.ops) {
    if (random.chance(share)) chosen.push_back(id);
  }
  if (chosen.empty())
    chosen.push_back(reference.ops[static_cast<std::size_t>(
        random.below(static_cast<std::int64_t>(reference.ops.size())))]);
  for (const NodeId id : chosen) {
    Splits splits = legal_splits(reference.graph, id, random);
    if (!legal && random.chance(0.3)) spoil(splits, random);
    const Verdict& verdict = out.verdicts[id] = Oracle(reference.graph, id).judge(splits);
    out.told[id] = splits;
    OpShard& shard = o.shards.emplace_back(
        OpShard{reference.paths[static_cast<std::size_t>(id)], std::move(splits)});
    if (!verdict.wrong.empty()) continue;
    if (random.chance(0.2)) shard.outs = other_results(reference.graph, id, verdict, random);
    if (random.chance(0.2))
      shard.in_layouts = on_axes(reference.graph.factors(id), verdict, random);
  }
  if (random.chance(0.3)) draw_states(reference.graph, random, o.shards);
  return out;
}

/// Nodes of the forward phase by block, name and op, in order.
std::map<std::string, std::vector<NodeId>> forward_nodes(const Graph& graph) {
  std::map<std::string, std::vector<NodeId>> out;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (!node.op->traits.leaf && node.phase == Phase::Forward)
      out[text(std::string_view(node.block), "|", std::string_view(node.name), "|", node.op->name)]
          .push_back(id);
  }
  return out;
}

struct Tally {
  int legal = 0, illegal = 0, many = 0;  // many: legal with at least half of all ops
  std::size_t ops_legal = 0, ops_wrong = 0, reasons = 0, as_given = 0;
  std::size_t results = 0, layouts = 0,
              states = 0;  // strategies of results, on named axes, of states
};

/// Every op that is told something lies so in the placed graph, unless it was expanded. Returns
/// what is wrong.
std::string told_wrong(const Reference& reference, const Drawn& drawn, const Graph& placed,
                       Tally& tally) {
  const auto before = forward_nodes(reference.graph), after = forward_nodes(placed);
  for (const auto& [key, ids] : before) {
    const auto found = after.find(key);
    if (found == after.end() || found->second.size() != ids.size()) continue;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto told = drawn.told.find(ids[i]);
      if (told == drawn.told.end()) continue;
      Splits lies = in_strategy(placed, found->second[i]);
      lies.resize(told->second.size());  // scalars at the end may be left out
      if (lies != told->second) return text(key, " reads ", to_text(lies), ", not as told");
      ++tally.as_given;
    }
  }
  return {};
}

/// What is wrong with a legal strategy; empty where nothing is.
std::string mesh_wrong(const Reference& reference, const Drawn& drawn, Tally& tally) {
  try {
    const ParallelStep parallel = parallelize(reference.step, drawn.options);
    const Graph placed =
        propagate(add_uses(simplify(merge_pads(parallel.graph))), parallel.strategy);
    const std::string wrong = told_wrong(reference, drawn, placed, tally);
    if (!wrong.empty()) return wrong;
    const Program program = fuse(partition(placed));
    const auto mesh = interpret_program(program, reference.inputs, reference.how);
    for (std::size_t i = 0; i < reference.outputs.size(); ++i) {
      const Output& output = reference.step.outputs()[i];
      const HostTensor& one = reference.outputs[i];
      const HostTensor& other =
          mesh.at(output.kind == Output::Kind::Next ? "next " + output.name : output.name);
      for (std::int64_t e = 0; e < one.numel(); ++e) {
        if (!(std::abs(one.at(e) - other.at(e)) <= 1e-10))  // f64 in another order
          return text(output.name, " [", e, "] is ", other.at(e), ", not ", one.at(e));
      }
    }
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

/// Without the strategies that a failure does not need.
std::string smallest(const Reference& reference, Drawn drawn) {
  Tally tally;
  for (std::size_t i = 0; i < drawn.options.shards.size();) {
    Drawn less = drawn;
    less.options.shards.erase(less.options.shards.begin() + static_cast<std::ptrdiff_t>(i));
    less.told.clear();
    if (mesh_wrong(reference, less, tally).empty()) {
      ++i;
    } else {
      drawn = std::move(less);
    }
  }
  return text(describe(drawn), "\n", mesh_wrong(reference, drawn, tally));
}

/// The lines of a message that speak of one op.
std::string lines_about(const std::string& message, const std::string& op) {
  std::string out, line;
  std::istringstream lines(message);
  while (std::getline(lines, line)) {
    if (line.starts_with(text("op '", op, "' "))) out += line + "\n";
  }
  return out;
}

void expect_refused(const Reference& reference, const Drawn& drawn, Tally& tally) {
  std::string message;
  try {
    parallelize(reference.step, drawn.options);
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::Usage);
    message = error.what();
  }
  ASSERT_FALSE(message.empty()) << "an illegal strategy was taken";
  for (const auto& [id, verdict] : drawn.verdicts) {
    const std::string& op = reference.paths[static_cast<std::size_t>(id)];
    const std::string about = lines_about(message, op);
    EXPECT_EQ(verdict.wrong.empty(), about.empty()) << op << ": " << about;
    for (const std::string& reason : verdict.wrong) {
      EXPECT_NE(about.find(reason), about.npos) << op << ": " << reason << "\nis missing in\n"
                                                << message;
      ++tally.reasons;
    }
    // Where a dim is wrong, the product of the others may be wrong too.
    auto lines = static_cast<std::size_t>(std::count(about.begin(), about.end(), '\n'));
    if (lines > verdict.wrong.size() && about.find(test::kProduct) != about.npos) --lines;
    EXPECT_EQ(lines, verdict.wrong.size()) << about;
    std::string line;
    std::istringstream each(about);
    while (std::getline(each, line)) {
      EXPECT_TRUE(line.find("legal") != line.npos || line.find("; give") != line.npos ||
                  line.find("must be at least 1") != line.npos)
          << "says not what to do: " << line;
    }
  }
}

void check_seed(const Reference& reference, std::uint64_t seed, Tally& tally) {
  const Drawn drawn = draw(reference, seed);
  SCOPED_TRACE(text("seed ", seed, ": ", describe(drawn)));
  const std::size_t wrong = drawn.illegal();
  if (wrong > 0) {
    expect_refused(reference, drawn, tally);
  } else if (const std::string what = mesh_wrong(reference, drawn, tally); !what.empty()) {
    ADD_FAILURE() << "seed " << seed << ": " << what
                  << "\nat its smallest: " << smallest(reference, drawn);
  }
  if (wrong > 0) {
    ++tally.illegal;
    tally.ops_wrong += wrong;
  } else {
    ++tally.legal;
    tally.ops_legal += drawn.told.size();
    tally.many += 2 * drawn.told.size() >= reference.ops.size();
    tally.states += drawn.options.shards.size() - drawn.told.size();
    for (const OpShard& shard : drawn.options.shards) {
      tally.results += !shard.outs.empty();
      tally.layouts += !shard.in_layouts.empty();
    }
  }
}

Tally check_seeds(std::uint64_t first, std::uint64_t count) {
  const Reference one = reference();
  Tally tally;
  for (std::uint64_t seed = first; seed < first + count; ++seed) check_seed(one, seed, tally);
  std::cout << tally.legal << " legal strategies of " << tally.ops_legal << " ops (" << tally.many
            << " of them of at least half of all " << one.ops.size() << ") equal one device, "
            << tally.as_given << " ops lie as told; " << tally.results << " told of results too, "
            << tally.layouts << " on named axes, " << tally.states << " strategies of parameters\n"
            << tally.illegal << " illegal ones refused: " << tally.ops_wrong << " ops, "
            << tally.reasons << " reasons\n";
  return tally;
}

class OpStrategies : public testing::TestWithParam<int> {};

TEST_P(OpStrategies, EqualOneDeviceOrSayWhyNot) {
  constexpr int kSeeds = 25;
  const Tally tally = check_seeds(static_cast<std::uint64_t>(GetParam() * kSeeds), kSeeds);
  EXPECT_GE(tally.many, 5);
  EXPECT_GE(tally.illegal, 2);
}

INSTANTIATE_TEST_SUITE_P(Seeds, OpStrategies, testing::Range(0, 8));

/// What was wrong once, and why.
TEST(MoreOpStrategies, FoundOnce) {
  const struct {
    const char* why;
    std::vector<OpShard> shards;
    std::int64_t micro_batches = 1;
    ParallelMode mode = ParallelMode::AutoParallel;
  } kFound[] = {
      {"a bias that was read as a term of a sum in parts was stored so",
       {{"layers.0.mlp.up.matmul", {{1, 1, 8}, {1, 8}}}, {"loss.sum2", {{2, 4}}}}},
      {"a gradient of heads cut within a head was refused by the reshape that nobody spoke of",
       {{"layers.0.attn.proj.matmul", {{1, 1, 8}, {1, 8}}}}},
      {"so was a value cut within a head, forward",
       {{"layers.0.attn.slice", {{1, 1, 1, 1, 4}}}, {"layers.0.attn.qkv.add", {{1, 1, 8}, {8}}}}},
      {"rows that ops cut otherwise than batch inputs are had no micro-batches",
       {{"norm.layer_norm", {{1, 4, 2}, {2}, {2}}}},
       2,
       ParallelMode::SemiAutoParallel},
      {"the second of two values with one name was told what the first was",
       {{"layers.0.residual", {{8, 1, 1}, {8, 1, 1}}},
        {"layers.0.residual2", {{1, 1, 8}, {1, 1, 8}}}}},
      {"statistics were exchanged among no ranks, whatever was told",
       {{"norm.layer_norm", {{1, 1, 8}, {8}, {8}}}, {"loss.cross_entropy", {{1, 1, 8}, {1, 1}}}}},
  };
  const Reference one = reference();
  for (const auto& found : kFound) {
    SCOPED_TRACE(found.why);
    Drawn drawn;
    drawn.options.mode = found.mode;
    drawn.options.device_num = test::kDevices;
    drawn.options.micro_batches = found.micro_batches;
    drawn.options.enable_parallel_optimizer = true;
    drawn.options.shards = found.shards;
    for (const OpShard& shard : found.shards) {
      const auto at = std::find(one.paths.begin(), one.paths.end(), shard.ops);
      ASSERT_NE(at, one.paths.end()) << shard.ops;
      drawn.told[static_cast<NodeId>(at - one.paths.begin())] = shard.ins;
    }
    Tally tally;
    EXPECT_EQ(mesh_wrong(one, drawn, tally), "");
  }
}

/// An op whose statistics are exchanged is cut as it was told: no rank has all of a row.
TEST(MoreOpStrategies, StatisticsAreCutAsTold) {
  const Reference one = reference();
  AutoParallel options;
  options.mode = ParallelMode::AutoParallel;
  options.device_num = test::kDevices;
  options.dataset_strategy.kind = DatasetStrategy::Kind::FullBatch;
  options.shards = {{"norm.layer_norm", {{1, 1, 8}, {8}, {8}}}};
  const ParallelStep parallel = parallelize(one.step, options);
  const Graph placed = propagate(add_uses(parallel.graph), parallel.strategy);
  int cut = 0;
  for (const Node& node : placed.nodes()) {
    if (std::string_view(node.block) != "norm" || node.phase != Phase::Forward) continue;
    EXPECT_NE(node.op->name, "layer_norm") << "every rank normalizes whole rows";
    const Shape& shape = node.results[0].type.shape;
    if (node.op->traits.leaf || shape.ndim() != 3 || shape[2] != model().width) continue;
    EXPECT_EQ(node.results[0].placement->sharding.dims[2].empty(), false) << node.op->name;
    ++cut;
  }
  EXPECT_GE(cut, 3);
}

TEST(MoreOpStrategies, Asked) {
  const char* asked = std::getenv("TESSERA_OP_FUZZ");
  if (asked == nullptr) GTEST_SKIP() << "set TESSERA_OP_FUZZ to \"FIRST COUNT\"";
  std::uint64_t first = 0, count = 0;
  std::istringstream(asked) >> first >> count;
  const Tally tally = check_seeds(first, count);
  if (count < 200) return;
  EXPECT_GE(tally.many, 60);
  EXPECT_GE(tally.illegal, 40);
}

}  // namespace
}  // namespace tessera
