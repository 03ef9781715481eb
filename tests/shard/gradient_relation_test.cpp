/// How gradients of MindSpore's modes relate to those of one device: every mode, dataset strategy
/// and flag on the network of its quick start, 8 ranks interpreted in f64. All numbers are small
/// multiples of powers of two, so that sums have no rounding in any order and factors are exact.

#include <gtest/gtest.h>

#include <iomanip>
#include <iostream>
#include <optional>

#include "shard/two_matmuls.h"
#include "tessera/models/task.h"
#include "tessera/passes/add_uses.h"
#include "tessera/passes/interpret_program.h"
#include "tessera/passes/partition.h"
#include "tessera/passes/propagate.h"
#include "tessera/passes/simplify.h"
#include "tessera/shard/auto_parallel.h"
#include "tessera/shard/shard.h"

namespace tessera {
namespace {

using Kind = DatasetStrategy::Kind;
using Mode = ParallelMode;

/// Multiples of 1/8 between -1 and 1.
HostTensor eighths(const Shape& shape, std::uint64_t n) {
  HostTensor out(DType::F32, shape);
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    n = n * 6364136223846793005u + 1442695040888963407u;
    out.set(i, static_cast<double>(static_cast<std::int64_t>(n >> 60) - 8) / 8);
  }
  return out;
}

Bindings inputs_of(const Graph& graph) {
  Bindings out;
  out.batch = {{"x", eighths({16, 32}, 1)}, {"label", eighths({16, 16}, 2)}};
  for (const State& state : graph.states()) {
    const TensorType& type = graph.type(state.value);
    out.states.emplace(state.path, state.role == Role::Parameter
                                       ? eighths(type.shape, state.path.size() + 2)
                                       : HostTensor(type));
  }
  return out;
}

/// Strategies of the two products; where there are none, propagation finds them or rows are cut.
struct Net {
  const char* strategies;
  Splits first, out;
};
const Net kNets[] = {
    {"none", {}, {}},
    {"matmul ((2,4),(4,1))", {{2, 4}, {4, 1}}, {}},
    {"matmul ((2,4),(4,1)), matmul2 ((4,1),(1,2))", {{2, 4}, {4, 1}}, {{4, 1}, {1, 2}}},
};

struct Dataset {
  const char* name;
  DatasetStrategy strategy;
};
const Dataset kDatasets[] = {
    {"data_parallel", {}},
    {"full_batch", {Kind::FullBatch}},
    {"((4,2),(4,1))", {Kind::Splits, {{4, 2}, {4, 1}}}},
};
const Dataset kWhole = {"((1,1),(1,1))", {Kind::Splits, {{1, 1}, {1, 1}}}};

const char* name_of(Mode mode) {
  switch (mode) {
    case Mode::StandAlone: return "stand_alone";
    case Mode::DataParallel: return "data_parallel";
    case Mode::SemiAutoParallel: return "semi_auto_parallel";
    case Mode::AutoParallel: return "auto_parallel";
    case Mode::HybridParallel: break;
  }
  return "hybrid_parallel";
}

AutoParallel options_of(Mode mode, const DatasetStrategy& dataset) {
  AutoParallel out;
  out.mode = mode;
  out.device_num = mode == Mode::StandAlone ? 1 : 8;
  out.dataset_strategy = dataset;
  return out;
}

/// The network with these strategies, whose step it returns.
Graph network(const Net& net, AutoParallel& options) {
  test::TwoMatmuls nets;
  if (!net.first.empty()) shard(nets.first, net.first);
  if (!net.out.empty()) shard(nets.out, net.out);
  options.shards = shards_of(nets.builder);
  return nets.step();
}

/// Of one parameter: gradient over that of one device, and the ranks that hold the same slice.
struct Measured {
  double factor = 0;
  double replicas = 0;
};

/// Errors: elements that do not agree about the factor.
Measured measure(const std::string& parameter, const Program& program, const HostTensor& gradient,
                 const HostTensor& one) {
  Measured out;
  for (std::int64_t i = 0; i < one.numel() && out.factor == 0; ++i) {
    if (one.at(i) != 0) out.factor = gradient.at(i) / one.at(i);
  }
  for (std::int64_t i = 0; i < one.numel(); ++i)
    EXPECT_EQ(gradient.at(i), out.factor * one.at(i)) << parameter << " [" << i << "]";
  const auto ranks = static_cast<double>(program.mesh().ranks());
  for (const Region& region : program.regions) {
    for (const State& state : region.graph.states()) {
      if (state.path != parameter) continue;
      const Result& local = region.graph.result(state.value);
      out.replicas = ranks * static_cast<double>(local.type.numel()) /
                     static_cast<double>(local.logical.numel());
    }
  }
  return out;
}

/// The table of auto_parallel.h.
double expected(const AutoParallel& o, double replicas) {
  if (o.mode == Mode::StandAlone) return 1;
  if (o.mode == Mode::DataParallel) return o.gradients_mean ? 1 : 8;
  return (o.loss_repeated_mean ? 1.0 : 8.0) / (o.gradients_mean ? replicas : 1);
}

class Relation {
 public:
  Relation() {
    test::TwoMatmuls network;
    const Graph step = simplify(network.step());  // which rounds the rate
    inputs_ = inputs_of(step);
    how_.f64 = true;
    const std::vector<HostTensor> values = interpret(step, inputs_, how_);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Output& output = step.outputs()[i];
      one_[(output.kind == Output::Kind::Next ? "next " : "") + output.name] = values[i];
    }
    std::cout << std::left << std::setw(20) << "mode" << std::setw(15) << "dataset" << std::setw(45)
              << "strategies" << std::setw(16) << "gradients_mean" << std::setw(20)
              << "loss_repeated_mean"
              << "w, w2: factor (replicas)\n";
  }

