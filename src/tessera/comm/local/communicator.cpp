#include "tessera/comm/local/communicator.h"

#include "tessera/base/error.h"

namespace tessera::local {

LocalCommunicator::LocalCommunicator(World& world, LocalGroup& shared, int index)
    : Communicator(shared.group, index),
      world_(world),
      shared_(shared),
      waiting_(world, shared, index),
      collectives_(*shared.collectives[static_cast<std::size_t>(index)]) {}

std::unique_ptr<Communicator> LocalCommunicator::join(const Group& group) {
  const int me = waiting_.world_rank(rank()), index = group.index_of(me);
  check(index >= 0, "rank ", me, " joins a group that it is no member of: ", group);
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
      ticket.number = collectives_.start(c, in, ticket.out);
  }
}

void LocalCommunicator::do_wait(Ticket& ticket) {
  switch (ticket.collective->kind) {
    case Kind::Send:
      return wait_send(ticket);
    case Kind::Recv:
      return wait_recv(ticket);
    default:
      return collectives_.wait(ticket.number);
  }
}

void LocalCommunicator::drop(Ticket& ticket) noexcept {
  switch (ticket.collective->kind) {
    case Kind::Send:
      return drop_send(ticket);
    case Kind::Recv:
      return;
    default:
      return collectives_.drop(ticket.number);
  }
}

}  // namespace tessera::local
