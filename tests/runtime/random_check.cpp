#include "runtime/random_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "tessera/ir/builder.h"
#include "tessera/ir/parse.h"
#include "tessera/ir/print.h"
#include "tessera/ir/verify.h"
#include "tessera/ops/table.h"
#include "tessera/plan/compile.h"
#include "tessera/runtime/executor.h"

namespace tessera::fuzz {

namespace {

constexpr int kSteps = 3;

/// What one output may be, and how far from it.
struct Expected {
  HostTensor value;  // f64 where the graph says f32
  double tolerance = 0;
};
using Step = std::vector<Expected>;  // in the graph's order of outputs

void keep_next(const Graph& graph, const std::vector<HostTensor>& out, Bindings& into) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (graph.outputs()[i].kind == Output::Kind::Next)
      into.states[graph.outputs()[i].name] = out[i];
  }
}

double largest(const HostTensor& a) {
  double out = 0;
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    if (std::isfinite(a.at(i))) out = std::max(out, std::abs(a.at(i)));
  }
  return out;
}

double largest_difference(const HostTensor& a, const HostTensor& b) {
  double out = 0;
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    if (std::isfinite(a.at(i)) && std::isfinite(b.at(i)))
      out = std::max(out, std::abs(a.at(i) - b.at(i)));
  }
  return out;
}

/// The steps in f64, each with a bound: rounding in f32 and a change of the inputs by 1e-6 say how
/// sensitive a result is, and the largest number on the way what a sum that is zero may leave.
std::vector<Step> interpreted(const Graph& graph, std::uint64_t seed, Tally& tally) {
  Bindings f32 = random_states(graph, seed), f64 = f32, moved = disturbed(f32, seed);
  Interpretation exact, watched;
  exact.f64 = watched.f64 = true;
  double most = 1;
  watched.observe = [&](NodeId, const std::vector<HostTensor>& results) {
    for (const HostTensor& result : results) {
      if (result.dtype() == DType::F64) most = std::max(most, largest(result));
    }
  };
  std::vector<Step> steps;
  for (int step = 0; step < kSteps; ++step) {
    random_batch(graph, seed, step, f32);
    f64.batch = f32.batch;
    moved.batch = disturbed(f32, seed + static_cast<std::uint64_t>(step)).batch;
    const auto rounded = interpret(graph, f32), value = interpret(graph, f64, watched),
               other = interpret(graph, moved, exact);
    Step& expected = steps.emplace_back();
    for (std::size_t i = 0; i < value.size(); ++i) {
      const double tolerance = 4 * std::max(largest_difference(value[i], rounded[i]),
                                            largest_difference(value[i], other[i])) +
                               2e-6 * largest(value[i]) + 2.4e-7 * most;
      tally.loose += tolerance > 1e-3 * (1 + largest(value[i]));
      expected.push_back({value[i], tolerance});
    }
    keep_next(graph, rounded, f32);
    keep_next(graph, value, f64);
    keep_next(graph, other, moved);
  }
  return steps;
}

/// How a graph is compiled and run.
struct Run {
  std::int64_t microbatches;
  bool optimize, guards;
  Device* device;
};

std::string differs(const HostTensor& got, const Expected& expected, Tally& tally) {
  for (std::int64_t i = 0; i < got.numel(); ++i) {
    const double a = got.at(i), b = expected.value.at(i);
    ++tally.compared;
    if (std::isfinite(b) ? !(std::abs(a - b) <= expected.tolerance)
                         : !(std::isnan(b) ? std::isnan(a) : a == b))
      return text("element ", i, " of ", got.type(), " is ", a, ", not ", b, " within ",
                  expected.tolerance);
  }
  return {};
}

HostTensor state_of(const Executor& executor, const Graph& graph, const State& state) {
  HostTensor out(graph.type(state.value));
  std::memcpy(out.bytes().data(), executor.read_state(state.path).bytes.data(), out.bytes().size());
  return out;
}

