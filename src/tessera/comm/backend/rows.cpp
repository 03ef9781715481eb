#include "tessera/comm/backend/rows.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "tessera/comm/backend/reduce.h"

namespace tessera::backend {

namespace {

constexpr std::size_t kFewMembers = 64;  // for which nothing is allocated

const char* row_at(const void* memory, std::int64_t row, std::int64_t bytes) {
  return static_cast<const char*>(memory) + row * bytes;
}
char* row_at(void* memory, std::int64_t row, std::int64_t bytes) {
  return static_cast<char*>(memory) + row * bytes;
}

}  // namespace

void add_row(const Collective& c, const RowsOf& rows, std::int64_t row,
             std::span<const void* const> ins, void* out) {
  std::array<const void*, kFewMembers> few;
  std::vector<const void*> many(ins.size() > kFewMembers ? ins.size() : 0);
  const std::span<const void*> room = many.empty() ? std::span(few) : std::span(many);
  std::size_t count = 0;
  for (std::size_t j = 0; j < ins.size(); ++j)
    if (rows.has(row, static_cast<int>(j))) room[count++] = ins[j];
  const std::array<void*, 1> to = {out};
  if (count == 0)
    std::memset(out, 0, static_cast<std::size_t>(rows.bytes()));
  else if (count == 1)
    std::memcpy(out, room[0], static_cast<std::size_t>(rows.bytes()));
  else
    reduce(c.dtype, c.monoid, room.first(count), 0, to, 0, rows.bytes() / size_of(c.dtype));
}

void work_on_rows(const Collective& c, int me, std::span<const void* const> ins, void* out,
                  const std::int32_t* ids) {
  const int n = static_cast<int>(ins.size());
  const RowsOf rows(c, n, ids);
  const std::int64_t bytes = rows.bytes();
  if (c.kind == CollectiveKind::AllGather) {
    for (int k = 0; k < n; ++k) {
      const int peer = (me + k) % n;
      const void* const in = ins[static_cast<std::size_t>(peer)];
      for (std::int64_t row = rows.begin(peer); row < rows.end(peer); ++row) {
        char* const to = row_at(out, row, bytes);
        const char* const from = row_at(in, row - rows.begin(peer), bytes);
        if (peer != me && !rows.has(row, me))
          std::memset(to, 0, static_cast<std::size_t>(bytes));
        else if (to != from)
          std::memcpy(to, from, static_cast<std::size_t>(bytes));
      }
    }
    return;
  }
  std::vector<const void*> many(ins.size() > kFewMembers ? ins.size() : 0);
  std::array<const void*, kFewMembers> few;
  const std::span<const void*> of_row =
      (many.empty() ? std::span<const void*>(few) : std::span<const void*>(many)).first(ins.size());
  for (std::int64_t row = rows.begin(me); row < rows.end(me); ++row) {
    for (std::size_t j = 0; j < ins.size(); ++j) of_row[j] = row_at(ins[j], row, bytes);
    add_row(c, rows, row, of_row, row_at(out, row - rows.begin(me), bytes));
  }
}

}  // namespace tessera::backend
