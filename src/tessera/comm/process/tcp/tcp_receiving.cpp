/// Messages in: frames are read through a buffer, bytes straight into their place.

#include <sys/epoll.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "tessera/base/error.h"
#include "tessera/comm/process/tcp/tcp_link.h"

namespace tessera::process {

namespace {
constexpr std::size_t kSmallEarly = 4096;  // a letter
}

Request TcpLink::receive(Channel channel, void* data, std::size_t bytes, int from, int tag) {
  Operation& operation = make(false, channel, from, tag, data, bytes);
  const Request out = request_of(operation);
  const int first = from == kAnyone ? 0 : from, last = from == kAnyone ? size() - 1 : from;
  for (int r = first; r <= last; ++r) {
    for (Early* early = peer(r).early.first; early != nullptr; early = early->next) {
      if (early->frame.channel != channel || early->frame.tag != tag) continue;
      take_early(r, *early, operation);
      return out;
    }
  }
  (from == kAnyone ? anyone_ : peer(from).posted).add(&operation);
  return out;
}

void TcpLink::progress(int timeout_ms) {
  std::array<epoll_event, 64> events;
  const int count =
      epoll_wait(events_.file(), events.data(), static_cast<int>(events.size()), timeout_ms);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    const int r = static_cast<int>(event.data.u64);
    if ((event.events & EPOLLOUT) != 0) flush(r);
    if ((event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) read(r);
  }
}

/// Where the bytes that come now belong, from the next one on; nullptr: nowhere.
std::byte* TcpLink::place_of(Peer& p) {
  if (p.receive != nullptr) return p.receive->data == nullptr ? nullptr : p.receive->data + p.got;
  return p.keep == nullptr ? nullptr : p.keep->bytes.data() + p.got;
}

/// Reads what is there, but no more than some MiB: others are to be read too.
void TcpLink::read(int from) {
  Peer& p = peer(from);
  constexpr int kMostTurns = 16;
  for (int turn = 0; turn < kMostTurns && p.socket.open(); ++turn) {
    std::array<iovec, 2> parts = {};
    std::size_t count = 0, direct = 0;
    if (p.inside) {
      std::byte* place = place_of(p);
      const std::size_t left = static_cast<std::size_t>(p.frame.bytes) - p.got;
      direct = place == nullptr ? std::min(left, nowhere_.size()) : left;
      parts[count++] = {place == nullptr ? nowhere_.data() : place, direct};
    }
    // What was not looked at is less than a frame.
    std::memmove(p.buffer.data(), p.buffer.data() + p.begin, p.end - p.begin);
    p.end -= p.begin, p.begin = 0;
    const std::size_t room = p.buffer.size() - p.end;
    parts[count++] = {p.buffer.data() + p.end,
                      direct < p.frame.bytes - p.got && p.inside ? 0 : room};
    const ssize_t got = readv(p.socket.file(), parts.data(), static_cast<int>(count));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == ENOMEM)) return;
    if (got <= 0) return lose(from, got < 0 ? errno : 0);
    const std::size_t bytes = static_cast<std::size_t>(got), placed = std::min(bytes, direct);
    p.got += placed;
    p.end += bytes - placed;
    if (p.inside && p.got == p.frame.bytes) end_message(from);
    while (look_at_frames(from)) {
    }
    if (bytes < direct + room) return;  // there was no more
  }
}

/// Takes one frame, and what of its bytes is here, out of the buffer. False: there is none.
bool TcpLink::look_at_frames(int from) {
  Peer& p = peer(from);
  if (!p.socket.open() || p.inside || p.end - p.begin < sizeof(Frame)) return false;
  std::memcpy(&p.frame, p.buffer.data() + p.begin, sizeof(Frame));
  p.begin += sizeof(Frame);
  begin_message(from);
  if (!p.inside) return true;
  const std::size_t here =
      std::min(p.end - p.begin, static_cast<std::size_t>(p.frame.bytes) - p.got);
  std::byte* place = place_of(p);
  if (place != nullptr && here > 0) std::memcpy(place, p.buffer.data() + p.begin, here);
  p.begin += here, p.got += here;
  if (p.got == p.frame.bytes) end_message(from);
  return true;
}

