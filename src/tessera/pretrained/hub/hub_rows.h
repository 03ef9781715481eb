#pragma once
/// Where the rows of a hub's tensor lie in one of our parameters.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tessera/pretrained/hub/hub_family.h"

namespace tessera {

/// Rows that lie together in both.
struct HubRowRun {
  std::int64_t ours = 0, theirs = 0, count = 0;
};

/// All rows of a tensor of which theirs has so many, in the order of ours. `rows` must be
/// hub_row_count; a row of experts is all that one of them has.
std::vector<HubRowRun> hub_row_runs(HubRows which, const ModelConfig& config, std::int64_t rows,
                                    std::int64_t expert = 0);

/// Of experts that lie together in one tensor: what of ours is in which of their results.
struct HubTurns {
  std::int64_t of, at;  // every `of`-th result is ours, from the one `at` on
  /// Where element i of an expert of ours, [out, in], is in theirs: [in, of x out].
  std::int64_t place(std::int64_t i, std::int64_t out, std::int64_t in) const {
    return i % in * of * out + of * (i / in) + at;
  }
};
/// Nothing: experts, if it is of any, do not lie together.
std::optional<HubTurns> hub_turns(HubRows which);

/// How many rows their tensor has; `rows` where that does not follow from the heads.
std::int64_t hub_row_count(HubRows which, const ModelConfig& config, std::int64_t rows);

/// How many rows of ours a tensor of theirs with so many has.
std::int64_t our_row_count(HubRows which, std::int64_t theirs);

/// The shape of their tensor for a parameter of ours. `transposed`: it is [in, out], if it is a
/// matrix.
Shape hub_shape(HubRows which, bool transposed, const Shape& ours, const ModelConfig& config);

/// The model, whose heads are those of the stack that the parameter is of.
ModelConfig of_stack(ModelConfig config, std::string_view parameter);

}  // namespace tessera
