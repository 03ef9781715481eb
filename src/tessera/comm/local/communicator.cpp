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
  check(index >= 0, "rank ", me, " joins a group that it is not a member of: ", group);
  return std::make_unique<LocalCommunicator>(world_, world_.group(group), index);
}

void LocalCommunicator::start_collective(Ticket& ticket, const void* in) {
  ticket.number = collectives_.start(*ticket.collective, in, ticket.out, ticket.ids);
}

void LocalCommunicator::wait_collective(Ticket& ticket) { collectives_.wait(ticket.number); }

void LocalCommunicator::drop_collective(Ticket& ticket) noexcept {
  collectives_.drop(ticket.number);
}

}  // namespace tessera::local
