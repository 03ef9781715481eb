#include "tessera/comm/communicator.h"

#include <functional>
#include <utility>

#include "tessera/base/error.h"

namespace tessera {

namespace {

/// The rule on memory of Collective.
bool memory_allowed(const Collective& c, int ranks, int index, const void* in, const void* out) {
  const auto* a = static_cast<const char*>(in);
  const auto* b = static_cast<const char*>(out);
  const std::int64_t a_bytes = in_bytes(c, ranks), b_bytes = out_bytes(c, ranks);
  const std::less<const char*> before;
  if (a == nullptr || b == nullptr || !before(a, b + b_bytes) || !before(b, a + a_bytes))
    return true;
  if (c.kind == CollectiveKind::AllReduce || c.kind == CollectiveKind::Broadcast) return a == b;
  return c.kind == CollectiveKind::AllGather && c.gather == 0 && a == b + a_bytes * index;
}

}  // namespace

Ticket& Ticket::operator=(Ticket&& other) noexcept {
  if (this == &other) return *this;
  if (owner != nullptr) owner->drop(*this);
  owner = std::exchange(other.owner, nullptr);
  collective = other.collective, out = other.out, ids = other.ids, number = other.number;
  return *this;
}

Ticket::~Ticket() {
  if (owner != nullptr) owner->drop(*this);
}

Ticket Communicator::start(const Collective& c, const void* in, void* out,
                           const std::int32_t* ids) {
  validate(c, size());
  check((c.rows.choices > 0) == (ids != nullptr), c, " '", c.name, "': ids and chosen rows go ",
        "together");
  check(c.kind == CollectiveKind::Send || c.kind == CollectiveKind::Recv ||
            memory_allowed(c, size(), index_, in, out),
        c, " '", c.name, "': operand and result overlap");
  Ticket ticket;
  ticket.collective = &c, ticket.out = out, ticket.ids = ids;
  switch (c.kind) {
    case CollectiveKind::Send: start_send(ticket, in); break;
    case CollectiveKind::Recv: start_recv(ticket); break;
    default: start_collective(ticket, in);
  }
  ticket.owner = this;
  Count& count = counts_[static_cast<std::size_t>(c.kind)];
  ++count.calls;
  count.bytes += bytes_sent(c, size(), index_, ids);
  return ticket;
}

void Communicator::wait(Ticket& ticket) {
  check(ticket.owner == this, "a ticket is given to another communicator, or twice");
  switch (ticket.collective->kind) {
    case CollectiveKind::Send: wait_send(ticket); break;
    case CollectiveKind::Recv: wait_recv(ticket); break;
    default: wait_collective(ticket);
  }
  ticket.owner = nullptr;
}

void Communicator::drop(Ticket& ticket) noexcept {
  switch (ticket.collective->kind) {
    case CollectiveKind::Send: return drop_send(ticket);
    case CollectiveKind::Recv: return drop_recv(ticket);
    default: return drop_collective(ticket);
  }
}

void Communicator::run(const Collective& collective, const void* in, void* out,
                       const std::int32_t* ids) {
  Ticket ticket = start(collective, in, out, ids);
  wait(ticket);
}

}  // namespace tessera
