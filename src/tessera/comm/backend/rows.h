#pragma once
/// Collectives of chosen rows.

#include <algorithm>
#include <span>

#include "tessera/comm/collective.h"

namespace tessera::backend {

/// The rows of a call: where each lies, and whom it is of use to.
class RowsOf {
 public:
  RowsOf(const Collective& c, int ranks, const std::int32_t* ids)
      : rows_(c.rows),
        ids_(ids),
        of_chunk_((c.whole[0] + ranks - 1) / ranks * (c.rows.count / c.whole[0])),
        bytes_(c.whole.numel() / c.rows.count * size_of(c.dtype)) {}

  std::int64_t bytes() const { return bytes_; }  // of a row
  /// Rows from begin() to end() of `whole` are the chunk of a member, which begins with the first.
  std::int64_t begin(int member) const { return std::min(rows_.count, of_chunk_ * member); }
  std::int64_t end(int member) const { return begin(member + 1); }
  std::int64_t of_chunk() const { return of_chunk_; }
  bool has(std::int64_t row, int member) const {
    return rows_.has(ids_ + row * rows_.choices, member);
  }

 private:
  const ChosenRows& rows_;
  const std::int32_t* ids_;
  std::int64_t of_chunk_, bytes_;
};

/// The sum of the rows that `ins` hold of members to whom `row` is of use, in their order.
void add_row(const Collective& c, const RowsOf& rows, std::int64_t row,
             std::span<const void* const> ins, void* out);

/// As work(), of a call with chosen rows.
void work_on_rows(const Collective& c, int me, std::span<const void* const> ins, void* out,
                  const std::int32_t* ids);

}  // namespace tessera::backend
