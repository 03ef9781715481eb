#include "tessera/plan/shards.h"

#include <algorithm>

#include "tessera/base/index.h"
#include "tessera/comm/group.h"
#include "tessera/ir/strategy.h"
#include "tessera/ops/collective.h"

namespace tessera {

namespace {

/// The name in profiles of a message at its sender, where it is an output and not a node.
constinit const OpDef kSend = {.name = "send", .doc = "A value that another stage receives."};

}  // namespace

ShardInfo RankShards::info(const Result& result) const {
  const int ndim = result.type.ndim();
  ShardInfo out{result.logical, Shape::of(ndim, 0), Shape::of(ndim, 0), result.logical,
                result.type.shape};
  if (!result.placement) return out;
  for (int d = 0; d < ndim; ++d) {
    const std::vector<std::string>& axes = result.placement->sharding.dims[at(d)];
    // Micro-batches cut what the axes before them leave to this rank, and the axes after them cut
    // each micro-batch.
    const auto time = std::find(axes.begin(), axes.end(), kMicrobatchAxis);
    const std::vector<std::string> before(axes.begin(), time);
    const Extent held = extent(result.logical[d], before, mesh_, at_);
    out.offset[d] = held.start;
    out.limit[d] = held.start + held.valid;
    if (time == axes.end()) continue;
    const std::vector<std::string> after(time + 1, axes.end());
    out.step[d] = extent(held.padded, {*time}, mesh_, {{*time, 0}}).padded;
    const Extent part = extent(out.step[d], after, mesh_, at_);
    out.offset[d] += part.start;
    out.room[d] = part.valid;
  }
  return out;
}

std::int64_t RankShards::coordinate(const OpCall& call) const {
  const int i = call.op().attrs.find("axes");
  if (i < 0) return 0;
  return tessera::coordinate(mesh_, at_, std::get<std::string>(call.attrs()[at(i)]));
}

/// In ranks of the world.
Group RankShards::group(const std::vector<std::string>& axes) const {
  Group out = group_of(mesh_, axes, in_stage_);
  for (int& rank : out.ranks) rank += before_;
  return out;
}

Call RankShards::message(CollectiveKind kind, const Program::Message& message, const Result& what,
                         const Name& block) const {
  const auto rank_on = [&](int stage) {
    return static_cast<int>(stage * mesh_.ranks()) + in_stage_;
  };
  const TensorType& type = what.type;
  const bool sends = kind == CollectiveKind::Send;
  Transfer out;
  out.axes = {std::string(kPipelineAxis)};
  out.group = {text(kPipelineAxis, " ", message.name),
               {rank_on(message.from), rank_on(message.to)}};
  out.group.messages =
      static_cast<int>(std::max<std::int64_t>(out.group.messages, message.ahead + 1));
  out.collective = sends ? Collective::send(type.dtype, type.shape, 1, message.name)
                         : Collective::recv(type.dtype, type.shape, 0, message.name);
  Call call;
  call.op = sends ? &kSend : &kReceive;
  const Attrs attrs = Node{}.attrs;
  call.types = sends ? CallTypes{attrs, {type}, {}} : CallTypes{attrs, {}, {type}};
  call.transfer = std::move(out);
  call.block = block;
  call.bytes = static_cast<double>(type.bytes());
  return call;
}

Call RankShards::transfer(const Graph& graph, NodeId id) const {
  const Node& node = graph.node(id);
  const Result &from = graph.result(node.inputs[0]), &to = node.results[0];
  const DType dtype = from.type.dtype;
  const OpCall op = graph.call(id);
  Call call;
  call.op = node.op;
  call.types = CallTypes{node.attrs, {from.type}, {to.type}};
  call.block = node.block;
  call.bytes = bytes_moved(op);
  if (node.op == &kCopy) {
    call.copied_bytes = to.type.bytes();
    return call;
  }
  Transfer out;
  out.axes = split(op.string("axes"), '.');
  out.group = group(out.axes);
  const std::string name = text(node.block.empty() ? "" : text(node.block, " "), node.op->name);
  const auto dim = [&](std::string_view attr) { return static_cast<int>(op.integer(attr)); };
  if (node.op == &kAllReduce) {
    out.collective =
        Collective::all_reduce(dtype, from.type.shape, parse_monoid(op.string("monoid")), name);
  } else if (node.op == &kAllGather) {
    out.collective = Collective::all_gather(dtype, to.type.shape, dim("dim"), name);
  } else if (node.op == &kReduceScatter) {
    out.collective = Collective::reduce_scatter(dtype, from.type.shape, dim("dim"),
                                                parse_monoid(op.string("monoid")), name);
  } else if (node.op == &kAllToAll) {
    Shape whole = from.type.shape;
    whole[dim("from")] = to.type.shape[dim("from")];
    out.collective = Collective::all_to_all(dtype, whole, dim("from"), dim("to"), name);
  } else if (node.op == &kDispatch || node.op == &kCombine) {
    const TensorType& ids = graph.type(node.inputs[1]);
    const bool gathers = node.op == &kDispatch;
    out.collective = gathers
                         ? Collective::all_gather(dtype, to.type.shape, 0, name)
                         : Collective::reduce_scatter(dtype, from.type.shape, 0, Monoid::Sum, name);
    out.collective.rows = {ids.shape.back(), op.integer("per_rank"),
                           ids.shape.numel() / ids.shape.back()};
    call.types = CallTypes{node.attrs, {from.type, ids}, {to.type}};
  } else {
    check(node.op == &kPermute, node.op->name, " is not a transfer");
    out.collective = Collective::send(dtype, from.type.shape, receiver(from, to, out.axes), name);
    out.from = sender(from, to, out.axes);
  }
  call.transfer = std::move(out);
  return call;
}

/// Members of the group, by index: whose shard this rank takes, and who takes its shard.
int RankShards::sender(const Result& from, const Result& to,
                       const std::vector<std::string>& axes) const {
  const Group group = group_of(mesh_, axes, in_stage_);
  for (int i = 0; i < group.size(); ++i) {
    const Coordinates other = coordinates_of(mesh_, group.ranks[at(i)]);
    if (permutes(from.placement->sharding, other, to.placement->sharding, at_, axes, mesh_))
      return i;
  }
  throw Broken("permute: no rank of the group has the shard");
}

int RankShards::receiver(const Result& from, const Result& to,
                         const std::vector<std::string>& axes) const {
  const Group group = group_of(mesh_, axes, in_stage_);
  for (int i = 0; i < group.size(); ++i) {
    const Coordinates other = coordinates_of(mesh_, group.ranks[at(i)]);
    if (permutes(from.placement->sharding, at_, to.placement->sharding, other, axes, mesh_))
      return i;
  }
  throw Broken("permute: no rank of the group wants the shard");
}

}  // namespace tessera
