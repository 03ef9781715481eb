#pragma once
/// Rows that ranks send each other where the receiver has a use for them.

#include <cstdint>

namespace tessera {

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
