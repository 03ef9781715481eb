/// Every exchange of a mesh matters: with any one left out, what `verify` compares is wrong.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <iostream>
#include <limits>

#include "tessera/models/parallel.h"
#include "tessera/passes/add_uses.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/interpret_program.h"
#include "tessera/passes/partition.h"
#include "tessera/passes/propagate.h"
#include "tessera/passes/simplify.h"
#include "train/one_device.h"

namespace tessera {
namespace {

struct Case {
  const char* name;
  const char* family;
  ParallelConfig parallel;
  int seen_in_replicas = 0;  // exchanges without which the first rank is right, others are not
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

constexpr double kFound = 1e-4;  // what verify allows for f32

using Outputs = std::map<std::string, HostTensor>;

/// Softmax takes no notice of what a bias adds to all keys: its gradient is zero but for rounding,
/// which Adam makes steps of. Packed biases lie as (head, role, channel), channels being 4.
bool is_noise(std::string_view name, std::int64_t i) {
  return name.ends_with("qkv.bias") && i / 4 % 3 == 1;
}

/// |x - y| / |x|, Euclidean.
double relative(std::string_view name, const HostTensor& x, const HostTensor& y, double least) {
  double difference = 0, size = 0;
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    if (is_noise(name, i)) continue;
    difference += (x.at(i) - y.at(i)) * (x.at(i) - y.at(i));
    size += x.at(i) * x.at(i);
  }
  return std::sqrt(difference) / std::max(std::sqrt(size), least);
}

/// The task without the means that are no part of its loss: `verify` does not compare them.
Task loss_alone(Task task) {
  const auto measure = task.measure;
  const std::vector<TaskMean> all = task.means;
  task.measure = [all, measure](const TaskValues& inputs, const Pass& pass) {
    const std::vector<Mean> means = measure(inputs, pass).means;
    std::vector<Mean> out;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].weight != 0) out.push_back(means[i]);
    }
    return out;
  };
  std::erase_if(task.means, [](const TaskMean& mean) { return mean.weight == 0; });
  return task;
}

/// The largest relative error among what `verify` compares: loss and its parts, gradient norm,
/// gradients, parameters after the step. Not a number counts as infinite.
double error(const Graph& graph, const Outputs& one, const Outputs& mesh) {
  const double least = 1e-6 * one.at("grad_norm").at(0);
  double out = 0;
  for (const auto& [name, value] : one) {
    const State* state = starts_with(name, "next ") ? graph.find_state(name.substr(5)) : nullptr;
    const bool compared =
        state == nullptr ? !starts_with(name, "next ") : state->role == Role::Parameter;
    if (!compared) continue;
    const double e = relative(name, value, mesh.at(name), least);
    out = std::isnan(e) ? std::numeric_limits<double>::infinity() : std::max(out, e);
  }
  return out;
}

bool replicas_differ(const std::function<void()>& interpreted) {
  try {
    interpreted();
    return false;
  } catch (const Broken& error) {
    return std::string_view(error.what()).find("replicas differ") != std::string_view::npos;
  }
}

class Deletion : public testing::TestWithParam<Case> {};

TEST_P(Deletion, OfAnyExchangeIsFound) {
  OptimizerConfig optimizer;
  optimizer.schedule.kind = ScheduleKind::Constant;
  optimizer.clip = 0.1;
  const Task task = loss_alone(task_of(tiny(GetParam().family)));
  // Simplified on both sides: constants are folded in f32.
  const Graph graph = simplify(with_gradients(train_step(task, optimizer, 12)));
  const Bindings inputs = random_inputs(graph, task);
  Interpretation how;
  how.f64 = true;
  Outputs one;
  const std::vector<HostTensor> whole = interpret(graph, inputs, how);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const Output& output = graph.outputs()[i];
    one.emplace((output.kind == Output::Kind::Next ? "next " : "") + output.name, whole[i]);
  }
  ASSERT_GT(one.at("grad_norm").at(0), optimizer.clip) << "clipping is active";
  const Program program =
      fuse(partition(propagate(add_uses(graph), strategy_of(GetParam().parallel))));
  ASSERT_LT(error(graph, one, interpret_program(program, inputs, how)), 1e-10);
  int all = 0, seen_in_replicas = 0;
  double least = std::numeric_limits<double>::infinity();
  for (const Region& region : program.regions) {
    for (NodeId id = 0; id < region.graph.size(); ++id) {
      const Node& node = region.graph.node(id);
      if (!node.op->traits.exchanges) continue;
      ++all;
      Deleted deleted{program.index_of(region.kind, region.chunk), id};
      const double e = error(graph, one, interpret_program(program, inputs, how, deleted));
      deleted.compare_replicas = true;
      if (e < kFound &&
          replicas_differ([&] { interpret_program(program, inputs, how, deleted); })) {
        ++seen_in_replicas;
        continue;
      }
      least = std::min(least, e);
      EXPECT_GT(e, kFound) << to_text(region.kind) << " " << describe(region.graph, id);
    }
  }
  EXPECT_GT(all, 50);
  EXPECT_EQ(seen_in_replicas, GetParam().seen_in_replicas);
  std::cout << all << " deletions, the least error " << least << "\n";
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, Deletion,
    testing::Values(Case{"Dp2Tp2SpZero1Mb2", "gpt2", parallel_of(2, 2, 1, true, 1, 2)},
                    Case{"Dp2Tp2SpZero1Mb2Llama", "llama", parallel_of(2, 2, 1, true, 1, 2)},
                    Case{"Cp2Tp2", "gpt2", parallel_of(1, 2, 2, false, 0, 1)},
                    Case{"Cp2Tp2Llama", "llama", parallel_of(1, 2, 2, false, 0, 1)},
                    Case{"Dp2Tp2SpZero1Mb2Bert", "bert", parallel_of(2, 2, 1, true, 1, 2), 1},
                    Case{"Cp2Tp2BertMasked", "bert-masked", parallel_of(1, 2, 2, false, 0, 1)},
                    Case{"Dp2Zero3", "gpt2", parallel_of(2, 1, 1, false, 3, 1)},
                    Case{"Dp2Zero3Mb2Llama", "llama", parallel_of(2, 1, 1, false, 3, 2)}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tessera
