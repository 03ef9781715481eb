#include "tessera/passes/fuse.h"

#include <algorithm>
#include <map>
#include <memory>
#include <queue>

#include "tessera/ops/collective.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/fused.h"
#include "tessera/ops/random.h"
#include "tessera/passes/absorb.h"
#include "tessera/passes/place_chunks.h"
#include "tessera/passes/rewrite.h"
#include "tessera/passes/simplify.h"

namespace tessera {

namespace {

constexpr std::size_t kMaxNodes = 16;  // so that temporaries of a tile fit the first-level cache

struct Group {
  std::vector<NodeId> nodes;  // ascending
  int row_dims = 0;           // of its ops that work row by row; 0: it has none

  bool has(NodeId id) const { return std::find(nodes.begin(), nodes.end(), id) != nodes.end(); }
};

class Fuser {
 public:
  explicit Fuser(const Graph& graph)
      : rewrite_(graph),
        users_(graph),
        group_of_(graph.nodes().size(), -1),
        seen_(graph.nodes().size(), 0) {
    for (const Output& output : graph.outputs()) outputs_.push_back(output.value);
    std::sort(outputs_.begin(), outputs_.end());
    find_messages();
  }

  Graph run() {
    for (NodeId id = 0; id < from().size(); ++id) {
      if (fusable(id)) join(id);
    }
    carry_over();
    return rewrite_.finish();
  }

 private:
  const Graph& from() const { return rewrite_.from(); }
  const Node& node(NodeId id) const { return from().node(id); }
  const Group* group_with(NodeId id) const {
    const int g = group_of_[static_cast<std::size_t>(id)];
    return g < 0 ? nullptr : &groups_[static_cast<std::size_t>(g)];
  }

  bool fusable(NodeId id) const {
    const Node& n = node(id);
    if (!may_be_fused(from().call(id))) return false;
    const auto plain = [](const TensorType& t) {
      return (computed_in(t.dtype) == DType::F32 || t.dtype == DType::Bool) && t.layout.plain();
    };
    // The step of a random op is a scalar.
    const auto known = [&](ValueId v) {
      const TensorType& t = from().type(v);
      return plain(t) || (is_random(*n.op) && t.ndim() == 0);
    };
    return space(id).type.ndim() > 0 && std::all_of(n.inputs.begin(), n.inputs.end(), known) &&
           std::all_of(n.results.begin(), n.results.end(),
                       [&](const Result& r) { return plain(r.type); });
  }

  int row_dims(NodeId id) const { return row_dims_of(from().call(id)); }

  /// The result whose elements the op runs over.
  const Result& space(NodeId id) const {
    return row_dims(id) > 0 ? from().result(node(id).inputs[0]) : node(id).results[0];
  }

  void join(NodeId id) {
    for (const ValueId input : node(id).inputs) {
      const int g = group_of_[static_cast<std::size_t>(input.node)];
      if (g < 0 || !may_join(groups_[static_cast<std::size_t>(g)], id)) continue;
      Group& group = groups_[static_cast<std::size_t>(g)];
      group.nodes.push_back(id);
      group.row_dims = std::max(group.row_dims, row_dims(id));
      group_of_[static_cast<std::size_t>(id)] = g;
      return;
    }
    group_of_[static_cast<std::size_t>(id)] = static_cast<int>(groups_.size());
    groups_.push_back({{id}, row_dims(id)});
  }

  bool may_join(const Group& group, NodeId id) {
    const NodeId first = group.nodes[0];
    if (group.nodes.size() >= kMaxNodes || node(first).phase != node(id).phase ||
        node(first).recompute != node(id).recompute ||  // which is told, and priced, apart
        !same_space(space(first), space(id)) ||
        memory_of(node(first).results[0]) != memory_of(node(id).results[0])) {
      return false;
    }
    const int rows = row_dims(id);
    if (rows > 0 && group.row_dims > 0 && rows != group.row_dims) return false;
    const Shape& shape = space(id).type.shape;
    // Statistics and sums are complete when the group has run.
    for (const ValueId input : node(id).inputs) {
      if (group.has(input.node) && from().type(input).shape != shape) return false;
    }
    Group larger = group;
    larger.nodes.push_back(id);
    const ValueIds read = operands(larger);
    // The place of an element in the whole tensor is known by an operand of that shape.
    const auto whole = [&](ValueId v) { return from().type(v).shape == shape; };
    if (is_random(*node(id).op) && std::none_of(read.begin(), read.end(), whole)) return false;
    return read.size() <= kMostFusedOperands && !passes_message(group, id) &&
           !holds_up(group, id) && !leads_to(group, id);
  }

