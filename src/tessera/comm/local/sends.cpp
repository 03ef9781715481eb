/// Sends and receives between threads.

#include <cstring>

#include "tessera/base/error.h"
#include "tessera/comm/local/communicator.h"

namespace tessera::local {

void LocalCommunicator::start_send(Ticket& ticket, const void* in) {
  const Collective& c = *ticket.collective;
  Channel& channel = shared_.channel(rank(), c.peer);
  ticket.number = ++shared_.next_send[static_cast<std::size_t>(rank() * size() + c.peer)];
  waiting_.place().enter(shared_.group, c, ticket.number);
  Patience patience(world_.spins);
  while (channel.received.load(std::memory_order_acquire) + kInFlight < ticket.number)
    waiting_.turn(patience, c.peer, c, ticket.number);
  channel.messages[ticket.number % kInFlight] = {c.dtype, c.whole, in};
  channel.posted.store(ticket.number, std::memory_order_release);
  waiting_.place().leave();
}

void LocalCommunicator::start_recv(Ticket& ticket) {
  const int channel = ticket.collective->peer * size() + rank();
  ticket.number = ++shared_.next_recv[static_cast<std::size_t>(channel)];
}

void LocalCommunicator::wait_send(Ticket& ticket) {
  const Collective& c = *ticket.collective;
  const Channel& channel = shared_.channel(rank(), c.peer);
  waiting_.place().enter(shared_.group, c, ticket.number);
  Patience patience(world_.spins);
  while (channel.received.load(std::memory_order_acquire) < ticket.number)
    waiting_.turn(patience, c.peer, c, ticket.number);
  waiting_.place().leave();
}

void LocalCommunicator::wait_recv(Ticket& ticket) {
  const Collective& c = *ticket.collective;
  const Number number = ticket.number;
  Channel& channel = shared_.channel(c.peer, rank());
  check(channel.received.load(std::memory_order_relaxed) + 1 == number, c, " '", c.name,
        "': receives from one peer end in the order in which they were started");
  waiting_.place().enter(shared_.group, c, number);
  Patience patience(world_.spins);
  const auto await = [&](const auto& ready) {
    while (!ready()) waiting_.turn(patience, c.peer, c, number);
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
    waiting_.stop(backend::disagreement(shared_.group, number, waiting_.world_rank(c.peer),
                                        text(tessera::to_text(message.dtype), message.whole),
                                        waiting_.world_rank(rank()),
                                        text(tessera::to_text(c.dtype), c.whole), c.name));
    waiting_.fail_as_peer(c, number);
  }
  waiting_.place().leave();
}

void LocalCommunicator::drop_send(Ticket& ticket) noexcept {
  Channel& channel = shared_.channel(rank(), ticket.collective->peer);
  if (channel.received.load(std::memory_order_acquire) >= ticket.number) return;
  channel.withdrawn.store(true, std::memory_order_seq_cst);
  Patience patience(world_.spins);
  while (channel.taking.load(std::memory_order_seq_cst) != 0) patience.wait();
}

}  // namespace tessera::local
