#include "tessera/passes/compute_in.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tessera/base/index.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/result_dtype.h"
#include "tessera/passes/rewrite.h"

namespace tessera {

namespace {

class ComputeIn {
 public:
  ComputeIn(const Graph& graph, const Precision& precision, const IsFrozen& frozen)
      : graph_(graph), dtype_(precision.compute), sums_(precision.sums), rewrite_(graph) {
    for (const State& state : graph.states()) {
      if (graph.type(state.value).dtype != DType::F32) continue;
      const bool parameter = state.role == Role::Parameter,
                 fixed =
                     state.role == Role::Reference || (parameter && frozen && frozen(state.path)),
                 narrow = fixed && is_16_bit(dtype_);
      if (parameter && !narrow) parameters_.emplace(state.value.node, &state);
      if (state.role == Role::Cache || narrow) narrow_.insert(state.value.node);
      state_named_.emplace(state.path, state.value.node);
    }
  }

  Graph run() {
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.node(id);
      if (narrow_.contains(id)) {
        // Also the keys and values that generation keeps of earlier tokens are stored in 16 bits.
        const auto dtype = static_cast<std::size_t>(node.op->attrs.find("dtype"));
        rewrite_.copy_retyped(id, {}, node.attrs.with(dtype, dtype_));
      } else if (node.op->traits.leaf) {
        rewrite_.copy(id);
      } else {
        compute(id);
      }
    }
    for (const Output& output : graph_.outputs()) keep_type(output);
    return rewrite_.finish();
  }

 private:
  Builder& to() { return rewrite_.to(); }

  void set_mark(const Node& node) {
    to().set_mark({node.block, node.phase, node.stage, node.where, node.recompute});
  }

  void compute(NodeId id) {
    const Node& node = graph_.node(id);
    set_mark(node);
    std::vector<Value> ins;
    for (const ValueId input : node.inputs) ins.push_back(read(input, node.phase));
    const DType wanted = wanted_by(node, ins);
    ValueIds inputs;
    for (std::size_t i = 0; i < ins.size(); ++i)
      inputs.push_back(in_dtype(ins[i], operand_dtype(node, ins[i], i, wanted)).id());
    rewrite_.copy_retyped(id, std::move(inputs), attrs_of(node, wanted));
  }

  /// Sums whose result has a dtype of its own are not rounded where they are parts of gradients.
  Attrs attrs_of(const Node& node, DType wanted) const {
    const bool asks =
        is_16_bit(wanted) && sums_ != wanted && sums_gradient(node) && says_result(node);
    return asks ? node.attrs.with(node.attrs.size(), sums_) : node.attrs;
  }

  static bool says_result(const Node& node) {
    return node.op->attrs.find(kResultDType.name) == static_cast<int>(node.attrs.size());
  }

  /// True of what the gradient of a parameter is added up from.
  bool sums_gradient(const Node& node) const {
    return node.op == &kGradient || (node.cotangent && is_weight(node.cotangent->of.node));
  }

  /// A parameter, or another view of its elements.
  bool is_weight(NodeId id) const {
    const Node& node = graph_.node(id);
    return parameters_.contains(id) || (node.op->view != nullptr && is_weight(node.inputs[0].node));
  }

  /// As forward and backward read it: parameters by their copies.
  Value read(ValueId input, Phase phase) {
    const bool copied = phase != Phase::Update && parameters_.contains(input.node);
    return copied ? copy_of(input.node) : rewrite_(input);
  }

  /// The floats in which a node computes.
  DType wanted_by(const Node& node, const std::vector<Value>& ins) const {
    if (node.op->arithmetic == Arithmetic::FromAny) return ins[0].dtype();
    if (node.phase == Phase::Update) return DType::F32;
    if (sums_gradient(node) && !says_result(node)) return sums_;
    switch (node.op->arithmetic) {
      case Arithmetic::Narrow: return dtype_;
      case Arithmetic::Wide: return DType::F32;
      case Arithmetic::FromAny:
      case Arithmetic::AsOperands: break;
    }
    const bool narrow =
        std::ranges::any_of(ins, [](const Value& in) { return is_16_bit(in.dtype()); });
    return narrow ? dtype_ : DType::F32;
  }

  DType operand_dtype(const Node& node, const Value& in, std::size_t i, DType wanted) const {
    const bool statistic = (node.op->statistics >> i & 1) != 0;
    if (is_16_bit(in.dtype())) return wanted;
    const bool narrowed = in.dtype() == DType::F32 && in.ndim() > 0 && !statistic;
    return narrowed ? wanted : in.dtype();
  }

  Value in_dtype(Value value, DType dtype) {
    if (value.dtype() == dtype) return value;
    Value& known = casts_[{value.id(), dtype, to().mark().phase}];
    if (!known.valid()) known = cast(value, dtype);
    return known;
  }

  /// The copy of a parameter, a state beside it.
  Value copy_of(NodeId parameter) {
    Value& known = copies_[parameter];
    if (known.valid()) return known;
    const State& state = *parameters_.at(parameter);
    const Node& node = graph_.node(parameter);
    const Mark here = to().mark();
    to().set_mark({node.block, node.phase, node.stage, node.where});
    const std::size_t block = node.block.empty() ? 0 : node.block.str().size() + 1;
    known = to().state(text(state.path.substr(block), ".", dtype_), {dtype_, node.type().shape, {}},
                       Role::Copy, {}, node.where);
    to().set_mark(here);
    return known;
  }

  /// The f32 state whose next value it is; -1: of none.
  NodeId updated_by(const Output& output) const {
    const auto state = state_named_.find(output.name);
    return output.kind == Output::Kind::Next && state != state_named_.end() ? state->second : -1;
  }

  DType kept_dtype(const Output& output) const {
    return narrow_.contains(updated_by(output)) ? dtype_ : graph_.type(output.value).dtype;
  }

  /// Whoever reads an output finds the type that the model gave it; what becomes of a parameter
  /// becomes of its copy.
  void keep_type(const Output& output) {
    const Node& node = graph_.node(output.value.node);
    set_mark(node);
    const Value value = in_dtype(rewrite_(output.value), kept_dtype(output));
    rewrite_.map(output.value, value);
    const auto copy = copies_.find(updated_by(output));
    if (copy == copies_.end()) return;
    to().set_mark({node.block, Phase::Update, node.stage, node.where});
    to().next(copy->second, cast(value, dtype_));
  }

  const Graph& graph_;
  const DType dtype_, sums_;
  Rewrite rewrite_;
  std::map<NodeId, const State*> parameters_;  // in f32
  std::set<NodeId> narrow_;                    // states of f32 that are stored in 16 bits
  std::unordered_map<std::string_view, NodeId> state_named_;
  std::map<NodeId, Value> copies_;
  std::map<std::tuple<ValueId, DType, Phase>, Value> casts_;
};

}  // namespace

Graph compute_in(const Graph& graph, const Precision& precision, const IsFrozen& frozen) {
  check(is_16_bit(precision.compute) || precision.compute == DType::F32,
        "a program cannot be computed in ", precision.compute, " but in bf16, f16 or f32");
  check(precision.sums == DType::F32 || precision.sums == precision.compute,
        "gradients cannot be added up in ", precision.sums, " but in f32 or ", precision.compute);
  return ComputeIn(graph, precision, frozen).run();
}

}  // namespace tessera
