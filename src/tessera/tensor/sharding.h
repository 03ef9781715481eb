#pragma once
/// The room `tensor`: dtypes, shapes, meshes, shardings, machines, tensors in host memory. Plain
/// values.
/// For: saying what a tensor is and how it is split over a mesh.
/// Not for: computing with it (ops, device), or deciding how it is split (passes).
/// Rejected: axes that meet on a dim in another order in another place. One order for a strategy
/// makes a placement one number per axis; strategies that need two orders are refused. Pipeline
/// stages as an axis: no dim is ever split along them, and every pass would have to leave it out.
///
/// Sharding: which mesh axes split which dim of a tensor, and along which axes it is partial (an
/// unfinished sum). docs/guides/scale.md introduces the notation, docs/glossary.md the words.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/tensor/mesh.h"
#include "tessera/tensor/monoid.h"
#include "tessera/tensor/shape.h"

namespace tessera {

struct Partial {
  std::string axis;
  Monoid monoid = Monoid::Sum;
  friend bool operator==(const Partial&, const Partial&) = default;
};

/// Per dim the mesh axes that split it, in order: the first splits the dim, the second splits each
/// part. Then the partial axes, sorted by name. The tensor is replicated along all other axes.
struct Sharding {
  std::vector<std::vector<std::string>> dims;
  std::vector<Partial> partial;

  static Sharding replicated(int ndim) {
    return {std::vector<std::vector<std::string>>(static_cast<std::size_t>(ndim)), {}};
  }

  int ndim() const { return static_cast<int>(dims.size()); }
  bool is_replicated() const;
  /// The dim that `axis` shards, or -1.
  int dim_of(std::string_view axis) const;
  bool is_partial(std::string_view axis) const;
  /// Without `axis`, wherever it is.
  Sharding without(std::string_view axis) const;
  /// With `axis` added to `dim` as its last axis: it splits each part.
  Sharding with(std::string_view axis, int dim) const;
  Sharding with_partial(std::string_view axis, Monoid monoid) const;
  friend bool operator==(const Sharding&, const Sharding&) = default;
};

/// "[dp.mb,-,tp]" or "[-,tp]+dp" (partial sum on dp) or "[-]+tp:max"
std::string to_text(const Sharding& sharding);
Sharding parse_sharding(std::string_view line);

/// The coordinates of one rank on the mesh, by axis. The coordinate of the axis of time is the
/// micro-batch. An absent axis counts as 0.
using Coordinates = std::map<std::string, std::int64_t, std::less<>>;

/// Ranks are numbered row by row, without axes of time: on dp=2 tp=4, rank 5 has dp 1, tp 1.
Coordinates coordinates_of(const Mesh& mesh, std::int64_t rank);
/// Along an axis or a part of one.
std::int64_t coordinate(const Mesh& mesh, const Coordinates& at, std::string_view axis);
std::int64_t rank_at(const Mesh& mesh, const Coordinates& at);
/// The ranks that differ from `rank` along these axes alone, row by row.
std::vector<std::int64_t> ranks_along(const Mesh& mesh, const std::vector<std::string>& axes,
                                      std::int64_t rank);

/// One rank's part of a dim. Each axis splits the parts that the one before it made, rounding up:
/// 10 elements on an axis of 4 are parts of 3 at 0, 3, 6, 9; the last has 1 valid and 2 of padding.
struct Extent {
  std::int64_t start = 0;   // logical index of the first element
  std::int64_t valid = 0;   // elements inside the logical extent
  std::int64_t padded = 0;  // elements stored; equal on all ranks
  friend bool operator==(const Extent&, const Extent&) = default;
};
Extent extent(std::int64_t size, const std::vector<std::string>& axes, const Mesh& mesh,
              const Coordinates& at);

/// For a permute from sharding `from` to `to` among the ranks of `axes`: true if the shard that the
/// rank at `sender` holds is the one that the rank at `receiver` needs (same part, same partial
/// term, same copy).
bool permutes(const Sharding& from, const Coordinates& sender, const Sharding& to,
              const Coordinates& receiver, const std::vector<std::string>& axes, const Mesh& mesh);

/// The shape that each rank stores, padding included.
Shape local_shape(const Shape& global, const Sharding& sharding, const Mesh& mesh);

/// Where a value is: its sharding and its memory.
enum class Memory : std::uint8_t { Device, Host };
struct Placement {
  Sharding sharding;
  Memory memory = Memory::Device;
  friend bool operator==(const Placement&, const Placement&) = default;
};
std::string to_text(const Placement& placement);
Placement parse_placement(std::string_view line);

/// Of which rows a member of a group of ranks has a use: each row has `choices` ids, of which member i looks
/// after those from i x per_member on, `per_member` of them; another id is nobody's. The ids [count,
/// choices] of i32 are handed over with the call, the same ones on all members.
struct ChosenRows {
  std::int64_t choices = 0;  // 0: of all
  std::int64_t per_member = 0;
  std::int64_t count = 0;  // of rows

  /// Whether a row with these ids is of use to the member.
  bool has(const std::int32_t* ids, int member) const {
    const std::int64_t first = member * per_member;
    for (std::int64_t i = 0; i < choices; ++i)
      if (ids[i] >= first && ids[i] < first + per_member) return true;
    return false;
  }
  friend bool operator==(const ChosenRows&, const ChosenRows&) = default;
};

/// The share of rows that are of use to a member, where each of their ids is another one and as
/// likely as any; 1 of all rows.
double mean_share(const ChosenRows& rows, int members);

}  // namespace tessera
