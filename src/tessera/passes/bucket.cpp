#include "tessera/passes/bucket.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tessera/base/index.h"
#include "tessera/ir/blocks.h"
#include "tessera/ops/bucket.h"
#include "tessera/ops/collective.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/passes/rewrite.h"

namespace tessera {

namespace {

/// When a value is there: its region, and its node in it.
using Ready = std::pair<int, NodeId>;

/// Two sums may share a bucket if they are equal in all of this.
struct Alike {
  int depth = 0;  // how many sums of gradients lie on the way to it: none depends on one as deep
  std::string axes, monoid;
  DType dtype = DType::F32;
  Memory memory = Memory::Device;
  std::vector<std::pair<std::string, Monoid>> partial;  // what the operand leaves unfinished
  int group = 0;
  friend auto operator<=>(const Alike&, const Alike&) = default;
};

/// An all_reduce in which a gradient ends.
struct GradientSum {
  NodeId node = -1;
  Ready ready;
  Alike alike;
  bool alone = false;
  std::int64_t bytes = 0;
};

/// all_reduces that become one, by node.
using Members = std::vector<NodeId>;

/// Where the values that regions hand over are computed.
std::map<std::string, Ready> filled_slots(const Program& program) {
  std::map<std::string, Ready> out;
  for (std::size_t r = 0; r < program.regions.size(); ++r) {
    for (const Output& output : program.regions[r].graph.outputs())
      out[output.name] = {static_cast<int>(r), output.value.node};
  }
  return out;
}

class Buckets {
 public:
  Buckets(const Graph& graph, int region, const std::map<std::string, Ready>& slots,
          const BucketStrategy& strategy)
      : graph_(graph), region_(region), slots_(slots), strategy_(strategy) {}

  std::vector<Members> find() {
    list_sums();
    std::ranges::stable_sort(sums_, {}, &GradientSum::ready);
    std::map<Alike, Members> open;
    std::map<Alike, std::int64_t> bytes;
    std::vector<Members> out;
    const auto close = [&](Members& members) {
      if (members.size() > 1) out.push_back(members);
      members.clear();
    };
    for (const GradientSum& sum : sums_) {
      if (sum.alone) continue;
      Members& members = open[sum.alike];
      std::int64_t& filled = bytes[sum.alike];
      if (sum.alike.group == 0 && filled + sum.bytes > strategy_.bytes) close(members), filled = 0;
      members.push_back(sum.node);
      filled += sum.bytes;
    }
    for (auto& [alike, members] : open) close(members);
    return out;
  }

 private:
  void list_sums() {
    std::map<NodeId, std::string> paths;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (graph_.node(id).op != &kGradient) continue;
      const NodeId sum = behind_copies(graph_.node(id).inputs[0]).node;
      if (graph_.node(sum).op == &kAllReduce)
        paths.try_emplace(sum, std::get<std::string>(graph_.node(id).attrs[0]));
    }
    std::vector<int> depth(graph_.nodes().size(), 0);
    for (NodeId id = 0; id < graph_.size(); ++id) {
      for (const ValueId input : graph_.node(id).inputs)
        depth[at(id)] = std::max(depth[at(id)], depth[at(input.node)]);
      const auto found = paths.find(id);
      if (found == paths.end()) continue;
      if (std::optional<GradientSum> sum = sum_of(id, found->second, depth[at(id)]))
        sums_.push_back(*std::move(sum));
      ++depth[at(id)];
    }
  }

  std::optional<GradientSum> sum_of(NodeId id, const std::string& path, int depth) const {
    const Node& node = graph_.node(id);
    const Result &from = graph_.result(node.inputs[0]), &to = node.results[0];
    const Sharding& sharding = to.placement->sharding;
    if (from.type.numel() == 0 || sharding.dim_of(kMicrobatchAxis) >= 0) return std::nullopt;
    GradientSum out{id, ready(node.inputs[0]), {}, strategy_.bytes == 0, from.type.bytes()};
    out.alike.depth = depth;
    out.alike.axes = std::get<std::string>(node.attrs[0]);
    out.alike.monoid = std::get<std::string>(node.attrs[1]);
    out.alike.dtype = from.type.dtype;
    out.alike.memory = to.placement->memory;
    for (const Partial& p : from.placement->sharding.partial)
      out.alike.partial.emplace_back(p.axis, p.monoid);
    for (const BucketPin& pin : strategy_.pins) {
      if (matches(pin.parameters, path)) out.alike.group = pin.group, out.alone = pin.group == 0;
    }
    return out;
  }

  ValueId behind_copies(ValueId v) const {
    const Node& node = graph_.node(v.node);
    return node.op == &kCopy ? behind_copies(node.inputs[0]) : v;
  }

  Ready ready(ValueId v) const {
    const Node& node = graph_.node(v.node);
    if (node.op == &kCopy) return ready(node.inputs[0]);
    if (node.op != &kSlot) return {region_, v.node};
    const auto found = slots_.find(std::get<std::string>(node.attrs[0]));
    return found == slots_.end() ? Ready{region_, v.node} : found->second;
  }

  const Graph& graph_;
  const int region_;
  const std::map<std::string, Ready>& slots_;
  const BucketStrategy& strategy_;
  std::vector<GradientSum> sums_;
};

/// Writes a region anew with its buckets. A bucket stands where the last of its sums stood; what
/// reads an earlier one moves behind it.
class BucketWriter {
 public:
  BucketWriter(const Graph& graph, std::vector<Members> buckets)
      : rewrite_(graph), buckets_(std::move(buckets)), bucket_of_(graph.nodes().size(), -1) {
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      for (const NodeId member : buckets_[b]) bucket_of_[at(member)] = static_cast<int>(b);
      missing_.emplace_back(buckets_[b].begin(), buckets_[b].end());
    }
  }

