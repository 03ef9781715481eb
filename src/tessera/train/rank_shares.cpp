#include "tessera/train/rank_shares.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "tessera/base/size.h"

namespace tessera {

namespace {

/// Of the bytes that fall to a rank in the mean: a part that is larger is cut, so that ranks write
/// about equally much.
constexpr std::int64_t kPartsPerRank = 4, kLeastPart = 1 << 20;

bool goes_into_saves(const State& state, const LeftOut& left_out) {
  return is_saved(state.role) && !(left_out && left_out(state));
}

/// The states that are saved.
std::vector<std::size_t> by_name(const Plan& plan, const LeftOut& left_out) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < plan.states.size(); ++i) {
    if (goes_into_saves(plan.states[i].state, left_out)) out.push_back(i);
  }
  std::sort(out.begin(), out.end(), [&](std::size_t a, std::size_t b) {
    return plan.states[a].state.path < plan.states[b].state.path;
  });
  return out;
}

std::int64_t total_bytes(const Plan& plan, const LeftOut& left_out) {
  std::int64_t out = 0;
  for (const StatePlan& state : plan.states) {
    if (!goes_into_saves(state.state, left_out)) continue;
    out = size_sum(out, state.logical.numel() * size_of(state.type.dtype),
                   "bytes of a copy to save from");
  }
  return out;
}

Box box_at(const StatePlan& state, const Mesh& mesh, const Coordinates& at) {
  if (mesh.ranks() == 1) return Box::whole(state.logical);
  return shard_box(state.logical, state.state.home->sharding, mesh, at);
}

std::vector<std::int64_t> starts_of(const Box& box) { return {box.start.begin(), box.start.end()}; }

/// The ranks of the world that hold each shard, by where it begins.
using Holders = std::map<std::vector<std::int64_t>, std::vector<int>>;

struct Shards {
  Holders holders;
  TensorGrid grid;  // a cell per shard
};

/// `ranks`: of one stage.
Shards shards_of(const StatePlan& state, const Plan& plan, const std::vector<Coordinates>& ranks) {
  Shards out{{}, TensorGrid::whole(state.logical)};
  std::vector<std::set<std::int64_t>> cuts(out.grid.cuts.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const Box box = box_at(state, plan.mesh, ranks[r]);
    if (std::count(box.extent.begin(), box.extent.end(), 0) != 0) continue;
    for (const int stage : state.stages)
      out.holders[starts_of(box)].push_back(plan.rank_of(stage, static_cast<int>(r)));
    for (std::size_t d = 0; d < cuts.size(); ++d) {
      if (box.start[static_cast<int>(d)] > 0) cuts[d].insert(box.start[static_cast<int>(d)]);
    }
  }
  for (std::size_t d = 0; d < cuts.size(); ++d)
    out.grid.cuts[d].assign(cuts[d].begin(), cuts[d].end());
  return out;
}

/// Where the shard begins in which a cell lies.
std::vector<std::int64_t> shard_of(const TensorGrid& shards, const Box& cell) {
  std::vector<std::int64_t> out;
  for (std::size_t d = 0; d < shards.cuts.size(); ++d) {
    const auto& cuts = shards.cuts[d];
    const auto above = std::upper_bound(cuts.begin(), cuts.end(), cell.start[static_cast<int>(d)]);
    out.push_back(above == cuts.begin() ? 0 : *(above - 1));
  }
  return out;
}

}  // namespace

Box saved_box(const StatePlan& state, const Mesh& mesh, int rank) {
  return box_at(state, mesh, coordinates_of(mesh, rank));
}

RankShares share_among_ranks(const Plan& plan, std::int64_t file_bytes, const LeftOut& left_out) {
  RankShares out;
  out.ranks = static_cast<int>(plan.ranks());
  if (out.ranks > 1)
    file_bytes = std::max(total_bytes(plan, left_out) / (out.ranks * kPartsPerRank), kLeastPart);
  std::vector<Coordinates> ranks;
  for (int r = 0; r < plan.mesh.ranks(); ++r) ranks.push_back(coordinates_of(plan.mesh, r));
  std::vector<Shards> shards;  // of each tensor
  shards.reserve(plan.states.size());
  std::vector<const std::vector<int>*> holders;  // of each cell
  for (const std::size_t index : by_name(plan, left_out)) {
    const StatePlan& state = plan.states[index];
    const Shards& held = shards.emplace_back(shards_of(state, plan, ranks));
    const std::int64_t width = size_of(state.type.dtype);
    TensorGrid grid = held.grid.refined(std::max<std::int64_t>(file_bytes / width, 1));
    for (std::int64_t cell = 0; cell < grid.cells(); ++cell) {
      const Box box = grid.cell(cell);
      out.cells.push_back({out.tensors.size(), cell, box.extent.numel() * width, 0});
      holders.push_back(&held.holders.at(shard_of(held.grid, box)));
    }
    out.tensors.push_back(
        {{state.state.path, {state.type.dtype, state.logical, {}}, state.state.role},
         std::move(grid),
         {}});
    out.states.push_back(index);
  }
  // The largest first, each to the rank that has least so far.
  std::vector<std::size_t> order(out.cells.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return out.cells[a].bytes > out.cells[b].bytes;
  });
  std::vector<std::int64_t> load(static_cast<std::size_t>(out.ranks));
  const auto loaded = [&](int rank) -> std::int64_t& {
    return load[static_cast<std::size_t>(rank)];
  };
  for (const std::size_t i : order) {
    out.cells[i].rank = *std::min_element(holders[i]->begin(), holders[i]->end(),
                                          [&](int a, int b) { return loaded(a) < loaded(b); });
    loaded(out.cells[i].rank) += out.cells[i].bytes;
  }
  return out;
}

std::int64_t RankShares::bytes_of(int rank) const {
  std::int64_t out = 0;
  for (const Cell& cell : cells) out += cell.rank == rank ? cell.bytes : 0;
  return out;
}

std::int64_t RankShares::bytes() const {
  std::int64_t out = 0;
  for (const Cell& cell : cells) out += cell.bytes;
  return out;
}

std::int64_t most_bytes_of_a_share(const Plan& plan, const LeftOut& left_out) {
  const std::int64_t total = total_bytes(plan, left_out);
  if (plan.ranks() == 1) return total;
  const RankShares shares = share_among_ranks(plan, total, left_out);
  std::vector<std::int64_t> load(static_cast<std::size_t>(shares.ranks));
  for (const RankShares::Cell& cell : shares.cells)
    load[static_cast<std::size_t>(cell.rank)] += cell.bytes;
  return *std::max_element(load.begin(), load.end());
}

std::vector<CheckpointPiece> pieces_of(
    const RankShares& shares, const Plan& plan,
    const std::function<std::span<const std::byte>(std::string_view)>& state) {
  std::vector<CheckpointPiece> out;
  for (const RankShares::Cell& cell : shares.cells) {
    if (cell.rank != plan.rank) continue;
    const ManifestTensor& tensor = shares.tensors[cell.tensor];
    const StatePlan& of = plan.states[shares.states[cell.tensor]];
    const Box box = saved_box(of, plan.mesh, plan.rank_in_stage()),
              inside = tensor.grid.cell(cell.cell);
    const Shape strides = of.type.shape.strides();
    std::int64_t first = 0;
    for (int d = 0; d < strides.ndim(); ++d) first += (inside.start[d] - box.start[d]) * strides[d];
    out.push_back({cell.tensor, cell.cell,
                   state(tensor.entry.name).data() + first * size_of(of.type.dtype), strides});
  }
  return out;
}

}  // namespace tessera
