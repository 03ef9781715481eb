#include "tessera/comm/mpi/communicator.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>

#include "tessera/base/error.h"
#include "tessera/comm/backend/work.h"

namespace tessera::mpi {

using namespace std::chrono_literals;

MpiCommunicator::MpiCommunicator(World& world, const Group& group, int index)
    : Communicator(group, index),
      world_(world),
      id_(id_of(group)),
      calls_(world.calls(id_, group.size())),
      arrived_(group.ranks.size()),
      ins_(group.ranks.size()),
      outgoing_(group.ranks.size()),
      incoming_(group.ranks.size()) {
  for (Slot* slot : {&letters_, &slots_[0], &slots_[1], &slots_[2], &slots_[3]})
    slot->reserve(2 * group.ranks.size());
}

std::unique_ptr<Communicator> MpiCommunicator::join(const Group& group) {
  const int index = group.index_of(world_.rank());
  check(index >= 0, "rank ", world_.rank(), " joins a group that it is no member of: ", group);
  for (const int rank : group.ranks) {
    check(rank >= 0 && rank < world_.size(), "group ", group, " in a world of ", world_.size());
    check(std::count(group.ranks.begin(), group.ranks.end(), rank) == 1, "group ", group,
          " has a rank twice");
  }
  return std::make_unique<MpiCommunicator>(world_, group, index);
}

bool MpiCommunicator::peer_failed() {
  if (world_.on_other_thread()) return world_.stopped() || world_.any_dead();
  world_.look();
  return world_.stopped();
}

void MpiCommunicator::do_start(Ticket& ticket, const void* in) {
  const Collective& c = *ticket.collective;
  switch (c.kind) {
    case Kind::Send:
      return start_send(ticket, in);
    case Kind::Recv:
      ticket.number = ++calls_.with[static_cast<std::size_t>(c.peer)].receives;
      return;
    default:
      return collective(c, in, ticket.out);
  }
}

void MpiCommunicator::do_wait(Ticket& ticket) {
  if (ticket.collective->kind == Kind::Send) wait_send(ticket);
  if (ticket.collective->kind == Kind::Recv) wait_recv(ticket);
}

// ---- Collectives.

void MpiCommunicator::collective(const Collective& c, const void* in, void* out) {
  const bool small = in_bytes(c, size()) <= Letter::kInline;
  Header& mine = world_.mine().header;
  mine.fill(c, group(), id_, ++calls_.collectives, world_.step());
  begin(c, mine.number);
  try {
    exchange_letters(c, in, small);
    require_agreement(c);
    if (small) {
      for (int j = 0; j < size(); ++j) {
        ins_[static_cast<std::size_t>(j)] =
            j == rank() ? in : world_.letter_of(world_rank(j)).small.data();
      }
      backend::work(c, rank(), ins_, out);
    } else {
      move_data(c, in, out);
    }
    await_all(c, mine.number, letters_.requests, letters_.members);  // ours may be written again
  } catch (...) {
    for (Slot* slot : {&letters_, &slots_[0], &slots_[1], &slots_[2], &slots_[3]})
      quiesce(slot->requests, slot->members);
    throw;
  }
  world_.leave();
}

void MpiCommunicator::exchange_letters(const Collective& c, const void* in, bool small) {
  Letter& mine = world_.mine();
  std::size_t bytes = offsetof(Letter, small);
  if (small && (c.kind != Kind::Broadcast || c.peer == rank())) {
    const auto operand = static_cast<std::size_t>(in_bytes(c, size()));
    if (operand > 0) std::memcpy(mine.small.data(), in, operand);
    bytes += operand;
  }
  letters_.clear();
  std::fill(arrived_.begin(), arrived_.end(), 0);
  arrived_[static_cast<std::size_t>(rank())] = 1;
  for (int k = 1; k < size(); ++k) {
    const int j = (rank() + size() - k) % size(), at = world_rank(j);
    letters_.add(j, world_.link().receive(Channel::Calls, &world_.letter_of(at), sizeof(Letter), at,
                                          kLetter));
  }
  for (int k = 1; k < size(); ++k) {
    const int j = (rank() + k) % size();
    letters_.add(j, world_.link().send(Channel::Calls, &mine, bytes, world_rank(j), kLetter));
  }
  const auto receives = static_cast<std::size_t>(size() - 1);
  await_all(c, mine.header.number, {letters_.requests.data(), receives},
            {letters_.members.data(), receives});
  note_arrivals();
}

void MpiCommunicator::note_arrivals() {
  for (std::size_t i = 0; i + 1 < static_cast<std::size_t>(size()); ++i) {
    const int j = letters_.members[i];
    if (!world_.link().done(letters_.requests[i])) continue;
    arrived_[static_cast<std::size_t>(j)] = 1;
    world_.saw(world_rank(j), world_.letter_of(world_rank(j)).header);
  }
}

const Header& MpiCommunicator::header_of(int member) {
  return member == rank() ? world_.mine().header : world_.letter_of(world_rank(member)).header;
}

void MpiCommunicator::require_agreement(const Collective& c) {
  const Header& mine = world_.mine().header;
  int same = 0;
  while (same < size() && header_of(same).agrees(mine)) ++same;
  if (same == size()) return;
  const auto [odd, right] =
      backend::who_differs(size(), [&](int a, int b) { return header_of(a).agrees(header_of(b)); });
  const auto words = [&](int member) {
    const Header& h = header_of(member);
    const bool elsewhere = h.group != id_ || h.number != mine.number;
    return text(h.collective(), elsewhere ? text(" '", h.name.data(), "' as number ", h.number,
                                                 " of group ", h.group_name.data())
                                          : std::string());
  };
  stop(backend::disagreement(group(), mine.number, c.name, world_rank(odd), words(odd),
                             world_rank(right), words(right)));
  fail_as_peer(c, mine.number);
}

// ---- Waiting, and failures.

void MpiCommunicator::begin(const Collective& c, Number number) {
  world_.enter(c, group(), number);
  world_.look();
  if (world_.stopped()) fail_as_peer(c, number);
}

void MpiCommunicator::await_all(const Collective& c, Number number, std::span<Request> requests,
                                std::span<const int> members) {
  Patience patience(world_.spins());
  for (std::size_t i = 0; i < requests.size();) {
    if (world_.link().done(requests[i])) {
      if (patience.waits_long()) patience = Patience(world_.spins());
      ++i;
      continue;
    }
    patience.wait();
    if (patience.waits_long()) await_longer(patience, c, number, members[i]);
  }
}

void MpiCommunicator::await_longer(Patience& patience, const Collective& c, Number number,
                                   int member) {
  world_.look();
  if (world_.stopped()) fail_as_peer(c, number);
  const int awaited = world_rank(member);
  if (world_.ended(awaited)) {
    // What it sent before it ended may come a moment later.
    if (!patience.saw_end) saw_end_ = Clock::now();
    patience.saw_end = true;
    if (Clock::now() - saw_end_ > 20ms) {
      stop(text("waits ", here(c, number), " for rank ", awaited, ", which has ended (",
                world_.seen(awaited), ")"));
      fail_as_peer(c, number);
    }
  }
  if (patience.waited() < world_.deadline()) return;
  const auto seconds = std::chrono::duration<double>(world_.deadline()).count();
  stop(text("has waited ", seconds, " s ", here(c, number), "; ", missing(c, member)));
  fail_as_peer(c, number);
}

std::string MpiCommunicator::missing(const Collective& c, int late) {
  const bool pair = c.kind == Kind::Send || c.kind == Kind::Recv;
  if (!pair) note_arrivals();
  std::vector<backend::Awaited> members;
  for (int j = 0; j < size(); ++j) {
    if (pair && j != late && j != rank()) continue;
    // One that has come and does not go on is late as well.
    const bool arrived = j != late && (pair || arrived_[static_cast<std::size_t>(j)]);
    members.push_back({world_rank(j), arrived, world_.seen(world_rank(j))});
  }
  return backend::to_text(members);
}

void MpiCommunicator::quiesce(std::span<Request> requests, std::span<const int> members) noexcept {
  world_.quiesce(requests, members, group().ranks);
}

void MpiCommunicator::fail_as_peer(const Collective& c, Number number) const {
  throw Error(Fault::Peer,
              text(world_.why(), "\n    rank ", world_.rank(), " stopped ", here(c, number)));
}

std::string MpiCommunicator::here(const Collective& c, Number number) const {
  return backend::here(world_.step(), c, number, group());
}

}  // namespace tessera::mpi
