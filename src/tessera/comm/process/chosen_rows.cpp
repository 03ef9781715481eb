/// Collectives of chosen rows: in blocks of so many rows of each chunk, of which those that are of
/// use travel, one behind another.

#include <algorithm>
#include <cstring>

#include "tessera/comm/backend/rows.h"
#include "tessera/comm/process/communicator.h"

namespace tessera::process {

namespace {

using backend::RowsOf;

constexpr int kBlocks = 2;  // under way

const std::byte* row_of(const void* memory, std::int64_t row, std::int64_t bytes) {
  return static_cast<const std::byte*>(memory) + row * bytes;
}

}  // namespace

void ProcessCommunicator::move_rows(const Collective& c, const void* in, void* out,
                                    const std::int32_t* ids) {
  const int n = size(), me = rank();
  const RowsOf rows(c, n, ids);
  const std::int64_t bytes = rows.bytes();
  const std::int64_t of_block =
      std::max<std::int64_t>(1, segment_elements(c) * size_of(c.dtype) / bytes);
  const std::int64_t blocks = (rows.of_chunk() + of_block - 1) / of_block;
  const bool gathers = c.kind == CollectiveKind::AllGather;
  std::byte* const staging =
      world_.under_way().staging(static_cast<std::size_t>(2 * kBlocks * n * of_block * bytes));
  const auto staged = [&](std::int64_t block, bool incoming, int member) {
    return staging + ((block % kBlocks * 2 + (incoming ? 0 : 1)) * n + member) * of_block * bytes;
  };
  // Visits the rows of a block of `chunk`'s that are of use to `user`.
  const auto each_row = [&](std::int64_t block, int chunk, int user, const auto& visit) {
    const std::int64_t begin = rows.begin(chunk) + block * of_block,
                       end = std::min(begin + of_block, rows.end(chunk));
    for (std::int64_t row = begin; row < end; ++row)
      if (rows.has(row, user)) visit(row);
  };
  const auto post = [&](std::int64_t block) {
    const auto slot = static_cast<int>(block % kBlocks);
    for (int k = 1; k < n; ++k) {
      const int j = (me + n - k) % n;
      std::int64_t count = 0;
      each_row(block, gathers ? j : me, gathers ? me : j, [&](std::int64_t) { ++count; });
      receive(slot, staged(block, true, j), count * bytes, j, kData);
    }
    for (int k = 1; k < n; ++k) {
      const int j = (me + k) % n;
      std::byte* const first = staged(block, false, j);
      std::byte* to = first;
      each_row(block, gathers ? me : j, gathers ? j : me, [&](std::int64_t row) {
        std::memcpy(to, row_of(in, gathers ? row - rows.begin(me) : row, bytes),
                    static_cast<std::size_t>(bytes));
        to += bytes;
      });
      send(slot, first, to - first, j, kData);
    }
  };
  const auto take_gathered = [&](std::int64_t block) {
    auto* const whole = static_cast<std::byte*>(out);
    for (int j = 0; j < n; ++j) {
      const std::int64_t begin = rows.begin(j) + block * of_block,
                         end = std::min(begin + of_block, rows.end(j));
      const std::byte* from =
          j == me ? row_of(in, block * of_block, bytes) : staged(block, true, j);
      for (std::int64_t row = begin; row < end; ++row) {
        std::byte* const to = whole + row * bytes;
        if (j != me && !rows.has(row, me)) {
          std::memset(to, 0, static_cast<std::size_t>(bytes));
          continue;
        }
        if (to != from) std::memcpy(to, from, static_cast<std::size_t>(bytes));
        from += bytes;
      }
    }
  };
  const auto take_sums = [&](std::int64_t block) {
    std::ranges::fill(taken_, 0);
    const std::int64_t begin = rows.begin(me) + block * of_block,
                       end = std::min(begin + of_block, rows.end(me));
    for (std::int64_t row = begin; row < end; ++row) {
      for (int j = 0; j < n; ++j) {
        const auto i = static_cast<std::size_t>(j);
        ins_[i] =
            j == me ? row_of(in, row, bytes) : row_of(staged(block, true, j), taken_[i], bytes);
        taken_[i] += rows.has(row, j) ? 1 : 0;
      }
      backend::add_row(c, rows, row, ins_,
                       static_cast<std::byte*>(out) + (row - rows.begin(me)) * bytes);
    }
  };
  for (std::int64_t t = 0; t < blocks + 1; ++t) {
    if (t < blocks) post(t);
    if (t < 1) continue;
    await_slot(c, static_cast<int>((t - 1) % kBlocks));
    gathers ? take_gathered(t - 1) : take_sums(t - 1);
  }
}

}  // namespace tessera::process