  /// True where `id` reads something behind the group, and its block is another than that of
  /// something which reads the group before. Joined with it, that would wait for this block, and all
  /// that it needs would lie in memory until then: for all layers at once, where each reads the same
  /// value, as gradients of a loss of each do.
  bool holds_up(const Group& group, NodeId id) const {
    const bool waits = std::ranges::any_of(
        node(id).inputs, [&](ValueId input) { return input.node > group.nodes.back(); });
    const std::string_view block = unit_of(node(id).block);
    return waits && std::ranges::any_of(group.nodes, [&](NodeId member) {
             return std::ranges::any_of(users_(member), [&](NodeId user) -> bool {
               return user < id && !group.has(user) && unit_of(node(user).block) != block;
             });
           });
  }

  void find_messages() {
    int received = 0;
    const bool sends = std::ranges::any_of(
        from().outputs(), [](const Output& output) { return output.kind == Output::Kind::Send; });
    for (const Node& n : from().nodes())
      received_.push_back(sends && n.op == &kReceive ? ++received : received);
  }

  /// True where a node of the group comes before a message that `id` comes behind. Joined with it,
  /// the node would wait for the message, and so might something that is sent to another stage,
  /// directly or by other groups: two stages could wait for each other.
  bool passes_message(const Group& group, NodeId id) const {
    return received_[static_cast<std::size_t>(group.nodes[0])] !=
           received_[static_cast<std::size_t>(id)];
  }

  static bool same_space(const Result& a, const Result& b) {
    const auto dims = [](const Result& r) {
      return r.placement ? &r.placement->sharding.dims : nullptr;
    };
    if (a.type.shape != b.type.shape || a.logical != b.logical) return false;
    return dims(a) == nullptr || dims(b) == nullptr || *dims(a) == *dims(b);
  }

  /// True where a path from the group to `id` passes a node outside of it: then `id` cannot be in
  /// it. Groups count as one node. Nodes behind `id` are in no group yet.
  bool leads_to(const Group& group, NodeId id) {
    ++round_;
    std::vector<NodeId> open;
    const auto visit = [&](NodeId user) {
      int& seen = seen_[static_cast<std::size_t>(user)];
      if (user > id || seen == round_) return;
      seen = round_;
      open.push_back(user);
    };
    const auto visit_users = [&](NodeId of) {
      for (const NodeId user : users_(of)) visit(user);
    };
    for (const NodeId member : group.nodes) seen_[static_cast<std::size_t>(member)] = round_;
    for (const NodeId member : group.nodes) {
      for (const NodeId user : users_(member)) {
        if (user != id) visit(user);
      }
    }
    while (!open.empty()) {
      const NodeId at = open.back();
      open.pop_back();
      if (at == id) return true;
      visit_users(at);
      const Group* other = group_with(at);
      if (other == nullptr) continue;
      for (const NodeId member : other->nodes) {
        seen_[static_cast<std::size_t>(member)] = round_;
        visit_users(member);
      }
    }
    return false;
  }

  /// Values read from outside, in order of first use; scalar constants are inside the body.
  ValueIds operands(const Group& group) const {
    ValueIds out;
    for (const NodeId member : group.nodes) {
      for (const ValueId input : node(member).inputs) {
        if (group.has(input.node) || node(input.node).op == &kConstant) continue;
        if (std::find(out.begin(), out.end(), input) == out.end()) out.push_back(input);
      }
    }
    return out;
  }

  bool read_outside(const Group& group, ValueId value) const {
    const auto users = users_(value.node);
    return std::binary_search(outputs_.begin(), outputs_.end(), value) ||
           std::any_of(users.begin(), users.end(), [&](NodeId user) {
             const ValueIds& inputs = node(user).inputs;
             return !group.has(user) &&
                    std::find(inputs.begin(), inputs.end(), value) != inputs.end();
           });
  }