  /// Both flags, one and two micro-batches.
  void row(Mode mode, const Dataset& dataset, const Net& net) {
    for (const bool gradients_mean : {false, true}) {
      for (const bool loss_repeated_mean : {true, false}) {
        AutoParallel options = options_of(mode, dataset.strategy);
        options.gradients_mean = gradients_mean;
        options.loss_repeated_mean = loss_repeated_mean;
        const Graph step = network(net, options);
        std::ostringstream line;
        line << std::left << std::setw(20) << name_of(mode) << std::setw(15) << dataset.name
             << std::setw(45) << net.strategies << std::setw(16) << gradients_mean << std::setw(20)
             << loss_repeated_mean;
        SCOPED_TRACE(line.str());
        options.micro_batches = 2;
        const std::string twice = factors(step, options);
        options.micro_batches = 1;
        line << factors(step, options);
        EXPECT_TRUE(line.str().ends_with(twice)) << "with two micro-batches: " << twice;
        std::cout << line.str() << "\n";
        testing::Test::RecordProperty(text("row", rows_++), line.str());
      }
    }
  }
  int rows() const { return rows_; }

 private:
  std::string factors(const Graph& step, const AutoParallel& options) {
    const ParallelStep parallel = parallelize(step, options);
    const Program program = partition(propagate(add_uses(parallel.graph), parallel.strategy));
    const std::map<std::string, HostTensor> mesh = interpret_program(program, inputs_, how_);
    EXPECT_EQ(mesh.at("loss").at(0), one_.at("loss").at(0)) << "the loss is that of one device";
    std::ostringstream out;
    for (const char* parameter : {"w", "w2"}) {
      const std::string name = text("gradient ", parameter);
      const Measured found = measure(parameter, program, mesh.at(name), one_.at(name));
      EXPECT_EQ(found.factor, expected(options, found.replicas)) << parameter;
      out << std::left << std::setw(5) << found.factor << std::setw(6)
          << text("(", found.replicas, ")");
      // What the first step of momentum adds to the parameter is the gradient times the rate.
      const HostTensor &before = inputs_.states.find(parameter)->second,
                       &after = mesh.at(text("next ", parameter)),
                       &after_one = one_.at(text("next ", parameter));
      for (std::int64_t i = 0; i < before.numel(); ++i) {
        EXPECT_NEAR(after.at(i) - before.at(i), found.factor * (after_one.at(i) - before.at(i)),
                    1e-12)  // of products with the rate
            << parameter << " [" << i << "]";
      }
    }
    return out.str();
  }

  Bindings inputs_;
  Interpretation how_;
  std::map<std::string, HostTensor> one_;
  int rows_ = 0;
};

TEST(GradientRelation, EveryModeFlagAndDataset) {
  Relation relation;
  for (const Dataset& dataset : {kDatasets[0], kDatasets[1], kWhole})
    relation.row(Mode::StandAlone, dataset, kNets[0]);
  relation.row(Mode::DataParallel, kDatasets[0], kNets[0]);
  for (const Mode mode : {Mode::SemiAutoParallel, Mode::AutoParallel}) {
    for (const Dataset& dataset : kDatasets) {
      for (const Net& net : kNets) relation.row(mode, dataset, net);
    }
  }
  EXPECT_EQ(relation.rows(), 4 * (3 + 1 + 2 * 3 * 3));
}

