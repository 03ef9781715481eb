#include "tessera/passes/fuse.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>

#include "tessera/ops/collective.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/fused.h"
#include "tessera/passes/rewrite.h"
#include "tessera/passes/simplify.h"

namespace tessera {

namespace {

constexpr std::size_t kMaxNodes = 16;  // so that temporaries of a tile fit the first-level cache
constexpr std::size_t kMaxOperands = 12;

struct Group {
  std::vector<NodeId> nodes;  // ascending
};

class Fuser {
 public:
  explicit Fuser(const Graph& graph)
      : rewrite_(graph),
        users_(graph),
        group_of_(graph.nodes().size(), -1),
        is_output_(graph.nodes().size(), false) {
    for (const Output& output : graph.outputs())
      is_output_[static_cast<std::size_t>(output.value.node)] = true;
  }

  Graph run() {
    const Graph& from = rewrite_.from();
    for (NodeId id = 0; id < from.size(); ++id) {
      if (fusable(id)) join(id);
    }
    for (NodeId id = 0; id < from.size(); ++id) {
      const int g = group_of_[static_cast<std::size_t>(id)];
      const Group* group = g < 0 ? nullptr : &groups_[static_cast<std::size_t>(g)];
      if (group == nullptr || group->nodes.size() == 1) {
        rewrite_.copy(id);
      } else if (group->nodes.back() == id) {
        emit(*group);
      }
    }
    return rewrite_.finish();
  }

 private:
  const Node& node(NodeId id) const { return rewrite_.from().node(id); }

  bool fusable(NodeId id) const {
    const Node& n = node(id);
    return may_be_fused(*n.op) && n.results.size() == 1 && n.type().ndim() > 0 &&
           (n.type().dtype == DType::F32 || n.type().dtype == DType::Bool) &&
           std::all_of(n.inputs.begin(), n.inputs.end(), [&](ValueId v) {
             const DType d = rewrite_.from().type(v).dtype;
             return d == DType::F32 || d == DType::Bool;
           });
  }

  void join(NodeId id) {
    for (const ValueId input : node(id).inputs) {
      const int g = group_of_[static_cast<std::size_t>(input.node)];
      if (g < 0 || !may_join(groups_[static_cast<std::size_t>(g)], id)) continue;
      groups_[static_cast<std::size_t>(g)].nodes.push_back(id);
      group_of_[static_cast<std::size_t>(id)] = g;
      return;
    }
    group_of_[static_cast<std::size_t>(id)] = static_cast<int>(groups_.size());
    groups_.push_back({{id}});
  }

  bool may_join(const Group& group, NodeId id) const {
    const NodeId first = group.nodes[0];
    if (group.nodes.size() >= kMaxNodes || node(first).phase != node(id).phase ||
        node(first).type().shape != node(id).type().shape ||
        memory_of(node(first).results[0]) != memory_of(node(id).results[0])) {
      return false;
    }
    // Nobody outside reads the group before its new end; so no operand of `id` depends on it
    // through others.
    for (const NodeId member : group.nodes) {
      for (const NodeId user : users_(member)) {
        const bool inside =
            std::find(group.nodes.begin(), group.nodes.end(), user) != group.nodes.end();
        if (!inside && user < id) return false;
      }
    }
    Group larger = group;
    larger.nodes.push_back(id);
    return operands(larger).size() <= kMaxOperands;
  }

  /// Values read from outside, in order of first use; scalar constants are inside the body.
  ValueIds operands(const Group& group) const {
    ValueIds out;
    for (const NodeId member : group.nodes) {
      for (const ValueId input : node(member).inputs) {
        const bool inside =
            std::find(group.nodes.begin(), group.nodes.end(), input.node) != group.nodes.end();
        if (inside || node(input.node).op == &kConstant) continue;
        if (std::find(out.begin(), out.end(), input) == out.end()) out.push_back(input);
      }
    }
    return out;
  }

  bool read_outside(const Group& group, NodeId member) const {
    const auto users = users_(member);
    return is_output_[static_cast<std::size_t>(member)] ||
           std::any_of(users.begin(), users.end(), [&](NodeId user) {
             return std::find(group.nodes.begin(), group.nodes.end(), user) == group.nodes.end();
           });
  }

  void emit(const Group& group) {
    Builder body;
    std::map<ValueId, Value> inside;
    std::vector<Value> ins;
    for (const ValueId operand : operands(group)) {
      inside.emplace(operand, body.batch(text(ins.size()), rewrite_.from().type(operand), Where{}));
      ins.push_back(rewrite_(operand));
    }
    std::vector<NodeId> results;
    for (const NodeId member : group.nodes) {
      std::vector<Value> operands;
      for (const ValueId input : node(member).inputs) {
        auto found = inside.find(input);
        if (found == inside.end()) {
          const Node& constant = node(input.node);
          found = inside
                      .emplace(input, body.constant(std::get<double>(constant.attrs[0]),
                                                    constant.type().dtype))
                      .first;
        }
        operands.push_back(found->second);
      }
      const Value value = body.add(*node(member).op, operands, node(member).attrs);
      inside.emplace(ValueId{member, 0}, value);
      if (read_outside(group, member)) {
        body.output(Output::Kind::Metric, text(results.size()), value);
        results.push_back(member);
      }
    }
    Node fused = node(group.nodes.back());
    fused.op = &kFused;
    fused.attrs = {std::make_shared<const Graph>(body.finish())};
    fused.name = {};
    fused.like = fused.remat_of = -1;
    fused.cotangent.reset();
    fused.results.clear();
    for (const NodeId member : results) fused.results.push_back(node(member).results[0]);
    ValueIds in_ids;
    for (const Value& in : ins) in_ids.push_back(in.id());
    const std::vector<Value> values = rewrite_.to().copy(std::move(fused), std::move(in_ids));
    for (std::size_t i = 0; i < results.size(); ++i) rewrite_.map({results[i], 0}, values[i]);
  }

  Rewrite rewrite_;
  Users users_;
  std::vector<int> group_of_;
  std::vector<bool> is_output_;
  std::vector<Group> groups_;
};

}  // namespace

Graph fuse(const Graph& graph) { return Fuser(graph).run(); }

Program fuse(Program program) {
  for (Region& region : program.regions) region.graph = simplify(fuse(region.graph));
  return program;
}

}  // namespace tessera
