#pragma once
/// A value seen with its dims split wherever one of two shardings cuts them.

#include <optional>

#include "tessera/tensor/sharding.h"

namespace tessera {

/// Shards nest: on [a.b], a cuts first and b cuts each of its shards, so that b cannot leave or
/// join the dim before a does. Split in two, the same dim is [a,b], and each can move alone.
///
///   f32[2,4096] on a=2 b=16 from [a,-] to [-,a.b]: f32[2,2,2048] from [a,-,-] to [-,a,b]
///
/// An axis that crosses a cut of the other sharding is split as well, into parts (axis_part):
/// f32[6] on a=2 b=6 from [a] to [b] is f32[2,3] from [a,-] to [b__1x2,b__2x3].
///
/// Row-major memory is the same in both views, so that going from one to the other is a reshape.
struct SplitView {
  Shape shape;
  Sharding from, to;
  Mesh mesh;          // with the parts of axes in their places: ranks have the same numbers
  bool exact = true;  // every cut that both can have is a border
  friend bool operator==(const SplitView&, const SplitView&) = default;
};

/// The coarsest view in which every cut of `from` and of `to` that both can have is a border
/// between dims: the shape itself where no dim needs to be split. Where that had more than
/// Shape::kMaxDims dims, axes that are neighbours before and after share a dim, and if need be axes
/// stay in one part. None if axes cut a dim unevenly, because reshapes of padded shards are no
/// views, or if there were too many dims even so.
std::optional<SplitView> split_view(const Shape& shape, const Sharding& from, const Sharding& to,
                                    const Mesh& mesh);

}  // namespace tessera
