#pragma once
/// Which rank writes which part of the states: each rank only what it holds, each element once, and
/// of what several ranks hold each a share.

#include <cstdint>
#include <functional>
#include <vector>

#include "tessera/checkpoint/checkpoint_write.h"
#include "tessera/plan/plan.h"

namespace tessera {

struct RankShares {
  struct Cell {
    std::size_t tensor = 0;
    std::int64_t cell = 0, bytes = 0;
    int rank = 0;  // that writes it
  };
  int ranks = 1;
  std::vector<ManifestTensor> tensors;  // without slices, in the order of names
  std::vector<std::size_t> states;      // of each tensor, its place in the plan
  std::vector<Cell> cells;              // in the order of tensors and cells

  std::int64_t bytes() const;
  std::int64_t bytes_of(int rank) const;
};

/// The same on every rank. One rank's cells have at most `file_bytes`; those of
/// several are small enough to be shared out evenly.
RankShares share_among_ranks(const Plan& plan, std::int64_t file_bytes,
                             const LeftOut& left_out = {});

/// Bytes of the rank that writes most. Errors: Fault::Usage: more than 64 bits count.
std::int64_t most_bytes_of_a_share(const Plan& plan, const LeftOut& left_out = {});

/// The elements of a state that a rank of a stage holds, without padding.
Box saved_box(const StatePlan& state, const Mesh& mesh, int rank);

/// What the plan's rank writes, in the memory of its states.
std::vector<CheckpointPiece> pieces_of(
    const RankShares& shares, const Plan& plan,
    const std::function<std::span<const std::byte>(std::string_view)>& state);

}  // namespace tessera