  Graph run() {
    for (NodeId id = 0; id < from().size(); ++id) {
      if (!is_ready(id)) {
        waiting_.push_back(id);
      } else if (carry(id)) {
        carry_waiting();
      }
    }
    check(waiting_.empty(), "buckets wait for each other");
    return rewrite_.finish();
  }

 private:
  const Graph& from() const { return rewrite_.from(); }

  bool is_ready(NodeId id) const {
    const auto has = [&](ValueId v) { return rewrite_.has(v); };
    return std::ranges::all_of(from().node(id).inputs, has);
  }

  /// A node whose operands are there. True where it completes a bucket.
  bool carry(NodeId id) {
    const int b = bucket_of_[at(id)];
    if (b < 0) {
      rewrite_.copy(id);
      return false;
    }
    missing_[at(b)].erase(id);
    if (!missing_[at(b)].empty()) return false;
    write(buckets_[at(b)], id);
    return true;
  }

  /// Carries waiting nodes in order, up to the first whose operands are not there yet.
  void carry_waiting() {
    for (bool again = true; std::exchange(again, false);) {
      for (const NodeId id : std::exchange(waiting_, {})) {
        if (!is_ready(id)) {
          waiting_.push_back(id);
        } else if (carry(id)) {
          again = true;
        }
      }
    }
  }

  /// `last`: of the members, the one that was met last.
  void write(const Members& members, NodeId last) {
    ValueIds ins;
    std::int64_t elements = 0;
    for (const NodeId member : members) {
      const ValueId operand = from().node(member).inputs[0];
      ins.push_back(rewrite_(operand).id());
      elements += from().type(operand).numel();
    }
    Node sum = from().node(last);
    sum.block = common_block(members);
    sum.name = {};
    const Node& first = from().node(members[0]);
    Node joined = sum;
    joined.op = &kBucket;
    joined.attrs = {};
    joined.results = {flat(from().result(first.inputs[0]), elements, axes_of(members))};
    sum.results = {flat(first.results[0], elements, axes_of(members))};
    const Value bucket = rewrite_.to().copy(std::move(joined), std::move(ins))[0];
    const Value whole = rewrite_.to().copy(std::move(sum), {bucket.id()})[0];
    std::int64_t begin = 0;
    for (const NodeId member : members) {
      rewrite_.map({member, 0}, part(whole, member, begin));
      begin += from().node(member).type().numel();
    }
  }

  /// The part that is the member's, in the member's shape.
  Value part(Value whole, NodeId member, std::int64_t begin) {
    const Node& like = from().node(member);
    const std::int64_t elements = like.type().numel();
    Node slice = like;
    slice.op = &kSlice;
    slice.name = {};
    slice.attrs = {std::int64_t{0}, begin, elements, std::int64_t{1}};
    slice.results = {flat(like.results[0], elements, axes_of({member}))};
    const Value run = rewrite_.to().copy(std::move(slice), {whole.id()})[0];
    Node shaped = like;
    shaped.op = &kReshape;
    const Shape& shape = like.type().shape;
    shaped.attrs = {std::vector<std::int64_t>(shape.begin(), shape.end())};
    return rewrite_.to().copy(std::move(shaped), {run.id()})[0];
  }

  /// The axes that split any of these, in the order of the mesh: ranks along them have other
  /// elements.
  std::vector<std::string> axes_of(const Members& members) const {
    std::vector<std::string> out;
    for (const Axis& axis : from().mesh().axes()) {
      const bool splits = std::ranges::any_of(members, [&](NodeId member) {
        return from().node(member).results[0].placement->sharding.dim_of(axis.name) >= 0;
      });
      if (splits) out.push_back(axis.name);
    }
    return out;
  }

  /// `like` as one dim of so many elements on each rank.
  Result flat(const Result& like, std::int64_t elements, const std::vector<std::string>& axes) {
    Result out;
    std::int64_t whole = elements;
    for (const std::string& axis : axes) whole *= from().mesh().size(axis);
    out.type = {like.type.dtype, Shape{elements}, {}};
    out.placement =
        Placement{Sharding{{axes}, like.placement->sharding.partial}, like.placement->memory};
    out.logical = Shape{whole};
    return out;
  }

  /// The block that all are in; none where there is no such block.
  Name common_block(const Members& members) const {
    const std::string_view block = block_of(from().node(members[0]).block);
    for (const NodeId member : members) {
      if (block_of(from().node(member).block) != block) return "";
    }
    return Name(block);
  }

  Rewrite rewrite_;
  std::vector<Members> buckets_;
  std::vector<int> bucket_of_;             // by node; -1: in none
  std::vector<std::set<NodeId>> missing_;  // by bucket: members whose operands are not there yet
  std::vector<NodeId> waiting_;            // nodes whose operands are not there yet, in order
};

}  // namespace

Program bucket(Program program, const BucketStrategy& strategy) {
  const std::map<std::string, Ready> slots = filled_slots(program);
  for (std::size_t r = 0; r < program.regions.size(); ++r) {
    Graph& graph = program.regions[r].graph;
    std::vector<Members> members = Buckets(graph, static_cast<int>(r), slots, strategy).find();
    if (!members.empty()) graph = BucketWriter(graph, std::move(members)).run();
  }
  return program;
}

}  // namespace tessera
