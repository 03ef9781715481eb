#include "tessera/ops/interpret.h"

#include <algorithm>

#include "tessera/base/hash.h"
#include "tessera/ir/builder.h"
#include "tessera/ops/reference.h"

namespace tessera {

namespace {

/// Layouts are a device's affair: here everything is plain. In f64 no float is rounded to less.
TensorType stored(TensorType type, bool f64) {
  type.layout = {};
  if (f64 && is_float(type.dtype)) type.dtype = DType::F64;
  return type;
}

HostTensor in_dtype(HostTensor tensor, DType dtype) {
  return tensor.dtype() == dtype ? std::move(tensor) : tensor.cast(dtype);
}

RefOperand operand(const Result& result, const Mesh& mesh, const Interpretation& how,
                   HostTensor& data) {
  RefOperand out{data.type(), data.bytes().data(), Shape::of(result.type.ndim(), 0),
                 result.type.shape, result.type.shape};
  if (how.within != nullptr) {
    for (int i = 0; i < std::min(out.global.ndim(), how.within->global.ndim()); ++i) {
      const int d = out.global.ndim() - 1 - i;
      if (out.global[d] != how.within->type.shape.back(i)) continue;
      out.offset[d] = how.within->offset.back(i);
      out.valid[d] = how.within->valid.back(i);
      out.global[d] = how.within->global.back(i);
    }
    return out;
  }
  if (!result.placement || how.whole) return out;
  // Not by the shapes: a dim of size 1 keeps its size where it is sharded, and most ranks hold none
  // of it.
  const auto& dims = result.placement->sharding.dims;
  if (std::all_of(dims.begin(), dims.end(), [](const auto& axes) { return axes.empty(); }))
    return out;
  out.global = result.logical;
  for (int d = 0; d < out.global.ndim(); ++d) {
    const Extent e = extent(
        out.global[d], result.placement->sharding.dims[static_cast<std::size_t>(d)], mesh, how.at);
    out.offset[d] = e.start;
    out.valid[d] = e.valid;
  }
  return out;
}

/// Of ops that act along one axis.
std::int64_t coordinate_of(const Node& node, const Mesh& mesh, const Coordinates& at) {
  const int i = node.op->attrs.find("axes");
  if (i < 0) return 0;
  return coordinate(mesh, at, std::get<std::string>(node.attrs[static_cast<std::size_t>(i)]));
}

std::uint64_t key_of(const Node& node, std::uint64_t seed) {
  const int i = node.op->attrs.find("key");
  return i < 0 ? 0
               : random_key(seed, std::get<std::string>(node.attrs[static_cast<std::size_t>(i)]));
}

}  // namespace

std::vector<HostTensor> interpret_leaf(const Graph& graph, NodeId id, const Bindings& inputs,
                                       const Interpretation& how) {
  const Node& node = graph.node(id);
  const TensorType type = stored(node.type(), how.f64);
  if (node.op == &kConstant) {
    HostTensor out(type);
    out.set(0, std::get<double>(node.attrs[0]));
    return {out};
  }
  const auto& bound = node.op == &kBatch   ? inputs.batch
                      : node.op == &kState ? inputs.states
                                           : inputs.slots;
  const std::string& name = std::get<std::string>(node.attrs[0]);
  const auto found = bound.find(name);
  require(found != bound.end(), "interpret: ", node.op->name, " '", name, "' is not bound");
  require(found->second.shape() == type.shape, "interpret: ", node.op->name, " '", name, "' is ",
          type, ", bound to ", found->second.type());
  return {in_dtype(found->second, type.dtype)};
}

std::vector<HostTensor> interpret_node(const Graph& graph, NodeId id,
                                       std::vector<HostTensor> in_data, const Interpretation& how) {
  const Node& node = graph.node(id);
  std::vector<HostTensor> out_data;
  std::vector<RefOperand> ins, outs;
  for (HostTensor& in : in_data) {
    const DType wide = computed_in(in.dtype());
    in = in_dtype(std::move(in), wide);
  }
  for (const Result& result : node.results) {
    TensorType type = stored(result.type, how.f64);
    type.dtype = computed_in(type.dtype);
    out_data.emplace_back(std::move(type));
  }
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    ins.push_back(operand(graph.result(node.inputs[i]), graph.mesh(), how, in_data[i]));
  for (std::size_t i = 0; i < node.results.size(); ++i)
    outs.push_back(operand(node.results[i], graph.mesh(), how, out_data[i]));
  const OpCall call = graph.call(id);
  const RefFunction function = how.f64 ? node.op->reference.f64 : node.op->reference.f32;
  check(function != nullptr, node.op->name, " has no reference kernel");
  RefCall ref(call, ins, outs, key_of(node, how.seed));
  ref.seed = how.seed;
  ref.coordinate = coordinate_of(node, graph.mesh(), how.at);
  try {
    function(ref);
  } catch (const Error& error) {
    throw error.with(describe(graph, id));
  }
  for (std::size_t i = 0; i < node.results.size(); ++i)
    out_data[i] = in_dtype(std::move(out_data[i]), stored(node.results[i].type, how.f64).dtype);
  return out_data;
}

namespace {

class Interpreter {
 public:
  Interpreter(const Graph& graph, const Bindings& inputs, const Interpretation& how)
      : graph_(graph),
        inputs_(inputs),
        how_(how),
        values_(graph.nodes().size()),
        uses_(graph.nodes().size(), 0) {
    for (const Node& node : graph.nodes()) {
      for (const ValueId input : node.inputs) ++uses_[static_cast<std::size_t>(input.node)];
    }
    for (const Output& output : graph.outputs())
      ++uses_[static_cast<std::size_t>(output.value.node)];
  }

