#pragma once
/// Collectives as values: what one call moves. A plan holds them; a communicator runs them.

#include <cstdint>
#include <string>
#include <string_view>

#include "tessera/tensor/dtype.h"
#include "tessera/tensor/shape.h"
#include "tessera/tensor/sharding.h"

namespace tessera {

enum class CollectiveKind : std::uint8_t {
  AllReduce,
  AllGather,
  ReduceScatter,
  AllToAll,
  Broadcast,
  Send,
  Recv,
  Barrier
};
constexpr int kNumCollectiveKinds = 8;
/// "all_reduce", "all_gather", ...
std::string_view to_text(CollectiveKind kind);

/// One call. Tensors are dense and row-major. `whole` is the larger side; the smaller side has the
/// `gather` or the `scatter` dim cut into chunks of ceil(size / ranks), as shards are (chunks of
/// one axis; several axes of a dim are gathered one by one, the last first). Padding beyond the
/// end of `whole` in a last chunk is neither read nor written.
///
/// kind            in                       out
/// all_reduce      whole                    whole: sums (max, min) over the ranks, in rank order
/// all_gather      whole cut on `gather`    whole
/// reduce_scatter  whole                    whole cut on `scatter`, reduced in rank order
/// all_to_all      whole cut on `gather`    whole cut on `scatter`
/// broadcast       whole, on `peer` only    whole
/// send            whole, to `peer`
/// recv                                     whole, from `peer`
///
/// With chosen rows, along dim 0: all_gather writes the member's own rows and those that are of use to
/// it, and zeros in place of others; reduce_scatter adds up those of members to whom a row is of use, and takes
/// others' for zeros. Only these rows travel.
///
/// Memory: `in` and `out` do not overlap, but may be the same in all_reduce and broadcast, and in
/// an all_gather over the outermost dim `in` may be its part of `out`.
struct Collective {
  CollectiveKind kind = CollectiveKind::Barrier;
  DType dtype = DType::F32;
  Monoid monoid = Monoid::Sum;
  int gather = -1;
  int scatter = -1;
  int peer = -1;  // index in the group
  Shape whole;
  std::string name;  // what it is for, in messages; need not be the same on all ranks
  ChosenRows rows = {};

  static Collective all_reduce(DType dtype, const Shape& whole, Monoid monoid, std::string name);
  static Collective all_gather(DType dtype, const Shape& whole, int dim, std::string name);
  static Collective reduce_scatter(DType dtype, const Shape& whole, int dim, Monoid monoid,
                                   std::string name);
  static Collective all_to_all(DType dtype, const Shape& whole, int gather, int scatter,
                               std::string name);
  static Collective broadcast(DType dtype, const Shape& whole, int root, std::string name);
  static Collective send(DType dtype, const Shape& whole, int to, std::string name);
  static Collective recv(DType dtype, const Shape& whole, int from, std::string name);
  static Collective barrier(std::string name);
  friend bool operator==(const Collective&, const Collective&) = default;
};

/// "all_reduce sum f32[1024]", "all_gather f32[4,8] on dim 1": all that the ranks must agree on.
std::string to_text(const Collective& c);

/// Bytes of `in` and of `out` on one of `ranks` ranks (0 where there is none).
std::int64_t in_bytes(const Collective& c, int ranks);
std::int64_t out_bytes(const Collective& c, int ranks);

/// Bytes that leave one rank of `ranks`, whatever the backend really does; chunks count padded.
/// For n ranks and B bytes of `whole`, C of a chunk:
///   all_reduce 2 (n-1) B / n (a ring; rounded down); all_gather, reduce_scatter (n-1) C;
///   all_to_all (n-1) of the pieces that two ranks exchange; broadcast (n-1) B / n (a pipeline's
///   mean; rounded down); send B; recv and barrier 0.
std::int64_t bytes_sent(const Collective& c, int ranks);

/// The same with chosen rows, of member `rank`: those that these ids say; `c` alone says the most.
std::int64_t bytes_sent(const Collective& c, int ranks, int rank, const std::int32_t* ids);

/// Errors: dims, peers or dtypes that the kind does not admit, among `ranks` ranks.
void validate(const Collective& c, int ranks);

}  // namespace tessera