std::string run_wrong(const Graph& graph, std::uint64_t seed, Executor& executor,
                      const std::vector<Step>& steps, Tally& tally) {
  Bindings in = random_states(graph, seed);
  for (const auto& [path, value] : in.states) executor.write_state(path, value.bytes());
  for (int step = 0; step < kSteps; ++step) {
    random_batch(graph, seed, step, in);
    UsedBytes used;
    const auto fill = [&](BatchInputs& batch) {
      for (const auto& [name, value] : in.batch)
        std::ranges::copy(value.bytes(), batch.fill(name, value.dtype()).begin());
    };
    executor.run("step", fill, {.used_bytes = &used});
    const auto say = [&](const std::string& what) { return text("step ", step, ": ", what); };
    if (!executor.guard_intact()) return say("the bytes behind the arena were written");
    if (used.device > executor.plan().peak_bytes()) return say("more was written than planned");
    std::set<std::string> changed;
    for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
      const Output& output = graph.outputs()[i];
      const bool next = output.kind == Output::Kind::Next;
      if (next) changed.insert(output.name);
      const HostTensor got = next ? state_of(executor, graph, *graph.find_state(output.name))
                                  : executor.metric("step", output.name);
      if (got.type() != graph.type(output.value))
        return say(text(output.name, " is ", got.type(), ", not ", graph.type(output.value)));
      const std::string what = differs(got, steps[static_cast<std::size_t>(step)][i], tally);
      if (!what.empty()) return say(text(next ? "next " : "", output.name, ": ", what));
    }
    for (const State& state : graph.states()) {
      if (changed.contains(state.path)) continue;
      if (differs(state_of(executor, graph, state), {in.states.at(state.path), 0}, tally) != "")
        return say(text("state ", state.path, " changed, and has no next value"));
    }
  }
  return {};
}

/// True for an error that says why a graph cannot be cut into micro-batches.
bool says_why(const Error& error) {
  const std::string what = error.what();
  const auto has = [&](std::string_view part) { return what.find(part) != std::string::npos; };
  return dynamic_cast<const Broken*>(&error) == nullptr && has("in pass") && has("%") &&
         (has("mixes rows") || has("needs a sum over mb") || has("cut into micro-batches"));
}

std::string compiled_wrong(const RandomGraph& random, std::uint64_t seed, const Run& how,
                           const std::vector<Step>& steps, Tally& tally) {
  const Graph& graph = random.graph;
  CompileOptions options;
  options.optimize = Optimizations::all(how.optimize);
  options.guard_bytes = how.guards ? 64 : 0;
  try {
    Plan plan = compile({{"step", graph, one_device(how.microbatches)}}, *how.device, options);
    if (plan.lower_bound_bytes() > plan.peak_bytes()) return "the lower bound is above the peak";
    // Some ids lie outside, where kernels read zeros as the reference does; a run would refuse
    // them.
    for (ProgramPlan& program : plan.programs) {
      for (NamedTensor& input : program.batch) input.range = {};
    }
    Executor executor(std::move(plan), *how.device);
    ++tally.plans;
    return run_wrong(graph, seed, executor, steps, tally);
  } catch (const Error& error) {
    if (how.microbatches == 1 || !says_why(error)) return error.what();
    if (!random.mixes_rows) return text("refused, though no rows are mixed: ", error.what());
    ++tally.refused;
    return {};
  }
}

std::string text_wrong(const Graph& graph) {
  const std::string printed = to_text(graph);
  const Graph read = parse_graph(printed, find_op);
  if (!(read == graph)) return "reading the text gives another graph";
  if (to_text(read) != printed) return "printing what was read gives another text";
  return {};
}

}  // namespace

Checker::Checker() {
  // One of the three packs every weight that it can.
  for (int threads = 1; threads <= 3; ++threads)
    devices_.push_back(make_cpu_device({threads, -1, threads == 2}));
}

std::string Checker::wrong(std::uint64_t seed, int ops, Tally& tally) const {
  try {
    const RandomGraph random = random_graph(seed, ops);
    const Graph& graph = random.graph;
    verify(graph);
    ++tally.graphs;
    tally.mixing += random.mixes_rows;
    std::set<std::string_view> names;
    for (const Node& node : graph.nodes()) names.insert(node.op->name);
    for (const std::string_view name : names) ++tally.ops[std::string(name)];
    if (const std::string what = text_wrong(graph); !what.empty()) return what;
    const std::vector<Step> steps = interpreted(graph, seed, tally);
    for (std::int64_t microbatches = 1; microbatches <= 3; ++microbatches) {
      const std::uint64_t choice = seed + static_cast<std::uint64_t>(microbatches);
      const std::size_t threads = choice / 2 % 3;
      const Run how{microbatches, choice % 2 == 0, choice / 6 % 2 == 0, devices_[threads].get()};
      const std::string what = compiled_wrong(random, seed, how, steps, tally);
      if (!what.empty())
        return text(microbatches, " micro-batches, ", threads + 1, " threads",
                    how.optimize ? ", optimized" : "", how.guards ? ", guarded: " : ": ", what);
    }
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

std::string Checker::smallest_failure(std::uint64_t seed, int ops) const {
  Tally tally;
  for (int fewer = 0; fewer <= ops; ++fewer) {
    const std::string what = wrong(seed, fewer, tally);
    if (what.empty()) continue;
    std::string graph;
    try {
      graph = to_text(random_graph(seed, fewer).graph);
    } catch (const std::exception& error) {
      graph = error.what();
    }
    return text("seed ", seed, ", ", fewer, " ops: ", what, "\n", graph);
  }
  return text("seed ", seed, " fails with ", ops, " ops only at times");
}

}  // namespace tessera::fuzz