struct Refusal {
  const char* why;
  AutoParallel options;
  std::vector<const char*> words;
};

AutoParallel with(Mode mode, const DatasetStrategy& dataset, void (*change)(AutoParallel&)) {
  AutoParallel out = options_of(mode, dataset);
  if (change != nullptr) change(out);
  return out;
}

TEST(GradientRelation, WhatDoesNotFitTogetherIsRefused) {
  using Options = AutoParallel;
  const Refusal kRefusals[] = {
      {"one device is not eight",
       with(Mode::StandAlone, {}, [](Options& o) { o.device_num = 8; }),
       {"stand_alone is one device, but device_num is 8; use data_parallel"}},
      {"one device has nobody to share moments with",
       with(Mode::StandAlone, {}, [](Options& o) { o.enable_parallel_optimizer = true; }),
       {"enable_parallel_optimizer needs several devices, but the mode is stand_alone"}},
      {"one device cannot cut its batch",
       with(Mode::StandAlone, {Kind::Splits, {{2, 1}, {2, 1}}}, nullptr),
       {"batch input 'x': its splits make 2 parts, which does not divide 1 devices; legal "
        "products: 1",
        "batch input 'label': its splits make 2 parts"}},
      {"data_parallel cuts the batch",
       with(Mode::DataParallel, {Kind::FullBatch}, nullptr),
       {"data_parallel cuts the batch along its rows, but dataset_strategy says otherwise",
        "use semi_auto_parallel"}},
      {"by rows alone",
       with(Mode::DataParallel, {Kind::Splits, {{4, 2}, {4, 1}}}, nullptr),
       {"data_parallel cuts the batch along its rows, but dataset_strategy says otherwise"}},
      {"data_parallel does not read strategies of ops",
       with(Mode::DataParallel, {},
            [](Options& o) {
              o.shards = {{"matmul", {{2, 4}, {4, 1}}}};
            }),
       {"op 'matmul' has a strategy, but the mode does not read it; use semi_auto_parallel"}},
      {"rows that the devices do not divide",
       with(Mode::DataParallel, {}, [](Options& o) { o.device_num = 6; }),
       {"batch input 'x': dim 0 of size 16 is split 6 times; legal: 1, 2, 4, 8, 16",
        "batch input 'label': dim 0 of size 16 is split 6 times"}},
      {"each input has its strategy",
       with(Mode::AutoParallel, {Kind::Splits, {{8, 1}}}, nullptr),
       {"dataset_strategy has 1 strategies for 2 batch inputs; give each input one"}},
      {"no input has two",
       with(Mode::AutoParallel, {Kind::Splits, {{8, 1}, {8, 1}, {8}}}, nullptr),
       {"dataset_strategy has 3 strategies for 2 batch inputs; give each input one"}},
      {"a strategy has the dims of its input",
       with(Mode::SemiAutoParallel, {Kind::Splits, {{8}, {8, 1}}}, nullptr),
       {"batch input 'x': a strategy of 1 dims for the shape [16,32]; give each dim a number"}},
      {"nothing keeps to no memory",
       with(Mode::AutoParallel, {},
            [](Options& o) {
              o.search_mode = SearchMode::DynamicProgramming;
              o.memory_cap = 1;
            }),
       {"dynamic_programming found no placements within 1 bytes per device"}},
      {"a memory cap is for a search",
       with(Mode::AutoParallel, {}, [](Options& o) { o.memory_cap = 1e9; }),
       {"memory_cap is set, but nothing searches within it; use auto_parallel with search_mode"}},
      {"all at once",
       with(Mode::StandAlone, {},
            [](Options& o) {
              o.device_num = 0;
              o.micro_batches = -1;
              o.enable_parallel_optimizer = true;
            }),
       {"device_num is 0; it must be at least 1", "micro_batches is -1; it must be at least 1",
        "enable_parallel_optimizer needs several devices"}},
  };
  test::TwoMatmuls network;
  const Graph step = network.step();
  for (const Refusal& refusal : kRefusals) {
    SCOPED_TRACE(refusal.why);
    std::string message;
    try {
      parallelize(step, refusal.options);
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::Usage);
      message = error.what();
    }
    for (const char* words : refusal.words)
      EXPECT_NE(message.find(words), message.npos) << words << "\nis missing in\n" << message;
  }
}

}  // namespace
}  // namespace tessera
