/// A training step call by call, a clock around each.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "tessera/base/text.h"
#include "tessera/plan/compile.h"
#include "tessera/runtime/executor.h"
#include "tessera/train/config.h"
#include "tessera/train/step.h"

namespace bench {

using namespace tessera;

/// What calls of one row share. `what` has the op, its operands' types and its results'.
struct Kind {
  std::string region, op, what, where, kernel;
  friend auto operator<=>(const Kind&, const Kind&) = default;
};

struct Row {
  Kind kind;
  double flops = 0, bytes = 0;   // of one call
  std::vector<double> seconds;   // of every call in every timed step
  std::vector<double> per_step;  // of all calls of a step together
  double calls() const { return static_cast<double>(seconds.size() / per_step.size()); }
};

struct Report {
  std::vector<Row> rows;
  std::vector<double> steps;    // seconds
  std::vector<double> outside;  // seconds of a step that were spent in no call
  double flops = 0;
  std::string device;
};

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// ---- What is called --------------------------------------------------------------------------

/// "layers.7.attn" -> "layers.*.attn"
inline std::string any_number(const std::string& path) {
  std::vector<std::string> parts = split(path, '.');
  for (std::string& part : parts) {
    if (part.find_first_not_of("0123456789") == std::string::npos && !part.empty()) part = "*";
  }
  return join(parts, ".");
}

/// "fused(mul,add)" for a node with a body, else the name of its op.
inline std::string name_of(const Node& node) {
  for (const AttrValue& attr : node.attrs) {
    const auto* body = std::get_if<std::shared_ptr<const Graph>>(&attr);
    if (body == nullptr || *body == nullptr) continue;
    std::vector<std::string> inner;
    for (const Node& part : (*body)->nodes()) {
      if (!part.op->traits.leaf) inner.emplace_back(part.op->name);
    }
    return text(node.op->name, "(", join(inner, ","), ")");
  }
  return std::string(node.op->name);
}

inline std::string what_of(const Graph& graph, const Node& node) {
  std::vector<std::string> ins, outs;
  for (const ValueId in : node.inputs) ins.push_back(to_text(graph.type(in)));
  for (const Result& result : node.results) outs.push_back(to_text(result.type));
  return text(name_of(node), " ", join(ins, " "), " -> ", join(outs, " "));
}

/// Names the calls of a region. A plan keeps the order of the graph's nodes, leaves out views and
/// adds copies and accumulations of its own, so a call is the next node of its op, block and bytes;
/// a call without such a node is one that the plan added.
inline std::vector<Kind> kinds_of(const RegionPlan& region, const Graph& graph) {
  std::vector<Kind> out;
  NodeId next = 0;
  for (const Call& call : region.calls) {
    NodeId id = next;
    const auto same = [&](const Node& node) {
      return node.op == call.op && node.block == call.block &&
             bytes_moved(graph.call(id)) == call.bytes;
    };
    while (id < graph.size() && !same(graph.node(id))) ++id;
    std::string what =
        text(call.op->name, " of ", bytes_text(static_cast<std::int64_t>(call.bytes)));
    if (id < graph.size() && call.when == When::Always) {
      what = what_of(graph, graph.node(id));
      next = id + 1;
    }
    out.push_back({std::string(to_text(region.kind)), std::string(call.op->name), what,
                   any_number(call.block), std::string(call.kernel->name())});
  }
  return out;
}

// ---- Measuring -------------------------------------------------------------------------------

/// A call with addresses and the row that its time belongs to.
struct Timed {
  const Kernel* kernel;
  std::vector<const void*> ins;
  std::vector<void*> outs;
  void* workspace;
  When when;
  std::size_t row;
};

class Steps {
 public:
  Steps(Executor& executor, const std::vector<Graph>& graphs)
      : executor_(executor), program_(executor.plan().program("train")) {
    // Places are offsets; any state tells where the arena begins.
    const StatePlan& state = executor.plan().states.at(0);
    arena_ = executor.state(state.state.path).data() - state.place.offset;
    std::map<Kind, std::size_t> row_of;
    for (std::size_t r = 0; r < program_.regions.size(); ++r) {
      const RegionPlan& region = program_.regions[r];
      const std::vector<Kind> kinds = kinds_of(region, graphs.at(r));
      for (std::size_t i = 0; i < kinds.size(); ++i) {
        const Call& call = region.calls[i];
        const auto [found, fresh] = row_of.try_emplace(kinds[i], rows_.size());
        if (fresh) rows_.push_back({kinds[i], call.flops, call.bytes, {}, {}});
        calls_[r].push_back(timed(call, found->second));
      }
    }
  }

