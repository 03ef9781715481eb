#pragma once
/// Losses of twenty steps, held against those of other programs: on meshes, and in f32.

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tessera/plan/compile.h"
#include "tessera/runtime/executor.h"
#include "train/executor_states.h"
#include "train/golden_run.h"

namespace tessera {

/// The recipe of the files of such losses.
inline OptimizerConfig twenty_steps() {
  OptimizerConfig out = golden_recipe();
  out.schedule = {ScheduleKind::Cosine, 1e-3, 1e-4, 3, 20};
  return out;
}

struct GoldenLosses {
  ModelConfig model;
  Task task;
  std::vector<double> losses;
  std::function<Bindings(const Graph& graph)> begin;  // the states
  std::function<std::map<std::string, HostTensor>(std::int64_t step)> batch;

  Graph graph() const { return train_step(task, twenty_steps(), 4); }

  /// In f64, from weights and labels of f32.
  void expect_on(std::span<const GoldenMesh> meshes) const {
    ASSERT_EQ(losses.size(), 20U);
    const Graph step_graph = graph();
    for (const GoldenMesh& mesh : meshes) {
      SCOPED_TRACE(mesh.name);
      Bindings in = begin(step_graph);
      const GoldenRun run(step_graph, mesh, model);
      for (std::size_t step = 0; step < losses.size(); ++step) {
        for (const auto& [name, tensor] : batch(static_cast<std::int64_t>(step)))
          in.batch[name] = tensor;
        EXPECT_NEAR(run(in).at("loss").at(0), losses[step], 2e-6 * losses[step]) << "step " << step;
      }
    }
  }

  void expect_in_f32(std::span<const std::int64_t> microbatches, double tolerance) const {
    const Graph step_graph = graph();
    for (const std::int64_t count : microbatches) {
      SCOPED_TRACE(count);
      const std::unique_ptr<Device> device = make_cpu_device({2, -1});
      Executor executor(compile({{"train", step_graph, one_device(count)}}, *device), *device);
      set_states(executor, step_graph, begin(step_graph));
      for (std::size_t step = 0; step < losses.size(); ++step) {
        executor.run("train", [&](BatchInputs& in) {
          for (const auto& [name, tensor] : batch(static_cast<std::int64_t>(step)))
            std::ranges::copy(tensor.bytes(), in.fill(name, tensor.dtype()).begin());
        });
        EXPECT_NEAR(executor.scalar("train", "loss"), losses[step], tolerance * losses[step])
            << "step " << step;
      }
    }
  }
};

}  // namespace tessera
