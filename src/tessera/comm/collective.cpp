#include "tessera/comm/collective.h"

#include <array>
#include <utility>

#include "tessera/base/error.h"

namespace tessera {

namespace {

constexpr std::array<const char*, kNumCollectiveKinds> kKinds = {
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all",
    "broadcast",  "send",       "recv",           "barrier"};

bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter;
}
bool gathers(CollectiveKind kind) {
  return kind == CollectiveKind::AllGather || kind == CollectiveKind::AllToAll;
}
bool scatters(CollectiveKind kind) {
  return kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllToAll;
}

std::int64_t whole_bytes(const Collective& c) {
  return c.kind == CollectiveKind::Barrier ? 0 : c.whole.numel() * size_of(c.dtype);
}

/// Bytes of `whole` with one dim, or none, cut.
std::int64_t cut_bytes(const Collective& c, int dim, int ranks) {
  if (dim < 0) return whole_bytes(c);
  Shape shape = c.whole;
  shape[dim] = (shape[dim] + ranks - 1) / ranks;
  return shape.numel() * size_of(c.dtype);
}

}  // namespace

std::string_view to_text(CollectiveKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

Collective Collective::all_reduce(DType dtype, const Shape& whole, Monoid monoid,
                                  std::string name) {
  return {CollectiveKind::AllReduce, dtype, monoid, -1, -1, -1, whole, std::move(name)};
}
Collective Collective::all_gather(DType dtype, const Shape& whole, int dim, std::string name) {
  return {CollectiveKind::AllGather, dtype, Monoid::Sum, dim, -1, -1, whole, std::move(name)};
}
Collective Collective::reduce_scatter(DType dtype, const Shape& whole, int dim, Monoid monoid,
                                      std::string name) {
  return {CollectiveKind::ReduceScatter, dtype, monoid, -1, dim, -1, whole, std::move(name)};
}
Collective Collective::all_to_all(DType dtype, const Shape& whole, int gather, int scatter,
                                  std::string name) {
  return {CollectiveKind::AllToAll, dtype, Monoid::Sum, gather, scatter, -1, whole,
          std::move(name)};
}
Collective Collective::broadcast(DType dtype, const Shape& whole, int root, std::string name) {
  return {CollectiveKind::Broadcast, dtype, Monoid::Sum, -1, -1, root, whole, std::move(name)};
}
Collective Collective::send(DType dtype, const Shape& whole, int to, std::string name) {
  return {CollectiveKind::Send, dtype, Monoid::Sum, -1, -1, to, whole, std::move(name)};
}
Collective Collective::recv(DType dtype, const Shape& whole, int from, std::string name) {
  return {CollectiveKind::Recv, dtype, Monoid::Sum, -1, -1, from, whole, std::move(name)};
}
Collective Collective::barrier(std::string name) {
  Collective c;
  c.name = std::move(name);
  return c;
}

std::string to_text(const Collective& c) {
  std::string out(to_text(c.kind));
  if (c.kind == CollectiveKind::Barrier) return out;
  if (reduces(c.kind)) out += text(" ", to_text(c.monoid));
  out += text(" ", to_text(c.dtype), c.whole);
  if (c.kind == CollectiveKind::AllGather) out += text(" on dim ", c.gather);
  if (c.kind == CollectiveKind::ReduceScatter) out += text(" on dim ", c.scatter);
  if (c.kind == CollectiveKind::AllToAll)
    out += text(" from dim ", c.scatter, " to dim ", c.gather);
  if (c.kind == CollectiveKind::Broadcast || c.kind == CollectiveKind::Recv)
    out += text(" from member ", c.peer);
  if (c.kind == CollectiveKind::Send) out += text(" to member ", c.peer);
  if (c.rows.choices > 0)
    out += text(" of rows chosen by ", c.rows.choices, " ids each, ", c.rows.per_member,
                " of a member");
  return out;
}

std::int64_t in_bytes(const Collective& c, int ranks) {
  return c.kind == CollectiveKind::Recv ? 0 : cut_bytes(c, c.gather, ranks);
}

std::int64_t out_bytes(const Collective& c, int ranks) {
  return c.kind == CollectiveKind::Send ? 0 : cut_bytes(c, c.scatter, ranks);
}

namespace {

/// bytes * parts / ranks, rounded down; the product itself may be more than 64 bits hold.
std::int64_t share(std::int64_t bytes, std::int64_t parts, std::int64_t ranks) {
  return bytes / ranks * parts + bytes % ranks * parts / ranks;
}

}  // namespace

std::int64_t bytes_sent(const Collective& c, int ranks) {
  const std::int64_t others = ranks - 1;
  switch (c.kind) {
    case CollectiveKind::AllReduce: return share(whole_bytes(c), 2 * others, ranks);
    case CollectiveKind::AllGather: return others * in_bytes(c, ranks);
    case CollectiveKind::ReduceScatter: return others * out_bytes(c, ranks);
    case CollectiveKind::AllToAll: {
      Collective cut = c;
      cut.whole[c.gather] = (c.whole[c.gather] + ranks - 1) / ranks;
      return others * cut_bytes(cut, c.scatter, ranks);
    }
    case CollectiveKind::Broadcast: return share(whole_bytes(c), others, ranks);
    case CollectiveKind::Send: return whole_bytes(c);
    case CollectiveKind::Recv:
    case CollectiveKind::Barrier: return 0;
  }
  return 0;
}

std::int64_t bytes_sent(const Collective& c, int ranks, int rank, const std::int32_t* ids) {
  const ChosenRows& rows = c.rows;
  if (rows.choices == 0) return bytes_sent(c, ranks);
  const std::int64_t of_chunk = (c.whole[0] + ranks - 1) / ranks * (rows.count / c.whole[0]);
  std::int64_t sent = 0;
  const bool gathers = c.kind == CollectiveKind::AllGather;
  for (std::int64_t i = 0; i < rows.count; ++i) {
    // Of the rows that it has it sends those that others want; of others' rows, its parts of sums.
    const bool own = i / of_chunk == rank;
    const std::int32_t* const chosen = ids + i * rows.choices;
    if (!gathers) sent += !own && rows.has(chosen, rank) ? 1 : 0;
    for (int j = 0; gathers && own && j < ranks; ++j)
      sent += j != rank && rows.has(chosen, j) ? 1 : 0;
  }
  return sent * (whole_bytes(c) / rows.count);
}

void validate(const Collective& c, int ranks) {
  const auto is_dim = [&](int dim) { return dim >= 0 && dim < c.whole.ndim(); };
  const bool has_peer = c.kind == CollectiveKind::Broadcast || c.kind == CollectiveKind::Send ||
                        c.kind == CollectiveKind::Recv;
  check(!gathers(c.kind) || is_dim(c.gather), c, " '", c.name, "': no such dim");
  check(!scatters(c.kind) || is_dim(c.scatter), c, " '", c.name, "': no such dim");
  check(c.kind != CollectiveKind::AllToAll || c.gather != c.scatter, c, " '", c.name,
        "': one dim twice");
  const bool chosen_first = c.kind == CollectiveKind::AllGather ? c.gather == 0
                            : c.kind == CollectiveKind::ReduceScatter
                                ? c.scatter == 0 && combining(c.monoid) == Monoid::Sum
                                : false;
  check(c.rows.choices == 0 ||
            (chosen_first && c.rows.per_member > 0 && c.rows.count > 0 &&
             c.rows.count % c.whole[0] == 0 && c.whole.numel() % c.rows.count == 0),
        c, " '", c.name, "': rows are chosen in all_gather and sums of reduce_scatter along dim 0");
  check(!has_peer || (c.peer >= 0 && c.peer < ranks), c, " '", c.name, "': the group has ", ranks,
        " members");
  if (!reduces(c.kind)) return;
  check(c.dtype != DType::Bool || c.monoid != Monoid::Sum, c, " '", c.name,
        "': booleans have no sum; max is or, min is and");
}

}  // namespace tessera