  std::vector<HostTensor> run() {
    for (NodeId id = 0; id < graph_.size(); ++id) {
      auto& results = values_[static_cast<std::size_t>(id)];
      results =
          graph_.node(id).op->traits.leaf ? interpret_leaf(graph_, id, inputs_, how_) : compute(id);
      if (how_.observe) how_.observe(id, results);
      for (const ValueId input : graph_.node(id).inputs) {
        if (--uses_[static_cast<std::size_t>(input.node)] == 0)
          values_[static_cast<std::size_t>(input.node)].clear();
      }
    }
    std::vector<HostTensor> out;
    for (const Output& output : graph_.outputs()) out.push_back(value(output.value));
    return out;
  }

 private:
  HostTensor& value(ValueId v) {
    return values_[static_cast<std::size_t>(v.node)].at(static_cast<std::size_t>(v.index));
  }

  std::vector<HostTensor> compute(NodeId id) {
    std::vector<HostTensor> ins;
    for (const ValueId input : graph_.node(id).inputs) ins.push_back(value(input));
    return interpret_node(graph_, id, std::move(ins), how_);
  }

  const Graph& graph_;
  const Bindings& inputs_;
  const Interpretation& how_;
  std::vector<std::vector<HostTensor>> values_;
  std::vector<int> uses_;
};

}  // namespace

std::vector<HostTensor> interpret(const Graph& graph, const Bindings& inputs,
                                  const Interpretation& how) {
  return Interpreter(graph, inputs, how).run();
}

std::vector<HostTensor> evaluate(const OpDef& op, const std::vector<HostTensor>& ins,
                                 const Attrs& attrs, const Interpretation& how) {
  Builder builder;
  Bindings inputs;
  std::vector<Value> values;
  for (std::size_t i = 0; i < ins.size(); ++i) {
    const std::string name = text("in", i);
    values.push_back(builder.batch(name, ins[i].type()));
    inputs.batch.emplace(name, ins[i]);
  }
  const std::vector<Value> results = builder.add_all(op, values, attrs);
  for (std::size_t i = 0; i < results.size(); ++i)
    builder.output(Output::Kind::Metric, text("out", i), results[i]);
  return interpret(builder.finish(), inputs, how);
}

}  // namespace tessera
