/// Sends and receives. A header says what comes, under which tag; headers from one rank are taken
/// in as they come, whatever group they are of, because receives of several groups may be waited
/// for in another order than the sends were started in.

#include <array>

#include "tessera/base/error.h"
#include "tessera/comm/mpi/communicator.h"

namespace tessera::mpi {

namespace {

/// Messages under way between two ranks have different tags: there are never as many.
int tag_of(const Header& header) { return kSendData + static_cast<int>(header.mail % 16384); }

}  // namespace

void MpiCommunicator::start_send(Ticket& ticket, const void* in) {
  const Collective& c = *ticket.collective;
  Calls::Channel& channel = calls_.with[static_cast<std::size_t>(c.peer)];
  ticket.number = ++channel.sends;
  Sent& sent = channel.sent[ticket.number % kInFlight];
  const int to = world_rank(c.peer);
  begin(c, ticket.number);
  await_all(c, ticket.number, sent.requests, std::array{c.peer, c.peer});
  sent.header.fill(c, group(), id_, ticket.number, world_.step());
  sent.header.mail = world_.under_way().next_mail_to(to);
  Link& link = world_.link();
  sent.requests[0] = link.send(Channel::Calls, &sent.header, sizeof(sent.header), to, kSendHeader);
  const auto bytes = static_cast<std::size_t>(in_bytes(c, size()));
  if (bytes > 0) sent.requests[1] = link.send(Channel::Calls, in, bytes, to, tag_of(sent.header));
  world_.leave();
}

void MpiCommunicator::start_recv(Ticket& ticket) {
  ticket.number = ++calls_.with[static_cast<std::size_t>(ticket.collective->peer)].receives;
}

void MpiCommunicator::wait_send(Ticket& ticket) {
  const Collective& c = *ticket.collective;
  Calls::Channel& channel = calls_.with[static_cast<std::size_t>(c.peer)];
  Sent& sent = channel.sent[ticket.number % kInFlight];
  if (sent.header.number != ticket.number) return;  // its place has gone to a later one: done
  begin(c, ticket.number);
  await_all(c, ticket.number, sent.requests, std::array{c.peer, c.peer});
  world_.leave();
}

void MpiCommunicator::wait_recv(Ticket& ticket) {
  const Collective& c = *ticket.collective;
  Calls::Channel& channel = calls_.with[static_cast<std::size_t>(c.peer)];
  check(channel.received + 1 == ticket.number, c, " '", c.name,
        "': receives from one peer end in the order in which they were started");
  begin(c, ticket.number);
  const int from = world_rank(c.peer);
  Request request;
  try {
    const Header header = await_mail(c, ticket.number);
    if (header.dtype != c.dtype || header.shape() != c.whole || header.number != ticket.number) {
      stop(backend::disagreement(group(), ticket.number, from,
                                 text(tessera::to_text(header.dtype), header.shape()),
                                 world_.rank(), text(tessera::to_text(c.dtype), c.whole), c.name));
      fail_as_peer(c, ticket.number);
    }
    const auto bytes = static_cast<std::size_t>(out_bytes(c, size()));
    if (bytes > 0) {
      request = world_.link().receive(Channel::Calls, ticket.out, bytes, from, tag_of(header));
      await_all(c, ticket.number, {&request, 1}, {&c.peer, 1});
    }
  } catch (...) {
    quiesce({&request, 1}, {&c.peer, 1});
    throw;
  }
  channel.received = ticket.number;
  world_.leave();
}

Header MpiCommunicator::await_mail(const Collective& c, Number number) {
  const int from = world_rank(c.peer);
  std::vector<Header>& mail = world_.under_way().mail_of(from);
  for (;;) {
    for (std::size_t i = 0; i < mail.size(); ++i) {
      if (mail[i].group != id_) continue;
      const Header header = mail[i];
      mail.erase(mail.begin() + static_cast<std::ptrdiff_t>(i));
      return header;
    }
    Header next;
    Request request = world_.link().receive(Channel::Calls, &next, sizeof(next), from, kSendHeader);
    try {
      await_all(c, number, {&request, 1}, {&c.peer, 1});
    } catch (...) {
      quiesce({&request, 1}, {&c.peer, 1});
      throw;
    }
    world_.saw(from, next);
    mail.push_back(next);
  }
}

void MpiCommunicator::drop_send(Ticket& ticket) noexcept {
  const Collective& c = *ticket.collective;
  Sent& sent = calls_.with[static_cast<std::size_t>(c.peer)].sent[ticket.number % kInFlight];
  if (sent.header.number != ticket.number) return;
  quiesce(sent.requests, std::array{c.peer, c.peer});
}

}  // namespace tessera::mpi
