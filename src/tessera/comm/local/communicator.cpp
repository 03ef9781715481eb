#include "tessera/comm/local/communicator.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/comm/backend/parts.h"
#include "tessera/comm/backend/reduce.h"
#include "tessera/comm/backend/work.h"

namespace tessera::local {

LocalCommunicator::LocalCommunicator(World& world, LocalGroup& shared, int index)
    : Communicator(shared.group, index),
      world_(world),
      shared_(shared),
      ins_(shared.members.size()),
      outs_(shared.members.size()) {}

std::unique_ptr<Communicator> LocalCommunicator::join(const Group& group) {
  const int index = group.index_of(world_rank(rank()));
  check(index >= 0, "rank ", world_rank(rank()), " joins a group that it is no member of: ", group);
  return std::make_unique<LocalCommunicator>(world_, world_.group(group), index);
}

void LocalCommunicator::do_start(Ticket& ticket, const void* in) {
  const Collective& c = *ticket.collective;
  switch (c.kind) {
    case Kind::Send:
      return start_send(ticket, in);
    case Kind::Recv:
      ticket.number = ++shared_.next_recv[static_cast<std::size_t>(c.peer * size() + rank())];
      return;
    default:
      return collective(c, in, ticket.out);
  }
}

void LocalCommunicator::do_wait(Ticket& ticket) {
  if (ticket.collective->kind == Kind::Send) wait_send(ticket);
  if (ticket.collective->kind == Kind::Recv) wait_recv(ticket);
}

// ---- Collectives.
//
// Who fails frees its memory, so nobody may touch it by then. With `arrived` and the stop in one
// total order (seq_cst): who sees the stop and then a member that has not arrived may leave at
// once, because that member, and all who see it arrive, will see the stop before they begin to
// work. Who has seen all arrive leaves only when each of them is done or has left.

void LocalCommunicator::collective(const Collective& c, const void* in, void* out) {
  const auto me = static_cast<std::size_t>(rank());
  const Number number = ++shared_.next[me];
  const std::int64_t bytes = in_bytes(c, size());
  const bool small = bytes <= Post::kInline;
  place().enter(shared_.group, c, number);
  Post& post = shared_.members[me].posts[number % 2];
  post.fill(c, in, out);
  if (small && bytes > 0 && (c.kind != Kind::Broadcast || c.peer == rank())) {
    std::memcpy(post.small.data(), in, static_cast<std::size_t>(bytes));
  }
  post.arrived.store(number, std::memory_order_seq_cst);
  enter(c, number);
  require_agreement(c, number);
  for (std::size_t j = 0; j < shared_.members.size(); ++j) {
    Post& theirs = shared_.members[j].posts[number % 2];
    ins_[j] = small ? theirs.small.data() : theirs.in;
    outs_[j] = theirs.out;
  }
  if (c.kind == Kind::AllReduce && !small) {
    reduce_share(c);
  } else {
    backend::work(c, rank(), ins_, out);
  }
  if (!small) finish(c, number);
  place().leave();
}

void LocalCommunicator::enter(const Collective& c, Number number) {
  Patience patience(world_.spins);
  for (int j = 0; j < size();) {
    if (shared_.members[static_cast<std::size_t>(j)].has_arrived(number)) {
      ++j;
      continue;
    }
    if (world_.stopped()) leave(c, number);
    wait_for(patience, j, c, number);
  }
  if (world_.stopped()) leave(c, number);
}

/// Of a large one, rank r reduces the r-th chunk and writes it to all.
void LocalCommunicator::reduce_share(const Collective& c) {
  const backend::Span mine = backend::share(c.whole.numel(), size(), rank());
  backend::reduce(c.dtype, c.monoid, ins_, mine.begin, outs_, mine.begin, mine.end - mine.begin);
}

void LocalCommunicator::finish(const Collective& c, Number number) {
  shared_.members[static_cast<std::size_t>(rank())].done.store(number, std::memory_order_release);
  Patience patience(world_.spins);
  for (const Member& peer : shared_.members) {
    while (peer.done.load(std::memory_order_acquire) < number) {
      // No deadline: a peer that is neither done nor gone is copying.
      if (peer.left.load(std::memory_order_acquire)) leave(c, number);
      patience.wait();
    }
  }
}

void LocalCommunicator::leave(const Collective& c, Number number) {
  Member& me = shared_.members[static_cast<std::size_t>(rank())];
  me.left.store(true, std::memory_order_seq_cst);
  const auto arrived = [&](const Member& peer) { return peer.has_arrived(number); };
  if (in_bytes(c, size()) > Post::kInline && std::ranges::all_of(shared_.members, arrived)) {
    Patience patience(world_.spins);
    for (const Member& peer : shared_.members) {
      while (peer.done.load(std::memory_order_acquire) < number &&
             !peer.left.load(std::memory_order_acquire))
        patience.wait();
    }
  }
  fail_as_peer(c, number);
}

void LocalCommunicator::require_agreement(const Collective& c, Number number) {
  const auto post = [&](int member) -> const Post& {
    return shared_.members[static_cast<std::size_t>(member)].posts[number % 2];
  };
  const auto agree = [&](int a, int b) { return post(a).signature == post(b).signature; };
  int differs = 1;
  while (differs < size() && agree(differs, 0)) ++differs;
  if (differs >= size()) return;
  const auto [odd, right] = backend::who_differs(size(), agree);
  shared_.members[static_cast<std::size_t>(rank())].left.store(true, std::memory_order_seq_cst);
  stop(backend::disagreement(shared_.group, number, c.name, world_rank(odd),
                             tessera::to_text(post(odd).collective()), world_rank(right),
                             tessera::to_text(post(right).collective())));
  fail_as_peer(c, number);
}

// ---- Sends and receives.

void LocalCommunicator::start_send(Ticket& ticket, const void* in) {
  const Collective& c = *ticket.collective;
  Channel& channel = shared_.channel(rank(), c.peer);
  ticket.number = ++shared_.next_send[static_cast<std::size_t>(rank() * size() + c.peer)];
  place().enter(shared_.group, c, ticket.number);
  Patience patience(world_.spins);
  while (channel.received.load(std::memory_order_acquire) + kInFlight < ticket.number) {
    if (world_.stopped()) fail_as_peer(c, ticket.number);
    wait_for(patience, c.peer, c, ticket.number);
  }
  channel.messages[ticket.number % kInFlight] = {c.dtype, c.whole, in};
  channel.posted.store(ticket.number, std::memory_order_release);
  place().leave();
}

void LocalCommunicator::wait_send(Ticket& ticket) {
  const Collective& c = *ticket.collective;
  const Channel& channel = shared_.channel(rank(), c.peer);
  place().enter(shared_.group, c, ticket.number);
  Patience patience(world_.spins);
  while (channel.received.load(std::memory_order_acquire) < ticket.number) {
    if (world_.stopped()) fail_as_peer(c, ticket.number);
    wait_for(patience, c.peer, c, ticket.number);
  }
  place().leave();
}

void LocalCommunicator::wait_recv(Ticket& ticket) {
  const Collective& c = *ticket.collective;
  const Number number = ticket.number;
  Channel& channel = shared_.channel(c.peer, rank());
  check(channel.received.load(std::memory_order_relaxed) + 1 == number, c, " '", c.name,
        "': receives from one peer end in the order in which they were started");
  place().enter(shared_.group, c, number);
  Patience patience(world_.spins);
  const auto await = [&](const auto& ready) {
    while (!ready()) {
      if (world_.stopped()) fail_as_peer(c, number);
      wait_for(patience, c.peer, c, number);
    }
  };
  await([&] { return channel.posted.load(std::memory_order_acquire) >= number; });
  // Either the sender sees that its memory is being read, or this rank that it was withdrawn.
  channel.taking.store(number, std::memory_order_seq_cst);
  if (channel.withdrawn.load(std::memory_order_seq_cst)) {
    channel.taking.store(0, std::memory_order_release);
    await([] { return false; });
  }
  const Channel::Message message = channel.messages[number % kInFlight];
  const bool same = message.dtype == c.dtype && message.whole == c.whole;
  if (same && c.whole.numel() > 0) {
    std::memcpy(ticket.out, message.in, static_cast<std::size_t>(out_bytes(c, size())));
  }
  if (same) channel.received.store(number, std::memory_order_release);
  channel.taking.store(0, std::memory_order_release);
  if (!same) {
    stop(backend::disagreement(shared_.group, number, world_rank(c.peer),
                               text(tessera::to_text(message.dtype), message.whole),
                               world_rank(rank()), text(tessera::to_text(c.dtype), c.whole),
                               c.name));
    fail_as_peer(c, number);
  }
  place().leave();
}

void LocalCommunicator::drop(Ticket& ticket) noexcept {
  if (ticket.collective->kind != Kind::Send) return;
  Channel& channel = shared_.channel(rank(), ticket.collective->peer);
  if (channel.received.load(std::memory_order_acquire) >= ticket.number) return;
  channel.withdrawn.store(true, std::memory_order_seq_cst);
  Patience patience(world_.spins);
  while (channel.taking.load(std::memory_order_seq_cst) != 0) patience.wait();
}

// ---- Failures.

void LocalCommunicator::wait_for(Patience& patience, int member, const Collective& c,
                                 Number number) {
  patience.wait();
  if (!patience.waits_long()) return;
  const int awaited = world_rank(member);
  const Place& theirs = world_.places[static_cast<std::size_t>(awaited)];
  if (patience.saw_end) {
    stop(text("waits ", here(c, number), " for rank ", awaited, ", which has ended (",
              theirs.view(), ")"));
  }
  patience.saw_end = theirs.ended();
  if (patience.waited() < world_.deadline) return;
  const auto seconds = std::chrono::duration<double>(world_.deadline).count();
  stop(text("has waited ", seconds, " s ", here(c, number), "; ", missing(c, number)));
}

/// "not arrived: rank 2 (in step 3 after ...); arrived: ranks 0, 1"
std::string LocalCommunicator::missing(const Collective& c, Number number) const {
  const bool pair = c.kind == Kind::Send || c.kind == Kind::Recv;
  std::vector<backend::Awaited> members;
  for (int j = 0; j < size(); ++j) {
    if (pair && j != c.peer && j != rank()) continue;
    const int at = world_rank(j);
    const bool arrived =
        pair ? j != c.peer : shared_.members[static_cast<std::size_t>(j)].has_arrived(number);
    members.push_back({at, arrived, world_.places[static_cast<std::size_t>(at)].view()});
  }
  return backend::to_text(members);
}

void LocalCommunicator::stop(const std::string& why) {
  const int me = world_rank(rank());
  world_.stop(me,
              std::make_exception_ptr(
                  Error(Fault::Peer, text("rank ", me, " of ", world_.size(), " ", why))),
              why);
}

void LocalCommunicator::fail_as_peer(const Collective& c, Number number) const {
  throw Error(Fault::Peer,
              text(world_.why(), "\n    rank ", world_rank(rank()), " stopped ", here(c, number)));
}

std::string LocalCommunicator::here(const Collective& c, Number number) const {
  return backend::here(place().view().step, c, number, shared_.group);
}

}  // namespace tessera::local
