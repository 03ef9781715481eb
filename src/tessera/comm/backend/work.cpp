#include "tessera/comm/backend/work.h"

#include "tessera/comm/backend/parts.h"
#include "tessera/comm/backend/reduce.h"
#include "tessera/comm/backend/rows.h"

namespace tessera::backend {

void work(const Collective& c, int me, std::span<const void* const> ins, void* out,
          const std::int32_t* ids) {
  const int n = static_cast<int>(ins.size()), bytes = size_of(c.dtype);
  const std::span<void* const> outs(&out, 1);
  // Each rank begins with its own part and goes on to the next rank's, so that they do not all read
  // one rank's memory.
  const auto each_peer = [&](const auto& visit) {
    for (int k = 0; k < n; ++k) visit((me + k) % n, ins[static_cast<std::size_t>((me + k) % n)]);
  };
  if (c.rows.choices > 0) return work_on_rows(c, me, ins, out, ids);
  switch (c.kind) {
    case CollectiveKind::AllReduce:
      return reduce(c.dtype, c.monoid, ins, 0, outs, 0, c.whole.numel());
    case CollectiveKind::AllGather:
      return each_peer([&](int peer, const void* in) {
        copy(gathered(c.whole, c.gather, n, peer), bytes, in, out);
      });
    case CollectiveKind::AllToAll:
      return each_peer(
          [&](int peer, const void* in) { copy(exchanged(c, n, peer, me), bytes, in, out); });
    case CollectiveKind::ReduceScatter: {
      const Part part = scattered(c.whole, c.scatter, n, me);
      return for_rows(part, [&](std::int64_t from, std::int64_t to) {
        reduce(c.dtype, c.monoid, ins, from, outs, to, part.row);
      });
    }
    case CollectiveKind::Broadcast:
      return copy(flat(0, c.whole.numel()), bytes, ins[static_cast<std::size_t>(c.peer)], out);
    case CollectiveKind::Send:
    case CollectiveKind::Recv:
    case CollectiveKind::Barrier: return;
  }
}

}  // namespace tessera::backend
