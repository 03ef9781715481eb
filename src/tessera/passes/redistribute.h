#pragma once
/// Redistribution: the cheapest sequence of moves from one sharding of a value to another.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tessera/passes/split_view.h"
#include "tessera/tensor/dtype.h"
#include "tessera/tensor/machine.h"
#include "tessera/tensor/sharding.h"

namespace tessera {

/// The effect of a move in each group of ranks that differ only on `axes` (n ranks, in order).
/// On [dp.tp], dp splits first and tp splits each part, so only the last axis of a dim can be added
/// or removed. N is the bytes that a rank stores before the move; padding is stored and sent too.
///
///   slice           replicated -> shard of `to`; each rank keeps its part      0 bytes
///   mark_partial    replicated -> partial; coordinate 0 keeps the value, the others hold the
///                   monoid's identity                                          0
///   all_gather      shard of `from` -> replicated; shards are joined in order and cut to the
///                   parent's extent                                            (n-1) N
///   reduce_scatter  partial -> shard of `to`; what is cut is padded first      (n-1) shards
///   all_reduce      partial -> replicated                                      2 (n-1)/n N
///   all_to_all      shard of `from` -> shard of `to`, axes in the same order; pieces are padded
///                   in both dims, so any sizes are legal                       (n-1) pieces
///   permute         each rank takes the whole shard of one other rank: every dim is cut at the
/// same places as before, by other axes or in another order; as many axes are partial
///                   as before (by the product of their sizes)                  N
///
/// An uneven dim may be cut at other places by other axes ([a.b] of 8 on 3 x 2 is not [b.a]): no
/// permute then, but gather and slice.
enum class MoveKind : std::uint8_t {
  Slice,
  MarkPartial,
  AllGather,
  ReduceScatter,
  AllReduce,
  AllToAll,
  Permute
};

struct Move {
  MoveKind kind = MoveKind::Slice;
  std::vector<std::string> axes;
  int from = -1;           // dim that the axes leave
  int to = -1;             // dim that they join
  std::int64_t bytes = 0;  // that each rank receives
  Sharding after;
  friend bool operator==(const Move&, const Move&) = default;
};
std::string_view to_text(MoveKind kind);
/// "all_to_all tp.cp 0->1 4096B [-,tp.cp]", "slice tp ->1 0B [-,tp]", "all_reduce dp 512B [-,-]"
std::string to_text(const Move& move);
Move parse_move(std::string_view line);

struct Redistribution {
  std::vector<Move> moves;  // none if nothing is to be done
  /// If there is one, the moves are of the value reshaped to it, and lead to its `to`.
  std::optional<SplitView> view = {};
  double seconds = 0;
  std::int64_t bytes() const;
  friend bool operator==(const Redistribution&, const Redistribution&) = default;
};

/// Plans redistributions on one mesh; remembers each, so that asking again is a look-up.
class Redistributor {
 public:
  /// A value moves along the axes that its two shardings name. `helpers` are axes that may take
  /// part too where the value is replicated on them: sliced, what is reduced is smaller.
  explicit Redistributor(Mesh mesh, Machine machine = {}, std::vector<std::string> helpers = {});
  ~Redistributor();

  /// A move takes its bytes at the price of its axes together (Machine::price), plus the latency
  /// per step: log2 n steps, twice for all_reduce, one for permute. A link's
  /// price is whole femtoseconds per byte, so that ties are ties: then the fewer moves win. Up to
  /// four axes the result is optimal among all paths of moves (with more than three dims: among
  /// those over the dims that either sharding cuts, filled up to three with the largest others);
  /// with more axes, among those that take each axis only to its place in `to`. If a path of the
  /// latter kind on the split view is cheaper still, it is taken: there, each axis can move alone.
  /// Along an axis of time only slices happen.
  ///
  /// Errors: axes that the mesh has not, or that a sharding names twice; several monoids in one
  /// sharding; more than 10 axes; a value that would have to move along time.
  const Redistribution& plan(const Shape& shape, DType dtype, const Sharding& from,
                             const Sharding& to);
  /// The seconds of a plan, without the plan: for callers that compare many. Infinite, not an
  /// error, if there is no plan.
  double seconds(const Shape& shape, DType dtype, const Sharding& from, const Sharding& to);

 private:
  struct Search;
  struct Setup;
  Setup set_up(const Mesh& mesh, const Shape& shape, DType dtype, const Sharding& from,
               const Sharding& to, bool split) const;
  std::unique_ptr<Search> explore(Setup& setup) const;
  /// The cheapest moves on the value as it is, or split; none if none lead there.
  std::optional<Redistribution> search(const Mesh& mesh, const Shape& shape, DType dtype,
                                       const Sharding& from, const Sharding& to, bool split);

  Mesh mesh_;
  Machine machine_;
  std::vector<std::string> helpers_;
  std::unordered_map<std::string, Redistribution> known_;
  std::unordered_map<std::string, std::unique_ptr<Search>> searches_;  // by shape and axes
};

}  // namespace tessera
