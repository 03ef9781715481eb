#include "tessera/comm/process/notices.h"

#include <cstddef>

namespace tessera::process {

Notices::Notices(Link& link) : link_(link), alive_requests_(static_cast<std::size_t>(link.size())) {
  requests_.reserve(alive_requests_.size() * Notice::kKinds);
  alive_.kind = Notice::Alive;
  alive_.rank = link.rank();
  listen();
}

Notices::~Notices() {
  link_.cancel(incoming_request_);
  link_.done(incoming_request_);
}

void Notices::listen() {
  incoming_ = Notice();  // one that comes with less than a notice has is none
  incoming_request_ =
      link_.receive(Channel::Control, &incoming_, sizeof(incoming_), Link::kAnyone, kNotice);
}

bool Notices::next(Notice& notice) {
  if (!link_.done(incoming_request_)) return false;
  notice = incoming_;
  listen();
  return true;
}

bool Notices::begin(const Notice& notice) {
  const auto kind = static_cast<std::size_t>(notice.kind);
  if (announced_[kind]) return false;
  announced_[kind] = true;
  outgoing_[kind] = notice;
  return true;
}

void Notices::send(Notice::Kind kind, int to) {
  const Notice& notice = outgoing_[static_cast<std::size_t>(kind)];
  requests_.push_back(link_.send(Channel::Control, &notice, sizeof(notice), to, kNotice));
}

void Notices::send_alive(int to) {
  Request& request = alive_requests_[static_cast<std::size_t>(to)];
  if (!link_.done(request)) return;
  request = link_.send(Channel::Control, &alive_, offsetof(Notice, words), to, kNotice);
}

bool Notices::delivered() {
  bool all = true;
  for (std::vector<Request>* requests : {&requests_, &alive_requests_}) {
    for (Request& request : *requests) all = link_.done(request) && all;
  }
  return all;
}

}  // namespace tessera::process