void TcpLink::begin_message(int from) {
  Peer& p = peer(from);
  const Frame& frame = p.frame;
  switch (frame.kind) {
    case Frame::Data:
      if (frame.bytes > kLongestSegment) return lose(from, EPROTO);
      p.inside = true, p.got = 0;
      p.receive = posted_for(from, frame);
      if (!p.socket.open()) return;
      if (p.receive == nullptr) {
        p.keep = &new_early(frame);
        p.keep->bytes.resize(frame.bytes);
        p.early.add(p.keep);
      }
      return;
    case Frame::Offer:
      if (Operation* receive = posted_for(from, frame)) {
        take_offer(from, frame, *receive);
      } else if (p.socket.open()) {
        Early& early = new_early(frame);
        early.complete = true;
        p.early.add(&early);
      }
      return;
    case Frame::Grant: return answer_grant(from, frame);
    case Frame::Large: {
      if (frame.receiver < 1 || frame.receiver > operations_.size()) return lose(from, EPROTO);
      Operation& receive = operations_[frame.receiver - 1];
      const bool granted = receive.state == Operation::UnderWay && !receive.sends &&
                           receive.matched && receive.bytes >= frame.bytes &&
                           receive.granted == from;
      if (!granted) return lose(from, EPROTO);
      receive.granted = kAnyone;
      p.inside = true, p.got = 0;
      p.receive = &receive;
      return;
    }
    case Frame::Bye: p.bye = true; return;
  }
  lose(from, EPROTO);
}

void TcpLink::end_message(int from) {
  Peer& p = peer(from);
  p.inside = false;
  if (p.receive != nullptr) finished(*p.receive);
  if (p.keep != nullptr) p.keep->complete = true;
  p.receive = nullptr, p.keep = nullptr;
}

TcpLink::Operation* TcpLink::posted_for(int from, const Frame& frame) {
  for (Queue<Operation>* queue : {&peer(from).posted, &anyone_}) {
    for (Operation* one = queue->first; one != nullptr; one = one->next) {
      if (one->channel != frame.channel || one->tag != frame.tag) continue;
      if (frame.bytes > one->bytes) {
        lose(from, EPROTO);
        return nullptr;
      }
      queue->remove(one);
      one->matched = true;
      return one;
    }
  }
  return nullptr;
}

// ---- Messages that came before their receives.

void TcpLink::add_early(bool large) {
  Early& fresh = earlies_.emplace_back();
  fresh.large = large;
  fresh.bytes.reserve(large ? kLongestSegment : kSmallEarly);
  free_earlies_[large].reserve(earlies_.size());
  free_earlies_[large].push_back(&fresh);
}

TcpLink::Early& TcpLink::new_early(const Frame& frame) {
  const bool large = frame.kind == Frame::Data && frame.bytes > kSmallEarly;
  std::vector<Early*>& free = free_earlies_[large];
  if (free.empty()) add_early(large);
  Early& out = *free.back();
  free.pop_back();
  out.frame = frame, out.complete = false, out.next = nullptr;
  return out;
}

void TcpLink::drop_early(int from, Early& early) {
  peer(from).early.remove(&early);
  early.bytes.clear();  // its memory is used again
  free_earlies_[early.large].push_back(&early);
}

void TcpLink::take_early(int from, Early& early, Operation& receive) {
  const Frame frame = early.frame;
  if (frame.bytes > receive.bytes) return lose(from, EPROTO);
  Peer& p = peer(from);
  receive.matched = true;
  if (frame.kind == Frame::Offer) {
    drop_early(from, early);
    return take_offer(from, frame, receive);
  }
  const std::size_t here = early.complete ? early.bytes.size() : p.got;
  if (here > 0) std::memcpy(receive.data, early.bytes.data(), here);
  if (early.complete) {
    finished(receive);
  } else {  // the rest goes straight to its place
    p.keep = nullptr, p.receive = &receive;
  }
  drop_early(from, early);
}

// ---- Large messages.

void TcpLink::take_offer(int from, const Frame& frame, Operation& receive) {
  Frame grant;
  grant.kind = Frame::Grant;
  grant.sender = frame.sender, grant.receiver = receive.index;
  receive.granted = from;
  send_own(from, grant);
}

void TcpLink::answer_grant(int from, const Frame& frame) {
  if (frame.sender < 1 || frame.sender > operations_.size()) return lose(from, EPROTO);
  Operation& operation = operations_[frame.sender - 1];
  const bool offered = operation.state == Operation::UnderWay && operation.sends &&
                       operation.rank == from && operation.frame.kind == Frame::Offer &&
                       !operation.queued;
  if (!offered) return lose(from, EPROTO);
  if (operation.data == nullptr) return release(operation);  // it was taken back
  const std::uint32_t receiver = frame.receiver;
  enqueue(operation, Frame::Large);
  operation.frame.receiver = receiver;
  flush(from);
}

}  // namespace tessera::process
