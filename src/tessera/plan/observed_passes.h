#pragma once
/// Passes as `compile` runs them. For compile.cpp.

#include <chrono>
#include <string>
#include <vector>

#include "tessera/base/text.h"
#include "tessera/ir/verify.h"
#include "tessera/passes/program.h"
#include "tessera/plan/compile.h"
#include "tessera/plan/pass_check.h"
#include "tessera/plan/timeline.h"

namespace tessera {

/// Runs one pass: times it, shows what it leaves, and says where an error came from.
class Passes {
 public:
  /// `stage`: of a pipeline, that the passes are of; -1: of all stages.
  Passes(const std::string& program, const CompileOptions& options, int stage = -1)
      : program_(program), options_(options), stage_(stage) {}

  template <typename Pass>
  auto operator()(const char* name, const Pass& pass) const {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    try {
      auto result = pass();
      const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      plant(name, result);
      show(name, graphs_of(result), seconds);
      compare(name, result);
      return result;
    } catch (const Error& error) {
      throw error.with(text("in pass ", name, " of program ", program_));
    }
  }

  /// Verifies the graphs that a pass left and hands them to the observer.
  void show(const char* name, const std::vector<PassGraph>& graphs, double seconds) const {
    for (std::size_t i = 0; options_.verified && i < graphs.size(); ++i) verify(*graphs[i].graph);
    if (options_.observe) options_.observe(program_, name, graphs, seconds);
  }

 private:
  std::vector<PassGraph> graphs_of(const Graph& graph) const { return {{"", &graph, stage_}}; }
  std::vector<PassGraph> graphs_of(const Timeline&) const { return {}; }
  std::vector<PassGraph> graphs_of(const ProgramPlan&) const { return {}; }
  std::vector<PassGraph> graphs_of(const Program& program) const {
    std::vector<PassGraph> out;
    for (const Region& region : program.regions)
      out.push_back({program.name_of(region), &region.graph, stage_});
    return out;
  }

  void plant(const char* name, Graph& graph) const {
    if (options_.plant) options_.plant(name, graph);
  }
  void plant(const char* name, Program& program) const {
    for (Region& region : program.regions) plant(name, region.graph);
  }
  void plant(const char*, const Timeline&) const {}
  void plant(const char*, const ProgramPlan&) const {}

  void compare(const char* name, const Graph& graph) const {
    if (options_.check != nullptr) options_.check->after(name, graph);
  }
  void compare(const char* name, const Program& program) const {
    if (options_.check != nullptr) options_.check->after(name, program);
  }
  void compare(const char*, const Timeline&) const {}
  void compare(const char*, const ProgramPlan&) const {}

  const std::string& program_;
  const CompileOptions& options_;
  int stage_;
};

}  // namespace tessera
