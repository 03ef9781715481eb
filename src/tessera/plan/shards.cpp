#include "tessera/plan/shards.h"

#include "tessera/comm/group.h"
#include "tessera/ir/strategy.h"
#include "tessera/ops/collective.h"

namespace tessera {

namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

}  // namespace

ShardInfo RankShards::info(const Result& result) const {
  const int ndim = result.type.ndim();
  ShardInfo out{result.logical, Shape::of(ndim, 0), Shape::of(ndim, 0), result.logical};
  if (!result.placement) return out;
  for (int d = 0; d < ndim; ++d) {
    std::vector<std::string> axes = result.placement->sharding.dims[at(d)];
    if (axes.empty()) continue;
    const auto start = [&](std::int64_t microbatch) {
      Coordinates where = at_;
      where[std::string(kMicrobatchAxis)] = microbatch;
      return extent(result.logical[d], axes, mesh_, where).start;
    };
    out.offset[d] = start(0);
    out.step[d] = start(1) - start(0);
    std::erase(axes, kMicrobatchAxis);
    const Extent mine = extent(result.logical[d], axes, mesh_, at_);
    out.limit[d] = mine.start + mine.valid;
    // No step where a rank's rows are not cut by time.
    if (axes.size() == result.placement->sharding.dims[at(d)].size()) out.step[d] = 0;
  }
  return out;
}

std::int64_t RankShards::coordinate(const OpCall& call) const {
  const int i = call.op().attrs.find("axes");
  if (i < 0) return 0;
  const auto found = at_.find(std::get<std::string>(call.attrs()[at(i)]));
  return found == at_.end() ? 0 : found->second;
}

Call RankShards::transfer(const Graph& graph, NodeId id) const {
  const Node& node = graph.node(id);
  const Result &from = graph.result(node.inputs[0]), &to = node.results[0];
  const DType dtype = from.type.dtype;
  const OpCall op = graph.call(id);
  Transfer out;
  out.axes = split(op.string("axes"), '.');
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
  } else {
    check(node.op == &kPermute, node.op->name, " is no transfer");
    out.collective = Collective::send(dtype, from.type.shape, receiver(from, to, out.axes), name);
    out.from = sender(from, to, out.axes);
  }
  Call call;
  call.op = node.op;
  call.types = CallTypes{node.attrs, {from.type}, {to.type}};
  call.transfer = std::move(out);
  call.block = node.block;
  call.bytes = bytes_moved(op);
  return call;
}

/// Members of the group, by index: whose shard this rank takes, and who takes its shard.
int RankShards::sender(const Result& from, const Result& to,
                       const std::vector<std::string>& axes) const {
  const Group group = group_of(mesh_, axes, static_cast<int>(rank_at(mesh_, at_)));
  for (int i = 0; i < group.size(); ++i) {
    const Coordinates other = coordinates_of(mesh_, group.ranks[at(i)]);
    if (permutes(from.placement->sharding, other, to.placement->sharding, at_, axes, mesh_))
      return i;
  }
  throw Broken("permute: no rank of the group has the shard");
}

int RankShards::receiver(const Result& from, const Result& to,
                         const std::vector<std::string>& axes) const {
  const Group group = group_of(mesh_, axes, static_cast<int>(rank_at(mesh_, at_)));
  for (int i = 0; i < group.size(); ++i) {
    const Coordinates other = coordinates_of(mesh_, group.ranks[at(i)]);
    if (permutes(from.placement->sharding, at_, to.placement->sharding, other, axes, mesh_))
      return i;
  }
  throw Broken("permute: no rank of the group wants the shard");
}

}  // namespace tessera
