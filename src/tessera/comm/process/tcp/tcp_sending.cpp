/// Messages out: a queue for each connection.

#include <sys/epoll.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "tessera/base/error.h"
#include "tessera/comm/process/tcp/tcp_link.h"

namespace tessera::process {

Request TcpLink::send(Channel channel, const void* data, std::size_t bytes, int to, int tag) {
  // It is only read.
  Operation& operation = make(true, channel, to, tag, const_cast<void*>(data), bytes);
  const Request out = request_of(operation);
  if (to == rank_) {
    send_to_self(operation);
  } else {
    enqueue(operation, bytes > kLongestSegment ? Frame::Offer : Frame::Data);
    flush(to);
  }
  return out;
}

void TcpLink::enqueue(Operation& operation, Frame::Kind kind) {
  operation.frame.kind = kind, operation.frame.channel = operation.channel;
  operation.frame.tag = operation.tag, operation.frame.bytes = operation.bytes;
  operation.frame.sender = operation.index;
  operation.moved = 0;
  Peer& p = peer(operation.rank);
  if (p.lost || !p.socket.open()) return finished(operation);  // nobody reads it
  operation.queued = true;
  p.out.add(&operation);
}

void TcpLink::send_own(int to, const Frame& frame) {
  Operation& operation = make(true, frame.channel, to, frame.tag, nullptr, 0);
  operation.own = true;
  operation.frame = frame;
  Peer& p = peer(to);
  if (p.lost || !p.socket.open()) return finished(operation);
  operation.queued = true;
  p.out.add(&operation);
  flush(to);
}

void TcpLink::flush(int to) {
  Peer& p = peer(to);
  while (p.out.first != nullptr) {
    Operation& operation = *p.out.first;
    const Frame::Kind kind = operation.frame.kind;
    const bool with_bytes = kind == Frame::Data || kind == Frame::Large;
    const std::size_t all = sizeof(Frame) + (with_bytes ? operation.bytes : 0);
    std::array<iovec, 2> parts = {};
    std::size_t count = 0;
    if (operation.moved < sizeof(Frame))
      parts[count++] = {reinterpret_cast<std::byte*>(&operation.frame) + operation.moved,
                        sizeof(Frame) - operation.moved};
    if (with_bytes && operation.bytes > 0) {
      const std::size_t given =
          operation.moved < sizeof(Frame) ? 0 : operation.moved - sizeof(Frame);
      parts[count++] = {operation.data + given, operation.bytes - given};
    }
    msghdr message = {};
    message.msg_iov = parts.data(), message.msg_iovlen = count;
    const ssize_t sent = sendmsg(p.socket.file(), &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM))
      return watch(to, true);
    if (sent < 0) {
      p.broken_by = errno;  // whoever reads next is told only that it is over
      // What it has sent before it went may still lie here to be read: the end is seen behind it.
      while (p.out.first != nullptr) {
        Operation& unsent = *p.out.first;
        p.out.remove(&unsent);
        unsent.queued = false;
        finished(unsent);
      }
      return watch(to, false);
    }
    operation.moved += static_cast<std::size_t>(sent);
    if (operation.moved < all) continue;
    p.out.remove(&operation);
    operation.queued = false;
    if (kind != Frame::Offer) finished(operation);  // an offer waits for its grant
  }
  watch(to, false);
}

void TcpLink::watch(int to, bool room) {
  Peer& p = peer(to);
  if (p.watched == room || p.lost || !p.socket.open()) return;
  p.watched = room;
  epoll_event event = {};
  event.events = room ? EPOLLIN | EPOLLOUT : EPOLLIN,
  event.data.u64 = static_cast<std::uint64_t>(to);
  epoll_ctl(events_.file(), EPOLL_CTL_MOD, p.socket.file(), &event);
}

void TcpLink::keep_copy(Operation& operation) {
  operation.own = true;
  if (operation.frame.kind == Frame::Offer) {
    operation.data = nullptr;  // nobody will get it; its place is kept until its grant comes
    return;
  }
  operation.copy.assign(operation.data, operation.data + operation.bytes);
  operation.data = operation.copy.data();
}

void TcpLink::send_to_self(Operation& operation) {
  Frame frame;
  frame.channel = operation.channel, frame.tag = operation.tag, frame.bytes = operation.bytes;
  if (Operation* receive = posted_for(rank_, frame)) {
    if (operation.bytes > 0) std::memcpy(receive->data, operation.data, operation.bytes);
    finished(*receive);
  } else {
    Early& early = new_early(frame);
    early.bytes.assign(operation.data, operation.data + operation.bytes);
    early.complete = true;
    peer(rank_).early.add(&early);
  }
  finished(operation);
}

/// The connection is over, by an errno, and nothing was said of an end.
void TcpLink::lose(int rank, int number) {
  Peer& p = peer(rank);
  if (p.lost || !p.socket.open()) return;
  epoll_ctl(events_.file(), EPOLL_CTL_DEL, p.socket.file(), nullptr);
  while (p.out.first != nullptr) {
    Operation& unsent = *p.out.first;
    p.out.remove(&unsent);
    unsent.queued = false;
    finished(unsent);
  }
  p.socket = Socket();
  if (p.bye) return;
  p.lost = true;
  if (number != 0) p.broken_by = number;
  ++losses_;
}

}  // namespace tessera::process
