#pragma once
/// Sharding: which dim of a tensor lies along which axes of the mesh, and which sums are still to
/// be finished.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/tensor/mesh.h"
#include "tessera/tensor/shape.h"

namespace tessera {

/// How partial values of several ranks combine.
enum class Monoid : std::uint8_t { Sum, Max, Min };

struct Partial {
  std::string axis;
  Monoid monoid = Monoid::Sum;
  friend bool operator==(const Partial&, const Partial&) = default;
};

/// Per dim an ordered list of mesh axes, major first; a set of partial axes, sorted by name;
/// replicated on all others.
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
  /// With `axis` as the minor-most axis of `dim`.
  Sharding with(std::string_view axis, int dim) const;
  Sharding with_partial(std::string_view axis, Monoid monoid) const;
  friend bool operator==(const Sharding&, const Sharding&) = default;
};

/// "[dp.mb,-,tp]" or "[-,tp]+dp" (partial sum on dp) or "[-]+tp:max"
std::string to_text(const Sharding& sharding);
Sharding parse_sharding(std::string_view line);

/// Coordinates of one rank, with the micro-batch as the coordinate of a time axis. Absent axes
/// count as 0.
using Coordinates = std::map<std::string, std::int64_t, std::less<>>;

/// Ranks number the coordinates of the mesh row by row, axes of time left out.
Coordinates coordinates_of(const Mesh& mesh, std::int64_t rank);
std::int64_t rank_at(const Mesh& mesh, const Coordinates& at);

/// One rank's part of a dim. Shards nest: each axis, major to minor, ceil-divides its parent's
/// padded extent.
struct Extent {
  std::int64_t start = 0;   // logical index of the first element
  std::int64_t valid = 0;   // elements inside the logical extent
  std::int64_t padded = 0;  // elements stored; equal on all ranks
  friend bool operator==(const Extent&, const Extent&) = default;
};
Extent extent(std::int64_t size, const std::vector<std::string>& axes, const Mesh& mesh,
              const Coordinates& at);

/// True where, of a value that goes from one sharding to another by handing whole shards on among
/// the ranks of `axes`, the rank at `sender` holds what the one at `receiver` is to hold: the same
/// shard, the same addend, the same copy.
bool permutes(const Sharding& from, const Coordinates& sender, const Sharding& to,
              const Coordinates& receiver, const std::vector<std::string>& axes, const Mesh& mesh);

/// The shape that each rank stores: padded extents.
Shape local_shape(const Shape& global, const Sharding& sharding, const Mesh& mesh);

/// Where a value lies: its sharding and its memory.
enum class Memory : std::uint8_t { Device, Host };
struct Placement {
  Sharding sharding;
  Memory memory = Memory::Device;
  friend bool operator==(const Placement&, const Placement&) = default;
};
std::string to_text(const Placement& placement);
Placement parse_placement(std::string_view line);

}  // namespace tessera
