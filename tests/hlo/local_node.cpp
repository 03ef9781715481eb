#include "hlo/local_node.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "tessera/base/hash.h"
#include "tessera/base/index.h"
#include "tessera/ir/builder.h"
#include "tessera/ir/strategy.h"
#include "tessera/ops/interpret_ranks.h"

namespace tessera::test {

namespace {

/// Where only numbers above 0 make sense: denominators, variances, what is drawn a root of.
bool is_positive(const Node& node, int operand) {
  const std::string_view op = node.op->name;
  const std::set<int> of_adam = {2, 5, 6, 7}, of_lamb = {2, 4, 5, 6};
  return op == "log" || op == "sqrt" || op == "rsqrt" || op == "power" || op == "fused" ||
         (op == "adam" && of_adam.contains(operand)) ||
         (op == "lamb_direction" && of_lamb.contains(operand)) ||
         (op == "layer_norm_grad" && operand == 4) || (op == "rms_norm_grad" && operand == 3) ||
         (op == "div" && operand == 1);
}

/// Ids go a little beyond what they name.
std::int64_t most_ids(const LocalNode& of) {
  std::int64_t out = 4;
  for (const Node& node : of.graph->nodes()) {
    for (const Result& result : node.results) {
      for (const std::int64_t size : result.logical) out = std::max(out, size);
    }
  }
  return out + 2;
}

double random_number(const LocalNode& of, int operand, DType dtype, std::mt19937_64& rng) {
  const Node& node = of.node();
  if (dtype == DType::Bool) return rng() % 10 < 7;
  if (!is_float(dtype))
    return static_cast<double>(rng() % static_cast<std::uint64_t>(most_ids(of))) - 2;
  const double x = std::normal_distribution<double>()(rng);
  if (node.op->name == "attention_grad" && operand == 5) return std::abs(x) + 2;
  return is_positive(node, operand) ? std::abs(x) + 0.1 : x;
}

Coordinates place_of(const LocalNode& node, std::int64_t rank) {
  Coordinates out = coordinates_of(node.graph->mesh(), rank);
  out[std::string(kMicrobatchAxis)] = node.microbatch;
  return out;
}

/// What of a rank's place decides which term of a partial value it has.
std::uint64_t term_of(const Result& result, const Mesh& mesh, const Coordinates& where) {
  std::uint64_t out = 0;
  for (const Partial& partial : result.placement->sharding.partial)
    out = out * 1000 + static_cast<std::uint64_t>(coordinate(mesh, where, partial.axis)) + 1;
  return out;
}

Result with_placement(Result result) {
  if (result.placement) return result;
  result.placement = Placement{Sharding::replicated(result.type.ndim())};
  result.logical = result.type.shape;
  return result;
}

/// Calls f(element) for those inside the logical extent.
template <typename F>
void each_real(const Result& result, const Mesh& mesh, const Coordinates& where, F&& f) {
  std::vector<std::int64_t> valid;
  for (int d = 0; d < result.type.ndim(); ++d)
    valid.push_back(
        extent(result.logical[d], result.placement->sharding.dims[at(d)], mesh, where).valid);
  Shape index = Shape::of(result.type.ndim(), 0);
  for (std::int64_t i = 0; i < result.type.numel(); ++i) {
    bool real = true;
    for (int d = 0; d < index.ndim(); ++d) real = real && index[d] < valid[at(d)];
    if (real) f(i);
    for (int d = index.ndim(); d-- > 0;) {
      if (++index[d] < result.type.shape[d]) break;
      index[d] = 0;
    }
  }
}

}  // namespace

LocalNode node_alone(const Graph& graph, NodeId id, const std::optional<Attrs>& attrs) {
  const Node& node = graph.node(id);
  Builder builder(Form::Local, graph.mesh());
  std::map<ValueId, ValueId> known;
  ValueIds inputs;
  for (const ValueId input : node.inputs) {
    if (!known.contains(input))
      known[input] =
          builder.slot(text("in", known.size()), with_placement(graph.result(input))).id();
    inputs.push_back(known.at(input));
  }
  Node copy = node;
  if (attrs) copy.attrs = *attrs;
  copy.cotangent.reset();
  copy.like = copy.remat_of = -1;
  for (Result& result : copy.results) result = with_placement(result);
  const std::vector<Value> outs = builder.copy(std::move(copy), inputs);
  for (std::size_t i = 0; i < outs.size(); ++i)
    builder.output(Output::Kind::Metric, text("out", i), outs[i]);
  LocalNode out{text(node.op->name, node.block.empty() ? "" : text(" of ", node.block)),
                std::make_shared<const Graph>(builder.finish())};
  const std::int64_t times = graph.mesh().size(kMicrobatchAxis);
  out.microbatch = times - 1;
  return out;
}

std::string text_of_node(const LocalNode& of) {
  std::string out = text(of.graph->mesh());
  for (const Node& node : of.graph->nodes()) {
    out += text("\n", node.op->name);
    for (const ValueId input : node.inputs) out += text(" ", input);
    for (std::size_t i = 0; i < node.attrs.size(); ++i) {
      const std::string_view name = node.op->attrs[i].name;
      if (name != "key" && name != "path") out += text(" ", node.attrs[i]);
    }
    for (const Result& result : node.results)
      out += text(" ", result.type, result.logical, *result.placement);
  }
  return out;
}

void fill_operands(LocalNode& of, std::uint64_t seed) {
  const Mesh& mesh = of.graph->mesh();
  of.ins.assign(at(mesh.ranks()), {});
  for (std::int64_t rank = 0; rank < mesh.ranks(); ++rank) {
    const Coordinates where = place_of(of, rank);
    for (NodeId i = 0; i < of.id(); ++i) {
      const Result& result = of.graph->node(i).results[0];
      std::mt19937_64 rng(hash64(text(i, " ", term_of(result, mesh, where)), seed));
      HostTensor whole(result.type.dtype, result.logical);
      for (std::int64_t e = 0; e < whole.numel(); ++e)
        whole.set(e, random_number(of, i, whole.dtype(), rng));
      of.ins[at(rank)].push_back(shard_of(whole, result, mesh, where, Beyond::Zeros));
    }
  }
}

std::vector<std::vector<HostTensor>> reference_results(const LocalNode& of) {
  std::vector<Bindings> inputs;
  for (const std::vector<HostTensor>& ins : of.ins) {
    inputs.emplace_back();
    for (std::size_t i = 0; i < ins.size(); ++i) inputs.back().slots.emplace(text("in", i), ins[i]);
  }
  Interpretation how;
  how.f64 = true;
  how.at[std::string(kMicrobatchAxis)] = of.microbatch;
  return interpret_ranks(*of.graph, inputs, how);
}

Distance distance(const LocalNode& of, const std::vector<std::vector<HostTensor>>& got,
                  const std::vector<std::vector<HostTensor>>& want) {
  Distance out;
  bool narrow = false;
  for (const Node& node : of.graph->nodes()) {
    for (const Result& result : node.results) narrow = narrow || is_16_bit(result.type.dtype);
  }
  for (std::size_t rank = 0; rank < got.size(); ++rank) {
    const Coordinates where = place_of(of, static_cast<std::int64_t>(rank));
    double operands = 0;  // a sum that cancels is as exact as what it adds
    for (const HostTensor& in : of.ins[rank]) {
      for (std::int64_t e = 0; is_float(in.dtype()) && e < in.numel(); ++e)
        operands = std::max(operands, std::abs(in.at(e)));
    }
    for (std::size_t i = 0; i < want[rank].size(); ++i) {
      const HostTensor &mine = got[rank][i], &right = want[rank][i];
      const Result& result = of.node().results[i];
      double scale = operands, off = 0;
      each_real(result, of.graph->mesh(), where, [&](std::int64_t e) {
        const double a = mine.at(e), b = right.at(e);
        const bool both_nan = std::isnan(a) && std::isnan(b);
        if (std::isfinite(b)) scale = std::max(scale, std::abs(b));
        if (a == b || both_nan) return;
        if (!std::isfinite(a) || !std::isfinite(b) || !is_float(result.type.dtype))
          out.wrong = text("rank ", rank, ", result ", i, ", element ", e, " is ", a, ", not ", b);
        else
          off = std::max(off, std::abs(a - b));
      });
      if (off > 0) out.worst = std::max(out.worst, off / scale);
    }
  }
  // f32 as every device; two units of the last of bf16's 8 and of f16's 11 bits.
  const DType dtype = of.node().results[0].type.dtype;
  out.bound = !narrow ? 1e-5 : dtype == DType::F16 ? 0x1p-10 : 0x1p-7;
  return out;
}

}  // namespace tessera::test