  /// Results of the group: those of the whole shape first, then sums over rows, then statistics of
  /// rows. So result 0, which may take the place of an operand, is none that is read on the way.
  ValueIds results(const Group& group) const {
    using Each = BodySpace::Each;
    const BodySpace over{space(group.nodes[0]).type.shape, group.row_dims};
    ValueIds out;
    for (const Each each : {Each::Element, Each::Whole, Each::Row}) {
      for (const NodeId member : group.nodes) {
        for (int i = 0; i < static_cast<int>(node(member).results.size()); ++i) {
          const ValueId value{member, i};
          const bool wanted = each != Each::Element || read_outside(group, value);
          if (wanted && over.each(from().type(value).shape) == each) out.push_back(value);
        }
      }
    }
    return out;
  }

  /// The node in whose place a node is carried over: the last of its group.
  NodeId place(NodeId id) const {
    const Group* of = group_with(id);
    return of == nullptr ? id : of->nodes.back();
  }

  /// In the order of the old graph, but behind all operands: a reader of a group waits for its end.
  void carry_over() {
    const NodeId size = from().size();
    std::vector<int> missing(static_cast<std::size_t>(size), 0);
    std::vector<NodeId> own;
    const auto members = [&](NodeId id) -> const std::vector<NodeId>& {
      const Group* of = group_with(id);
      if (of != nullptr) return of->nodes;
      own.assign(1, id);
      return own;
    };
    for (NodeId id = 0; id < size; ++id) {
      for (const NodeId user : users_(id)) {
        if (place(user) != place(id)) ++missing[static_cast<std::size_t>(place(user))];
      }
    }
    std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
    for (NodeId id = 0; id < size; ++id) {
      if (place(id) == id && missing[static_cast<std::size_t>(id)] == 0) ready.push(id);
    }
    NodeId done = 0;
    while (!ready.empty()) {
      const NodeId id = ready.top();
      ready.pop();
      const Group* of = group_with(id);
      of == nullptr || of->nodes.size() == 1 ? void(rewrite_.copy(id)) : emit(*of);
      for (const NodeId member : members(id)) {
        ++done;
        for (const NodeId user : users_(member)) {
          const NodeId next = place(user);
          if (next != id && --missing[static_cast<std::size_t>(next)] == 0) ready.push(next);
        }
      }
    }
    check(done == size, "fuse: ", size - done, " nodes wait for each other");
  }

  void emit(const Group& group) {
    Builder body;
    std::map<ValueId, Value> inside;
    ValueIds ins;
    for (const ValueId operand : operands(group)) {
      inside.emplace(operand, body.batch(text(ins.size()), from().type(operand), Where{}));
      ins.push_back(rewrite_(operand).id());
    }
    const ValueIds outs = results(group);
    for (const NodeId member : group.nodes) {
      std::vector<Value> read;
      for (const ValueId input : node(member).inputs) {
        auto found = inside.find(input);
        if (found == inside.end()) {
          const Node& constant = node(input.node);
          const Value value =
              body.constant(std::get<double>(constant.attrs[0]), constant.type().dtype);
          found = inside.emplace(input, value).first;
        }
        read.push_back(found->second);
      }
      const std::vector<Value> made = body.add_all(*node(member).op, read, node(member).attrs);
      for (int i = 0; i < static_cast<int>(made.size()); ++i)
        inside.emplace(ValueId{member, i}, made[static_cast<std::size_t>(i)]);
    }
    Node fused = node(group.nodes.back());
    fused.op = &kFused;
    fused.name = {};
    fused.like = fused.remat_of = -1;
    fused.cotangent.reset();
    fused.results.clear();
    for (std::size_t i = 0; i < outs.size(); ++i) {
      body.output(Output::Kind::Metric, text(i), inside.at(outs[i]));
      fused.results.push_back(from().result(outs[i]));
    }
    fused.attrs = {std::make_shared<const Graph>(body.finish())};
    const std::vector<Value> values = rewrite_.to().copy(std::move(fused), std::move(ins));
    for (std::size_t i = 0; i < outs.size(); ++i) rewrite_.map(outs[i], values[i]);
  }

  Rewrite rewrite_;
  Users users_;
  std::vector<int> group_of_;
  std::vector<ValueId> outputs_;  // ascending
  std::vector<Group> groups_;
  std::vector<int> seen_;  // per node the last round of leads_to that met it
  int round_ = 0;
  std::vector<int> received_;  // per node, how many messages are waited for before it
};

}  // namespace

Graph fuse(const Graph& graph) { return Fuser(graph).run(); }

Program fuse(Program program) {
  program = copy_beside(std::move(program));
  for (Region& region : program.regions) region.graph = simplify(fuse(add_onto(region.graph)));
  return program;
}

}  // namespace tessera
