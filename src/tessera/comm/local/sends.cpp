/// Sends and receives between threads.
///
/// Both ends of a message write to it where their memory lies, then set their bit of `ends`: who
/// finds the other's bit there is the later one, and moves the message at once. There is one
/// exception. A receiver that waits before the send has come says so, and moves the message itself:
/// it has nothing else to do, and the sender can go on.
///
/// A rank that fails frees its memory, so it withdraws its messages first. Whoever is about to move
/// one sets a bit too. All bits are in one word, so that of the two the later one sees the earlier:
/// either nothing is moved, or the rank that withdraws waits until it is, which is soon.

#include <cstring>

#include "tessera/base/error.h"
#include "tessera/comm/local/communicator.h"

namespace tessera::local {

Channel& LocalCommunicator::channel_of(const Collective& c) {
  return c.kind == CollectiveKind::Send ? shared_.channel(rank(), c.peer)
                                        : shared_.channel(c.peer, rank());
}

void LocalCommunicator::start_send(Ticket& ticket, const void* in) {
  const Collective& c = *ticket.collective;
  Channel& channel = channel_of(c);
  const Number number = ticket.number = ++channel.sends;
  Message& message = channel.message(number);
  begin(ticket);
  await(ticket,
        [&] { return message.moved.load(std::memory_order_acquire) + most_messages() >= number; });
  message.sent = {c.dtype, c.whole};
  message.in = in;
  const unsigned before = message.ends.fetch_or(Message::kSent, std::memory_order_acq_rel);
  if (before == Message::kPosted) move(message, ticket);
  waiting_.place().leave();
}

void LocalCommunicator::start_recv(Ticket& ticket) {
  const Collective& c = *ticket.collective;
  Channel& channel = channel_of(c);
  check(channel.receives < channel.received + most_messages(), c, " '", c.name, "': more than ",
        most_messages(), " receives from one peer are under way");
  const Number number = ticket.number = ++channel.receives;
  Message& message = channel.message(number);
  begin(ticket);
  message.received = {c.dtype, c.whole};
  message.out = ticket.out;
  const unsigned before = message.ends.fetch_or(Message::kPosted, std::memory_order_acq_rel);
  if (before == Message::kSent) move(message, ticket);
  waiting_.place().leave();
}

void LocalCommunicator::wait_send(Ticket& ticket) {
  const Message& message = channel_of(*ticket.collective).message(ticket.number);
  begin(ticket);
  await(ticket, [&] { return message.moved.load(std::memory_order_acquire) >= ticket.number; });
  waiting_.place().leave();
}

void LocalCommunicator::wait_recv(Ticket& ticket) {
  const Collective& c = *ticket.collective;
  Channel& channel = channel_of(c);
  check(channel.received + 1 == ticket.number, c, " '", c.name,
        "': receives from one peer end in the order in which they were started");
  Message& message = channel.message(ticket.number);
  begin(ticket);
  unsigned posted = Message::kPosted;
  if (message.ends.compare_exchange_strong(posted, Message::kPosted | Message::kAwaited,
                                           std::memory_order_acq_rel)) {
    await(ticket,
          [&] { return (message.ends.load(std::memory_order_acquire) & Message::kSent) != 0; });
    move(message, ticket);
  }
  await(ticket, [&] { return message.moved.load(std::memory_order_acquire) >= ticket.number; });
  channel.received = ticket.number;
  waiting_.place().leave();
}

void LocalCommunicator::drop_send(Ticket& ticket) noexcept {
  withdraw(channel_of(*ticket.collective).message(ticket.number), ticket.number);
}

void LocalCommunicator::drop_recv(Ticket& ticket) noexcept {
  withdraw(channel_of(*ticket.collective).message(ticket.number), ticket.number);
}

void LocalCommunicator::begin(const Ticket& ticket) const {
  waiting_.place().enter(shared_.group, *ticket.collective, ticket.number);
}

template <typename Ready>
void LocalCommunicator::await(const Ticket& ticket, const Ready& ready) const {
  Patience patience(world_.pace);
  const Collective& c = *ticket.collective;
  while (!ready()) waiting_.turn(patience, c.peer, c, ticket.number);
}

/// Unless it was withdrawn: then both ends are stopped in their next wait.
void LocalCommunicator::move(Message& message, const Ticket& ticket) const {
  const Collective& c = *ticket.collective;
  if (message.sent != message.received) {
    const int me = waiting_.world_rank(rank()), other = waiting_.world_rank(c.peer);
    const bool sends = c.kind == CollectiveKind::Send;
    const auto words = [](const Message::Operand& x) {
      return text(tessera::to_text(x.dtype), x.whole);
    };
    waiting_.stop(backend::disagreement(shared_.group, ticket.number, sends ? me : other,
                                        words(message.sent), sends ? other : me,
                                        words(message.received), c.name));
    waiting_.fail_as_peer(c, ticket.number);
  }
  const unsigned before = message.ends.fetch_or(Message::kMoving, std::memory_order_acq_rel);
  if ((before & Message::kWithdrawn) != 0) {
    message.ends.fetch_and(~unsigned{Message::kMoving}, std::memory_order_release);
    return;
  }
  const auto bytes = static_cast<std::size_t>(c.whole.numel() * size_of(c.dtype));
  if (bytes > 0) std::memcpy(message.out, message.in, bytes);
  message.ends.store(0, std::memory_order_release);
  message.moved.store(ticket.number, std::memory_order_release);
}

void LocalCommunicator::withdraw(Message& message, Number number) const noexcept {
  const auto moved = [&] { return message.moved.load(std::memory_order_acquire) >= number; };
  if (moved()) return;
  const unsigned before = message.ends.fetch_or(Message::kWithdrawn, std::memory_order_acq_rel);
  if ((before & Message::kMoving) == 0) return;
  for (Patience patience(world_.pace); !moved();) patience.wait();
}

}  // namespace tessera::local
