/// Sends and receives. A header says what comes, under which tag. While a rank has receives under
/// way, it takes in headers in every call of comm; those of mailboxes whose receives are not
/// started yet are kept. The receive of the data is posted when the header is there.

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/comm/process/communicator.h"

namespace tessera::process {

namespace {

/// Messages under way between two ranks have different tags: there are never as many.
int tag_of(const Header& header) { return kSendData + static_cast<int>(header.mail % 16384); }

}  // namespace

void ProcessCommunicator::start_send(Ticket& ticket, const void* in) {
  const Collective& c = *ticket.collective;
  Calls::Mailbox& mailbox = mailbox_with(c.peer);
  ticket.number = ++mailbox.sends;
  Sent& sent = mailbox.sent[ticket.number % most_messages()];
  const int to = world_rank(c.peer);
  begin(c, ticket.number);
  await_all(c, ticket.number, sent.requests, std::array{c.peer, c.peer});
  std::erase(world_.under_way().sent, &sent);
  sent.header.fill(c, group(), id_, ticket.number, world_.step());
  sent.header.mail = ++mail_from(to).sent;
  Link& link = world_.link();
  sent.requests[0] = link.send(Channel::Calls, &sent.header, sizeof(sent.header), to, kSendHeader);
  const auto bytes = static_cast<std::size_t>(in_bytes(c, size()));
  if (bytes > 0) sent.requests[1] = link.send(Channel::Calls, in, bytes, to, tag_of(sent.header));
  world_.under_way().sent.push_back(&sent);
  world_.leave();
}

void ProcessCommunicator::start_recv(Ticket& ticket) {
  const Collective& c = *ticket.collective;
  Calls::Mailbox& mailbox = mailbox_with(c.peer);
  check(mailbox.receives < mailbox.received + most_messages(), c, " '", c.name, "': more than ",
        most_messages(), " receives from one peer are under way");
  const Number number = ticket.number = ++mailbox.receives;
  begin(c, number);
  Posted& receive = mailbox.posted[number % most_messages()];
  receive = {Posted::Expected, this, &c, ticket.out, number, {}};
  CallsUnderWay::Mail& mail = mail_from(world_rank(c.peer));
  ++mail.expected;
  const auto ours = std::ranges::find(mail.unasked, id_, &Header::group);
  if (ours != mail.unasked.end()) {
    take(receive, *ours);
    mail.unasked.erase(ours);
  }
  world_.under_way().posted.push_back(&receive);
  world_.leave();
}

void ProcessCommunicator::wait_send(Ticket& ticket) {
  const Collective& c = *ticket.collective;
  Sent& sent = mailbox_with(c.peer).sent[ticket.number % most_messages()];
  if (sent.header.number != ticket.number) return;  // its place has gone to a later one: done
  begin(c, ticket.number);
  await_all(c, ticket.number, sent.requests, std::array{c.peer, c.peer});
  world_.leave();
}

void ProcessCommunicator::wait_recv(Ticket& ticket) {
  const Collective& c = *ticket.collective;
  Calls::Mailbox& mailbox = mailbox_with(c.peer);
  check(mailbox.received + 1 == ticket.number, c, " '", c.name,
        "': receives from one peer end in the order in which they were started");
  const Posted& receive = mailbox.posted[ticket.number % most_messages()];
  begin(c, ticket.number);
  await(c, ticket.number, c.peer, [&] { return receive.state == Posted::There; });
  mailbox.received = ticket.number;
  world_.leave();
}

void ProcessCommunicator::drop_send(Ticket& ticket) noexcept {
  const Collective& c = *ticket.collective;
  Sent& sent = mailbox_with(c.peer).sent[ticket.number % most_messages()];
  if (sent.header.number != ticket.number) return;
  std::erase(world_.under_way().sent, &sent);
  quiesce(sent.requests, std::array{c.peer, c.peer});
}

void ProcessCommunicator::drop_recv(Ticket& ticket) noexcept {
  const Collective& c = *ticket.collective;
  Posted& receive = mailbox_with(c.peer).posted[ticket.number % most_messages()];
  std::erase(world_.under_way().posted, &receive);
  if (receive.state == Posted::Expected) --mail_from(world_rank(c.peer)).expected;
  quiesce({&receive.data, 1}, {&c.peer, 1});
}

bool ProcessCommunicator::move_messages() {
  CallsUnderWay& all = world_.under_way();
  if ((all.posted.empty() && all.sent.empty()) || world_.stopped()) return false;
  Link& link = world_.link();
  bool moved = false;
  for (int r = 0; r < world_.size(); ++r) moved = take_headers(r) || moved;
  const auto is_there = [&](Posted* receive) {
    if (receive->state != Posted::Coming || !link.done(receive->data)) return false;
    receive->state = Posted::There;
    return true;
  };
  moved = std::erase_if(all.posted, is_there) > 0 || moved;
  // Asking for them moves them on, where the library does not do that by itself.
  const auto has_left = [&](Sent* sent) {
    return link.done(sent->requests[0]) && link.done(sent->requests[1]);
  };
  return std::erase_if(all.sent, has_left) > 0 || moved;
}

/// No more than are expected: the others wait where the library keeps them.
bool ProcessCommunicator::take_headers(int from) {
  CallsUnderWay::Mail& mail = mail_from(from);
  bool any = false;
  while (mail.expected > 0 && !world_.stopped()) {
    if (!mail.listening) {
      mail.incoming = Header();
      mail.request = world_.link().receive(Channel::Calls, &mail.incoming, sizeof(mail.incoming),
                                           from, kSendHeader);
      mail.listening = true;
    }
    if (!world_.link().done(mail.request)) break;
    mail.listening = false;
    any = true;
    const Header header = mail.incoming;
    if (!world_.saw(from, header)) break;
    const std::vector<Posted*>& posted = world_.under_way().posted;
    const auto expects = [&](const Posted* p) {
      return p->state == Posted::Expected && p->owner->id_ == header.group &&
             p->owner->world_rank(p->collective->peer) == from;
    };
    const auto found = std::ranges::find_if(posted, expects);
    if (found != posted.end()) {
      (*found)->owner->take(**found, header);
    } else {
      mail.unasked.push_back(header);
    }
  }
  return any;
}

void ProcessCommunicator::take(Posted& receive, const Header& header) {
  const Collective& c = *receive.collective;
  const int from = world_rank(c.peer);
  if (header.dtype != c.dtype || header.shape() != c.whole || header.number != receive.number) {
    return stop(backend::disagreement(
        group(), receive.number, from, text(tessera::to_text(header.dtype), header.shape()),
        world_.rank(), text(tessera::to_text(c.dtype), c.whole), c.name));
  }
  const auto bytes = static_cast<std::size_t>(out_bytes(c, size()));
  if (bytes > 0)
    receive.data = world_.link().receive(Channel::Calls, receive.out, bytes, from, tag_of(header));
  receive.state = Posted::Coming;
  --mail_from(from).expected;
}

}  // namespace tessera::process
