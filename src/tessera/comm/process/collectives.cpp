/// Collectives from start to wait: letters, agreement, and small operands.

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "tessera/base/error.h"
#include "tessera/comm/backend/work.h"
#include "tessera/comm/process/communicator.h"

namespace tessera::process {

void ProcessCommunicator::start_collective(Ticket& ticket, const void* in) {
  const Collective& c = *ticket.collective;
  const Number number = ticket.number = calls_.started + 1;
  begin(c, number);
  require_kept(c, number);
  Underway& call = calls_.at(number);
  if (call.owner != nullptr) end_through(call);
  // Its letters to the others are not awaited before: that may be until they are in MPI again.
  await_all(c, number, call.messages.requests, call.messages.members);
  ++calls_.started;
  call.owner = this, call.collective = &c, call.in = in, call.out = ticket.out;
  call.ids = ticket.ids;
  call.small = in_bytes(c, size()) <= Letter::kInline;
  call.mine.header.fill(c, group(), id_, number, world_.step());
  world_.under_way().add(call);
  try {
    post_letters(call);
  } catch (...) {
    give_up(call);
    throw;
  }
  world_.leave();
}

void ProcessCommunicator::wait_collective(Ticket& ticket) {
  if (ticket.number <= calls_.ended) return;
  const Collective& c = *ticket.collective;
  world_.enter(c, group(), ticket.number);
  if (world_.stopped()) fail_as_peer(c, ticket.number);
  require_kept(c, ticket.number);
  end_through(calls_.at(ticket.number));
  world_.leave();
}

void ProcessCommunicator::drop_collective(Ticket& ticket) noexcept {
  Underway& call = calls_.at(ticket.number);
  if (ticket.number > calls_.ended && call.owner != nullptr) give_up(call);
}

/// A group of which this rank gave up a call is of no more use to it.
void ProcessCommunicator::require_kept(const Collective& c, Number number) {
  if (calls_.dropped == 0) return;
  if (world_.stopped()) fail_as_peer(c, number);
  const Header& dropped = calls_.at(calls_.dropped).mine.header;
  check(false, "a ticket was dropped before its wait: ", dropped.collective(), " '",
        dropped.name.data(), "' (number ", dropped.number, " of group ", group(), ")");
}

void ProcessCommunicator::post_letters(Underway& call) {
  const Collective& c = *call.collective;
  std::size_t bytes = offsetof(Letter, small);
  if (call.small && (c.kind != CollectiveKind::Broadcast || c.peer == rank())) {
    const auto operand = static_cast<std::size_t>(in_bytes(c, size()));
    if (operand > 0) std::memcpy(call.mine.small.data(), call.in, operand);
    bytes += operand;
  }
  call.messages.clear();
  std::fill(call.arrived.begin(), call.arrived.end(), 0);
  call.arrived[static_cast<std::size_t>(rank())] = 1;
  for (int k = 1; k < size(); ++k) {
    const int j = (rank() + size() - k) % size();
    Letter& theirs = call.letters[static_cast<std::size_t>(j)];
    theirs.header = Header();  // a letter of fewer bytes is none
    call.messages.add(
        j, world_.link().receive(Channel::Calls, &theirs, sizeof(Letter), world_rank(j), kLetter));
  }
  for (int k = 1; k < size(); ++k) {
    const int j = (rank() + k) % size();
    call.messages.add(
        j, world_.link().send(Channel::Calls, &call.mine, bytes, world_rank(j), kLetter));
  }
}

void ProcessCommunicator::end_through(const Underway& last) {
  for (bool more = true; more;) {
    Underway& first = *world_.under_way().first();
    more = &first != &last;
    first.owner->end(first);
  }
}

void ProcessCommunicator::end(Underway& call) {
  world_.under_way().ending = true;
  try {
    end_work(call);
  } catch (...) {
    world_.under_way().ending = false;
    give_up(call);
    throw;
  }
  world_.under_way().ending = false;
  calls_.ended = call.mine.header.number;
  world_.under_way().remove(call);
}

void ProcessCommunicator::end_work(Underway& call) {
  const Collective& c = *call.collective;
  const Number number = call.mine.header.number;
  const Slot& messages = call.messages;
  const auto theirs = static_cast<std::size_t>(size() - 1);
  await_all(c, number, {call.messages.requests.data(), theirs}, {messages.members.data(), theirs});
  note_arrivals(call);
  if (world_.stopped()) fail_as_peer(c, number);
  require_agreement(call);
  if (call.small) {
    for (int j = 0; j < size(); ++j) {
      const auto i = static_cast<std::size_t>(j);
      ins_[i] = j == rank() ? call.in : call.letters[i].small.data();
    }
    backend::work(c, rank(), ins_, call.out, call.ids);
  } else {
    number_ = number;
    if (c.rows.choices > 0)
      move_rows(c, call.in, call.out, call.ids);
    else
      move_data(c, call.in, call.out);
  }
}

void ProcessCommunicator::give_up(Underway& call) noexcept {
  quiesce(call.messages.requests, call.messages.members);
  for (Slot& slot : slots_) quiesce(slot.requests, slot.members);
  if (calls_.dropped == 0) calls_.dropped = call.mine.header.number;
  world_.under_way().remove(call);
}

bool ProcessCommunicator::advance() {
  bool ended = false;
  while (!world_.under_way().ending) {
    Underway* const first = world_.under_way().first();
    if (first == nullptr || !letters_are_there(*first)) break;
    first->owner->end(*first);
    ended = true;
  }
  return ended;
}

bool ProcessCommunicator::letters_are_there(Underway& call) {
  const auto theirs = call.letters.size() - 1;
  for (std::size_t i = 0; i < theirs; ++i) {
    if (!world_.link().done(call.messages.requests[i])) return false;
  }
  return true;
}

void ProcessCommunicator::note_arrivals(Underway& call) {
  for (std::size_t i = 0; i + 1 < static_cast<std::size_t>(size()); ++i) {
    const auto j = static_cast<std::size_t>(call.messages.members[i]);
    if (call.arrived[j] || !world_.link().done(call.messages.requests[i])) continue;
    call.arrived[j] = 1;
    world_.saw(group().ranks[j], call.letters[j].header);
  }
}

const Header& ProcessCommunicator::header_of(const Underway& call, int member) const {
  return member == rank() ? call.mine.header
                          : call.letters[static_cast<std::size_t>(member)].header;
}

void ProcessCommunicator::require_agreement(const Underway& call) {
  const Header& mine = call.mine.header;
  int same = 0;
  while (same < size() && header_of(call, same).agrees(mine)) ++same;
  if (same == size()) return;
  const auto [odd, right] = backend::who_differs(
      size(), [&](int a, int b) { return header_of(call, a).agrees(header_of(call, b)); });
  const auto words = [&](int member) {
    const Header& h = header_of(call, member);
    const bool elsewhere = h.group != id_ || h.number != mine.number;
    return text(h.collective(), elsewhere ? text(" '", h.name.data(), "' as number ", h.number,
                                                 " of group ", h.group_name.data())
                                          : std::string());
  };
  stop(backend::disagreement(group(), mine.number, call.collective->name, world_rank(odd),
                             words(odd), world_rank(right), words(right)));
  fail_as_peer(*call.collective, mine.number);
}

}  // namespace tessera::process