  /// Runs a step; returns its seconds. Batch inputs lie where the last step had other values, so
  /// they are written anew.
  double run(std::int64_t vocabulary, bool keep) {
    for (const NamedTensor& input : program_.batch) {
      auto* ids = static_cast<std::int32_t*>(executor_.batch("train", input.name));
      for (std::int64_t i = 0; i < input.type.numel(); ++i)
        ids[i] = static_cast<std::int32_t>((i * 7919 + 13) % vocabulary);
    }
    std::vector<double> spent(rows_.size(), 0);
    const double begin = now();
    for (const Action& action : program_.actions) {
      for (const Timed& call : calls_[static_cast<std::size_t>(action.region)]) {
        if (call.when != When::Always && (call.when == When::First) != (action.microbatch == 0))
          continue;
        const double start = now();
        call.kernel->run({call.ins.data(), call.outs.data(), call.workspace, action.microbatch});
        const double seconds = now() - start;
        if (keep) rows_[call.row].seconds.push_back(seconds);
        spent[call.row] += seconds;
      }
    }
    const double seconds = now() - begin;
    outside_ = seconds - std::accumulate(spent.begin(), spent.end(), 0.0);
    for (std::size_t r = 0; keep && r < rows_.size(); ++r) rows_[r].per_step.push_back(spent[r]);
    return seconds;
  }

  const std::vector<Row>& rows() const { return rows_; }
  /// Seconds of the last step that were spent in no call: the clock, and other programs.
  double outside() const { return outside_; }

 private:
  std::byte* address(const Place& place) const {
    const bool work = place.section == Place::Section::Work;
    return arena_ + place.offset + (work ? executor_.plan().state_bytes : 0);
  }
  Timed timed(const Call& call, std::size_t row) const {
    Timed out{call.kernel.get(), {}, {}, address(call.workspace), call.when, row};
    for (const Place& in : call.ins) out.ins.push_back(address(in));
    for (const Place& place : call.outs) out.outs.push_back(address(place));
    return out;
  }

  Executor& executor_;
  const ProgramPlan& program_;
  std::byte* arena_ = nullptr;
  std::vector<Row> rows_;
  double outside_ = 0;
  std::array<std::vector<Timed>, 4> calls_;
};

/// Compiles the train step of `config`, which is complete, and runs it `config.steps` times after
/// once unmeasured.
inline Report measure(const RunConfig& config) {
  const auto device = make_cpu_device({static_cast<int>(config.threads), -1});
  const Graph step =
      train_step(config.model, config.optimizer, config.global_batch_size, config.model.context);
  std::vector<Graph> regions;  // as they are lowered: what the last pass before that left
  CompileOptions options;
  options.observe = [&](const std::string& program, const std::string&,
                        const std::vector<const Graph*>& graphs, double) {
    if (program != "train" || graphs.size() < 2) return;
    regions.clear();
    for (const Graph* graph : graphs) regions.push_back(*graph);
  };
  Executor executor(compile({{"init", initialise(step), one_device(1)},
                             {"train", step, one_device(config.micro_batches())}},
                            *device, options),
                    *device);
  executor.run("init");
  Steps steps(executor, regions);
  steps.run(config.model.vocabulary, false);
  Report out;
  for (std::int64_t i = 0; i < config.steps; ++i) {
    out.steps.push_back(steps.run(config.model.vocabulary, true));
    out.outside.push_back(steps.outside());
  }
  out.rows = steps.rows();
  // Rows of calls that this number of micro-batches never makes.
  std::erase_if(out.rows, [](const Row& row) { return row.seconds.empty(); });
  std::sort(out.rows.begin(), out.rows.end(),
            [](const Row& a, const Row& b) { return median(a.per_step) > median(b.per_step); });
  out.flops = executor.plan().program("train").flops;
  out.device = device->name();
  return out;
}

}  // namespace bench
