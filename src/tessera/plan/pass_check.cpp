#include "tessera/plan/pass_check.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tessera/base/format.h"
#include "tessera/base/hash.h"
#include "tessera/ir/builder.h"
#include "tessera/passes/interpret_program.h"
#include "tessera/plan/input_ranges.h"

namespace tessera {

namespace {

constexpr double kAllowed = 1e-6;
/// What an interpreter spends on a number beside its arithmetic, in operations.
constexpr double kPerNumber = 100;

/// Numbers from 0 to 1, the same for the same name.
class RandomNumbers {
 public:
  explicit RandomNumbers(std::string_view name) : state_(hash64(name)) {}
  double operator()() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 40) * 0x1p-24;
  }

 private:
  std::uint64_t state_;
};

/// Parameters from -0.5 to 0.5, moments of optimizers above 0 (those that are divided by), counters
/// and scales as a run begins.
HostTensor random_state(const State& state, const TensorType& type) {
  HostTensor out(TensorType{type.dtype, type.shape, {}});
  const bool drawn = is_float(type.dtype) && !is_setting(state.role);
  RandomNumbers random(state.role == Role::Copy ? parameter_path(state) : state.path);
  for (std::int64_t i = 0; i < out.numel(); ++i)
    out.set(i, !drawn                       ? state.init.value
               : state.role == Role::Moment ? 0.1 + random()
                                            : random() - 0.5);
  return out;
}

/// Floats from -1 to 1; ids and labels of the numbers that they may have, else 0 and 1.
HostTensor random_batch(const std::string& name, const TensorType& type,
                        const InputRanges& ranges) {
  HostTensor out(TensorType{type.dtype, type.shape, {}});
  const auto range = ranges.find(name);
  const std::int64_t known = range == ranges.end() ? 0 : range->second.values;
  const double values = known == 0 ? 2 : static_cast<double>(known);
  RandomNumbers random(name);
  for (std::int64_t i = 0; i < out.numel(); ++i)
    out.set(i, is_float(type.dtype) ? 2 * random() - 1 : std::floor(random() * values));
  return out;
}

Bindings random_inputs(const Graph& graph) {
  Bindings out;
  const InputRanges ranges = input_ranges(graph);
  for (const State& state : graph.states())
    out.states.emplace(state.path, random_state(state, graph.type(state.value)));
  for (const Node& node : graph.nodes()) {
    if (node.op != &kBatch) continue;
    const std::string& name = std::get<std::string>(node.attrs[0]);
    out.batch.emplace(name, random_batch(name, node.type(), ranges));
  }
  return out;
}

std::string name_of(const Output& output) {
  return output.kind == Output::Kind::Next ? "next " + output.name : output.name;
}

bool leaves_program(const Output& output) {
  return output.kind == Output::Kind::Next || output.kind == Output::Kind::Metric;
}

/// The largest finite number, and the first place where two tensors differ; -1: nowhere.
struct Difference {
  std::int64_t at = -1;
  double largest = 0;
};

Difference difference(const HostTensor& a, const HostTensor& b) {
  Difference out;
  for (std::int64_t i = 0; i < a.numel(); ++i)
    if (std::isfinite(a.at(i))) out.largest = std::max(out.largest, std::abs(a.at(i)));
  for (std::int64_t i = 0; i < a.numel() && out.at < 0; ++i) {
    const double x = a.at(i), y = b.at(i);
    const bool same = std::isfinite(x) ? std::abs(x - y) <= kAllowed * std::max(out.largest, 1e-30)
                      : std::isnan(x)  ? std::isnan(y)
                                       : x == y;
    if (!same) out.at = i;
  }
  return out;
}

bool same(const std::vector<HostTensor>& a, const std::vector<HostTensor>& b) {
  return std::ranges::equal(a, b, [](const HostTensor& x, const HostTensor& y) {
    return x.numel() == y.numel() && difference(x, y).at < 0;
  });
}

}  // namespace

double interpreted_operations(const Graph& graph, std::int64_t ranks) {
  double out = 0;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (node.op->flops != nullptr) out += node.op->flops(graph.call(id));
    for (const Result& result : node.results)
      out += kPerNumber * static_cast<double>(ranks) * static_cast<double>(result.type.numel());
  }
  return out;
}

