#include "tessera/passes/grad.h"

#include <algorithm>
#include <map>
#include <memory>

#include "tessera/ir/blocks.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/reduce.h"

namespace tessera {

namespace {

class Backward {
 public:
  Backward(Value loss, const std::vector<Value>& parameters)
      : builder_(loss.builder()),
        end_(loss.id().node + 1),
        needed_(static_cast<std::size_t>(end_), false) {
    for (const Value& parameter : parameters) {
      require(parameter.id().node < end_, "gradients: ", describing(graph(), parameter.id().node),
              " is declared after the loss, so the loss cannot depend on it");
      needed_[static_cast<std::size_t>(parameter.id().node)] = true;
    }
    for (NodeId id = 0; id < end_; ++id) {
      const Node& node = graph().node(id);
      const bool reads =
          std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return needs(v); });
      const bool passes = is_float(node.type().dtype) && !node.op->traits.stops_gradient;
      if (reads && passes) needed_[static_cast<std::size_t>(id)] = true;
    }
  }

  std::vector<Value> run(Value loss, const std::vector<Value>& parameters) {
    require(loss.ndim() == 0 && is_float(loss.dtype()), "gradients: the loss is ", loss.type(),
            "; reduce it to one float, for example by sum_all");
    const Mark outer = builder_.mark();
    enter(loss.id().node);
    contribute(loss.id(), builder_.constant(1.0, loss.dtype()));
    std::map<NodeId, Value> found;
    for (NodeId id = loss.id().node; id >= 0; --id) {
      if (!needed_[static_cast<std::size_t>(id)]) continue;
      if (graph().node(id).op == &kState) {
        enter(id);
        found.emplace(id, total({id, 0}));
      } else if (!graph().node(id).op->traits.leaf) {
        differentiate(id);
      }
    }
    std::vector<Value> out;
    for (const Value& parameter : parameters) {
      enter(parameter.id().node);
      Value dp = found[parameter.id().node];
      if (!dp.valid())
        dp = broadcast_to(builder_.constant(0.0, parameter.dtype()), parameter.shape());
      const std::string path = std::get<std::string>(builder_.node(parameter).attrs[0]);
      out.push_back(gradient(dp, path));
      builder_.set_cotangent(out.back(), {parameter.id(), true});
    }
    builder_.set_mark(outer);
    return out;
  }

 private:
  const Graph& graph() const { return builder_.so_far(); }
  bool needs(ValueId v) const { return v.node < end_ && needed_[static_cast<std::size_t>(v.node)]; }

  /// New nodes belong to the block of `id`.
  void enter(NodeId id) {
    const Node& node = graph().node(id);
    builder_.set_mark({node.block, Phase::Backward, node.stage, node.where});
  }

  void contribute(ValueId of, Value value) {
    check(value.type() == graph().type(of), "gradient of ", describing(graph(), of.node), " is ",
          value.type(), ", not ", graph().type(of));
    contributions_[of].push_back(value);
    mark(value, of, false);
  }

  /// Only nodes made here are marked, and only once: a cotangent that is passed on unchanged keeps
  /// its first meaning.
  void mark(Value value, ValueId of, bool final) {
    const Node& node = builder_.node(value);
    if (node.phase != Phase::Backward || value.id().node < end_) return;
    if (node.cotangent && node.cotangent->of != of) return;
    builder_.set_cotangent(value, {of, final});
  }

  /// The cotangent of a value: the sum of its contributions, nearest to the loss first; empty if it
  /// has none.
  Value total(ValueId of) {
    const auto found = contributions_.find(of);
    if (found == contributions_.end()) return {};
    const Mark here = builder_.mark();
    Value sum;
    for (const Value& block : sums_of_blocks(of, found->second)) {
      builder_.set_mark(here);
      sum = sum.valid() ? plus(sum, block, of) : block;
    }
    builder_.set_mark(here);
    mark(sum, of, true);
    contributions_.erase(found);
    return sum;
  }

  Value plus(Value a, Value b, ValueId of) {
    const Value sum = a + b;
    mark(sum, of, false);
    return sum;
  }

  /// Neighbouring contributions that one block makes are summed there: one value leaves it.
  std::vector<Value> sums_of_blocks(ValueId of, const std::vector<Value>& contributions) {
    std::vector<Value> out;
    std::string last;
    for (const Value& value : contributions) {
      const std::string block(block_of(builder_.node(value).block));
      if (out.empty() || block.empty() || block != last) {
        out.push_back(value);
      } else {
        builder_.set_mark(
            {block, Phase::Backward, builder_.node(value).stage, builder_.mark().where});
        out.back() = plus(out.back(), value, of);
      }
      last = block;
    }
    return out;
  }

  void differentiate(NodeId id) {
    const Node node = graph().node(id);  // a copy: the builder's list grows
    enter(id);
    std::vector<Value> ins, outs, douts;
    for (const ValueId input : node.inputs) ins.push_back({builder_, input});
    bool any = false;
    for (int i = 0; i < static_cast<int>(node.results.size()); ++i) {
      outs.push_back({builder_, {id, i}});
      douts.push_back(total({id, i}));
      any = any || douts.back().valid();
    }
    if (!any) return;
    require(node.op->grad != nullptr, "gradients: ", node.op->name,
            " has no gradient; no parameter may be above it\n    ", describing(graph(), id));
    std::vector<Value> dins(ins.size());
    const auto wants = std::make_unique<bool[]>(ins.size());
    for (std::size_t i = 0; i < ins.size(); ++i) wants[i] = needs(node.inputs[i]);
    OpCall::Types in_types, out_types;
    std::vector<TensorType> types;  // owned: growing the graph moves its nodes
    types.reserve(ins.size() + outs.size());
    for (const Value& value : ins) in_types.push_back(&types.emplace_back(value.type()));
    for (const Value& value : outs) out_types.push_back(&types.emplace_back(value.type()));
    const OpCall call(*node.op, std::move(in_types), node.attrs, std::move(out_types));
    GradCall grad(call, ins, outs, douts, dins, {wants.get(), ins.size()});
    node.op->grad(grad);
    for (std::size_t i = 0; i < ins.size(); ++i) {
      // An f32 scalar beside 16-bit floats gets their cotangent.
      if (wants[i] && dins[i].valid()) contribute(node.inputs[i], cast(dins[i], ins[i].dtype()));
    }
  }

  Builder& builder_;
  NodeId end_;                // nodes from here on are ours
  std::vector<bool> needed_;  // true where the value depends on a parameter
  std::map<ValueId, std::vector<Value>> contributions_;
};

}  // namespace

std::vector<Value> gradients(Value loss, const std::vector<Value>& parameters) {
  return Backward(loss, parameters).run(loss, parameters);
}

}  // namespace tessera
