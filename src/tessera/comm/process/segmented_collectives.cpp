/// Large operands: they move in segments, so that a rank adds one while the next is under way.

#include <algorithm>
#include <array>
#include <cstring>

#include "tessera/comm/backend/reduce.h"
#include "tessera/comm/backend/work.h"
#include "tessera/comm/process/communicator.h"

namespace tessera::process {

namespace {

using backend::Part;
using backend::Span;

constexpr int kPhase = 2;  // slots of one phase: segments under way

/// What of `span` belongs to one segment.
Span piece(const Span& span, std::int64_t segment, std::int64_t elements) {
  const std::int64_t begin = std::min(span.end, span.begin + segment * elements);
  return {begin, std::min(span.end, begin + elements)};
}

std::int64_t pieces(std::int64_t count, std::int64_t elements) {
  return (count + elements - 1) / elements;
}

const std::byte* at(const void* memory, std::int64_t element, int bytes) {
  return static_cast<const std::byte*>(memory) + element * bytes;
}
std::byte* at(void* memory, std::int64_t element, int bytes) {
  return static_cast<std::byte*>(memory) + element * bytes;
}

}  // namespace

void ProcessCommunicator::move_data(const Collective& c, const void* in, void* out) {
  if (size() == 1) {
    ins_[0] = in;
    return backend::work(c, 0, ins_, out, nullptr);
  }
  // Two phases with two segments each, to and from every member.
  const auto staged = static_cast<std::size_t>(segment_elements(c) * size_of(c.dtype));
  world_.under_way().staging(2 * kPhase * static_cast<std::size_t>(size()) * staged);
  switch (c.kind) {
    case CollectiveKind::AllReduce: return all_reduce(c, in, out);
    case CollectiveKind::Broadcast: return broadcast(c, in, out);
    case CollectiveKind::AllGather: return all_gather(c, in, out);
    case CollectiveKind::AllToAll: return all_to_all(c, in, out);
    case CollectiveKind::ReduceScatter: return reduce_scatter(c, in, out);
    case CollectiveKind::Send:
    case CollectiveKind::Recv:
    case CollectiveKind::Barrier: return;
  }
}

// ---- Whole tensors in flat shares: share r is rank r's business.

/// Runs first(s), between(s) and second(s) for every segment s: what first has begun is over before
/// between, what second has begun before the end.
template <typename First, typename Between, typename Second>
void ProcessCommunicator::two_phases(const Collective& c, std::int64_t segments, const First& first,
                                     const Between& between, const Second& second) {
  for (std::int64_t t = 0; t < segments + 1 + kPhase; ++t) {
    if (t < segments) first(t, static_cast<int>(t % kPhase));
    if (t >= 1 && t - 1 < segments) {
      await_slot(c, static_cast<int>((t - 1) % kPhase));
      between(t - 1);
      second(t - 1, kPhase + static_cast<int>((t - 1) % kPhase));
    }
    if (t >= kPhase && t - kPhase < segments)
      await_slot(c, kPhase + static_cast<int>((t - kPhase) % kPhase));
  }
}

void ProcessCommunicator::all_reduce(const Collective& c, const void* in, void* out) {
  const std::int64_t count = c.whole.numel(), elements = segment_elements(c);
  const int bytes = size_of(c.dtype), me = rank();
  const auto share = [&](int j) { return backend::share(count, size(), j); };
  const auto mine = [&](std::int64_t s) { return piece(share(me), s, elements); };
  const auto collect = [&](std::int64_t s, int slot) {
    const Span own = mine(s);
    for (int k = 1; k < size(); ++k) {
      const int j = (me + size() - k) % size();
      receive(slot, staged_in(c, s, j), (own.end - own.begin) * bytes, j, kData);
    }
    for (int k = 1; k < size(); ++k) {
      const int j = (me + k) % size();
      const Span theirs = piece(share(j), s, elements);
      send(slot, at(in, theirs.begin, bytes), (theirs.end - theirs.begin) * bytes, j, kData);
    }
  };
  const auto add = [&](std::int64_t s) {
    const Span own = mine(s);
    for (int j = 0; j < size(); ++j) {
      ins_[static_cast<std::size_t>(j)] =
          j == me ? static_cast<const void*>(at(in, own.begin, bytes)) : staged_in(c, s, j);
    }
    const std::array<void*, 1> target = {at(out, own.begin, bytes)};
    backend::reduce(c.dtype, c.monoid, ins_, 0, target, 0, own.end - own.begin);
  };
  const auto spread = [&](std::int64_t s, int slot) {
    const Span own = mine(s);
    for (int k = 1; k < size(); ++k) {
      const int j = (me + size() - k) % size();
      const Span theirs = piece(share(j), s, elements);
      receive(slot, at(out, theirs.begin, bytes), (theirs.end - theirs.begin) * bytes, j, kReduced);
    }
    for (int k = 1; k < size(); ++k) {
      const int j = (me + k) % size();
      send(slot, at(out, own.begin, bytes), (own.end - own.begin) * bytes, j, kReduced);
    }
  };
  const Span longest = share(size() - 1);
  two_phases(c, pieces(longest.end - longest.begin + 64, elements), collect, add, spread);
}

/// The root gives every rank its share, and each gives it on to the others.
void ProcessCommunicator::broadcast(const Collective& c, const void* in, void* out) {
  const std::int64_t count = c.whole.numel(), elements = segment_elements(c);
  const int bytes = size_of(c.dtype), me = rank(), root = c.peer;
  const auto part = [&](std::int64_t s, int j) {
    return piece(backend::share(count, size(), j), s, elements);
  };
  if (me == root) {
    if (in != out) std::memcpy(out, in, static_cast<std::size_t>(count * bytes));
  }
  const auto give = [&](int slot, const Span& span, int j, Tag tag) {
    send(slot, at(out, span.begin, bytes), (span.end - span.begin) * bytes, j, tag);
  };
  const auto take = [&](int slot, const Span& span, int j, Tag tag) {
    receive(slot, at(out, span.begin, bytes), (span.end - span.begin) * bytes, j, tag);
  };
  const auto deal = [&](std::int64_t s, int slot) {
    if (me != root) return take(slot, part(s, me), root, kData);
    for (int j = 0; j < size(); ++j) {
      if (j != me) give(slot, part(s, j), j, kData);
    }
  };
  const auto give_on = [&](std::int64_t s, int slot) {
    for (int k = 1; k < size() && me != root; ++k) {
      const int j = (me + size() - k) % size();
      take(slot, part(s, j), j, kReduced);
    }
    for (int k = 1; k < size(); ++k) {
      const int j = (me + k) % size();
      if (j != root) give(slot, part(s, me), j, kReduced);
    }
  };
  const Span longest = backend::share(count, size(), size() - 1);
  two_phases(
      c, pieces(longest.end - longest.begin + 64, elements), deal, [](std::int64_t) {}, give_on);
}

// ---- Parts: what goes from each rank to each.

void ProcessCommunicator::all_gather(const Collective& c, const void* in, void* out) {
  const int me = rank(), bytes = size_of(c.dtype);
  for (int j = 0; j < size(); ++j) {
    const auto i = static_cast<std::size_t>(j);
    outgoing_[i] = flow(backend::gathered(c.whole, c.gather, size(), me), &Part::from);
    incoming_[i] = flow(backend::gathered(c.whole, c.gather, size(), j), &Part::to);
  }
  backend::copy(incoming_[static_cast<std::size_t>(me)].part, bytes, in, out);
  stream(c, in, out, false, [&](std::int64_t s) { unpack(c, s, out); });
}

void ProcessCommunicator::all_to_all(const Collective& c, const void* in, void* out) {
  const int me = rank(), bytes = size_of(c.dtype);
  for (int j = 0; j < size(); ++j) {
    const auto i = static_cast<std::size_t>(j);
    outgoing_[i] = flow(backend::exchanged(c, size(), me, j), &Part::from);
    incoming_[i] = flow(backend::exchanged(c, size(), j, me), &Part::to);
  }
  backend::copy(incoming_[static_cast<std::size_t>(me)].part, bytes, in, out);
  stream(c, in, out, false, [&](std::int64_t s) { unpack(c, s, out); });
}

void ProcessCommunicator::reduce_scatter(const Collective& c, const void* in, void* out) {
  const int me = rank(), bytes = size_of(c.dtype);
  for (int j = 0; j < size(); ++j) {
    const auto i = static_cast<std::size_t>(j);
    outgoing_[i] = flow(backend::scattered(c.whole, c.scatter, size(), j), &Part::from);
    incoming_[i] = flow(backend::scattered(c.whole, c.scatter, size(), me), &Part::to);
  }
  const Flow& own_in = outgoing_[static_cast<std::size_t>(me)];
  const Flow& own_out = incoming_[static_cast<std::size_t>(me)];
  const std::int64_t elements = segment_elements(c), count = own_in.part.elements();
  stream(c, in, out, true, [&](std::int64_t s) {
    const Span span = piece({0, count}, s, elements);
    const std::int64_t length = span.end - span.begin;
    if (length <= 0) return;
    for (int j = 0; j < size(); ++j) ins_[static_cast<std::size_t>(j)] = staged_in(c, s, j);
    if (own_in.straight) {
      ins_[static_cast<std::size_t>(me)] = at(in, own_in.part.from.begin + span.begin, bytes);
    } else {
      backend::pack(own_in.part, bytes, in, span.begin, length, staged_in(c, s, me));
    }
    std::byte* sum =
        own_out.straight ? at(out, own_out.part.to.begin + span.begin, bytes) : staged_in(c, s, me);
    const std::array<void*, 1> target = {sum};
    backend::reduce(c.dtype, c.monoid, ins_, 0, target, 0, length);
    if (!own_out.straight) backend::unpack(own_out.part, bytes, sum, span.begin, length, out);
  });
}

ProcessCommunicator::Flow ProcessCommunicator::flow(const Part& part, backend::Side Part::*side) {
  return {part, backend::in_one_piece(part, part.*side)};
}

/// Moves outgoing_ and incoming_ segment by segment, and calls consume(s) when all of segment s is
/// there: in its place in `out` where that is one piece and not `staged`, else in staged_in.
template <typename Consume>
void ProcessCommunicator::stream(const Collective& c, const void* in, void* out, bool staged,
                                 const Consume& consume) {
  const std::int64_t elements = segment_elements(c);
  const int bytes = size_of(c.dtype), me = rank();
  std::int64_t segments = 0;
  for (int j = 0; j < size(); ++j) {
    const auto i = static_cast<std::size_t>(j);
    segments = std::max({segments, pieces(outgoing_[i].part.elements(), elements),
                         pieces(incoming_[i].part.elements(), elements)});
  }
  const auto post = [&](std::int64_t s, int slot) {
    for (int k = 1; k < size(); ++k) {
      const int j = (me + size() - k) % size();
      const Flow& flow = incoming_[static_cast<std::size_t>(j)];
      const Span span = piece({0, flow.part.elements()}, s, elements);
      std::byte* to = flow.straight && !staged ? at(out, flow.part.to.begin + span.begin, bytes)
                                               : staged_in(c, s, j);
      receive(slot, to, (span.end - span.begin) * bytes, j, kData);
    }
    for (int k = 1; k < size(); ++k) {
      const int j = (me + k) % size();
      const Flow& flow = outgoing_[static_cast<std::size_t>(j)];
      const Span span = piece({0, flow.part.elements()}, s, elements);
      const std::byte* from = at(in, flow.part.from.begin + span.begin, bytes);
      if (!flow.straight) {
        from = staged_out(c, s, j);
        backend::pack(flow.part, bytes, in, span.begin, span.end - span.begin, staged_out(c, s, j));
      }
      send(slot, from, (span.end - span.begin) * bytes, j, kData);
    }
  };
  for (std::int64_t t = 0; t < segments + 1; ++t) {
    if (t < segments) post(t, static_cast<int>(t % kPhase));
    if (t < 1) continue;
    await_slot(c, static_cast<int>((t - 1) % kPhase));
    consume(t - 1);
  }
}

void ProcessCommunicator::unpack(const Collective& c, std::int64_t segment, void* out) {
  const std::int64_t elements = segment_elements(c);
  for (int j = 0; j < size(); ++j) {
    const Flow& flow = incoming_[static_cast<std::size_t>(j)];
    if (flow.straight || j == rank()) continue;
    const Span span = piece({0, flow.part.elements()}, segment, elements);
    backend::unpack(flow.part, size_of(c.dtype), staged_in(c, segment, j), span.begin,
                    span.end - span.begin, out);
  }
}

// ---- Segments.

/// Long enough that a message costs little beside its data, short enough that many ranks' segments
/// fit in a cache; a multiple of 64.
std::int64_t ProcessCommunicator::segment_elements(const Collective& c) const {
  constexpr std::int64_t kMost = kLongestSegment, kLeast = 32 << 10, kAll = 2 << 20;
  return std::clamp(kAll / size(), kLeast, kMost) / 512 * 512 / size_of(c.dtype);
}

std::byte* ProcessCommunicator::staged_out(const Collective& c, std::int64_t segment, int member) {
  const std::int64_t bytes = segment_elements(c) * size_of(c.dtype);
  const std::int64_t place = (segment % kPhase * 2 + 1) * size() + member;
  return world_.under_way().staging(0) + place * bytes;
}

std::byte* ProcessCommunicator::staged_in(const Collective& c, std::int64_t segment, int member) {
  const std::int64_t bytes = segment_elements(c) * size_of(c.dtype);
  const std::int64_t place = segment % kPhase * 2 * size() + member;
  return world_.under_way().staging(0) + place * bytes;
}

void ProcessCommunicator::send(int slot, const void* data, std::int64_t bytes, int member,
                               int tag) {
  if (bytes <= 0) return;
  slots_[static_cast<std::size_t>(slot)].add(
      member, world_.link().send(Channel::Calls, data, static_cast<std::size_t>(bytes),
                                 world_rank(member), tag));
}

void ProcessCommunicator::receive(int slot, void* data, std::int64_t bytes, int member, int tag) {
  if (bytes <= 0) return;
  slots_[static_cast<std::size_t>(slot)].add(
      member, world_.link().receive(Channel::Calls, data, static_cast<std::size_t>(bytes),
                                    world_rank(member), tag));
}

void ProcessCommunicator::await_slot(const Collective& c, int slot) {
  Slot& all = slots_[static_cast<std::size_t>(slot)];
  await_all(c, number_, all.requests, all.members);
  all.clear();
}

}  // namespace tessera::process