void PassCheck::require_small(const std::string& program, const Graph& source, std::int64_t ranks) {
  const double operations = interpreted_operations(source, ranks);
  require(operations <= kMostChecked,
          "--check interprets the program after each pass, and program '", program, "' has ",
          format("%.2g", operations), " operations on ", ranks, ranks == 1 ? " rank" : " ranks",
          "; the limit is ", format("%.2g", kMostChecked),
          ": check a smaller model of the same kind, or a smaller batch (--layers, --width, "
          "--context, --vocab-size, --global-batch-size)");
}

void PassCheck::begin(const Graph& source, int stages, std::uint64_t seed) {
  inputs_ = random_inputs(source);
  how_ = {};
  how_.f64 = true;
  how_.whole = true;
  how_.seed = seed;
  stages_ = static_cast<std::size_t>(stages);
  of_stages_.clear();
  before_ = numbers_of(source, inputs_, how_);
  ++programs_;
}

void PassCheck::after(const std::string&, const Graph& graph) {
  compare(numbers_of(graph, inputs_, how_));
}

void PassCheck::after(const std::string& pass, const Program& program) {
  std::vector<Program>& stages = of_stages_[pass];
  stages.push_back(program);
  if (stages.size() < stages_) return;
  Interpretation how = how_;
  how.whole = false;
  compare(numbers_of(stages, inputs_, how));
  of_stages_.erase(pass);
}

PassCheck::Numbers PassCheck::numbers_of(const Graph& graph, const Bindings& inputs,
                                         Interpretation how) {
  Numbers out;
  how.observe = [&](NodeId id, const std::vector<HostTensor>& results) {
    for (const HostTensor& result : results) out.seen.push_back({describe(graph, id), {result}});
  };
  const std::vector<HostTensor> values = interpret(graph, inputs, how);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Output& output = graph.outputs()[i];
    out.outputs.emplace(name_of(output), values[i]);
    out.nodes.emplace(name_of(output), describe(graph, output.value.node));
  }
  return out;
}

PassCheck::Numbers PassCheck::numbers_of(const std::vector<Program>& stages, const Bindings& inputs,
                                         const Interpretation& how) {
  Numbers out;
  out.outputs =
      interpret_stages(stages, inputs, how,
                       [&](const Graph& graph, NodeId id, const std::vector<HostTensor>& by_rank) {
                         out.seen.push_back({describe(graph, id), by_rank});
                       });
  for (const Program& program : stages) {
    for (const Region& region : program.regions) {
      for (const Output& output : region.graph.outputs())
        if (leaves_program(output))
          out.nodes.emplace(name_of(output), describe(region.graph, output.value.node));
    }
  }
  return out;
}

void PassCheck::compare(Numbers after) {
  ++passes_;
  for (const auto& [name, was] : before_.outputs) {
    const auto found = after.outputs.find(name);
    if (found == after.outputs.end())
      throw Error(Fault::Numerics, text("after this pass the program does not compute ", name))
          .with("please report this with the command");
    const HostTensor& is = found->second;
    check(is.numel() == was.numel(), name, " has ", is.type(), " after a pass, ", was.type(),
          " before it");
    const Difference differs = difference(was, is);
    if (differs.at < 0) continue;
    Error error(Fault::Numerics,
                text("a pass changed numbers: element ", differs.at, " of ", name, " ", was.shape(),
                     " is ", format("%.9g", is.at(differs.at)), " after it and ",
                     format("%.9g", was.at(differs.at)), " before it (the largest is ",
                     format("%.3g", differs.largest), "); please report this with the command"));
    error = error.with(after.nodes.at(name));
    const auto fresh = std::ranges::find_if(after.seen, [&](const Seen& each) {
      return std::ranges::none_of(
          before_.seen, [&](const Seen& known) { return same(known.by_rank, each.by_rank); });
    });
    if (fresh != after.seen.end())
      error = error.with("first node with a new value: " + fresh->node);
    throw error;
  }
  before_ = std::move(after);
}

}  // namespace tessera
