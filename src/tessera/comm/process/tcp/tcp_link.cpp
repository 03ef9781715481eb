#include "tessera/comm/process/tcp/tcp_link.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "tessera/base/error.h"
#include "tessera/comm/backend/patience.h"
#include "tessera/comm/process/hosts.h"

namespace tessera::process {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kBuffer = 64 << 10;
constexpr int kGathered = -1;  // a tag of the link itself

/// What all processes of one running system share, whatever its host names and containers.
std::array<char, 64> boot() {
  std::array<char, 64> out{};
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string line;
  if (std::getline(file, line)) {
    line.copy(out.data(), out.size() - 1);
  } else {
    gethostname(out.data(), out.size() - 1);
  }
  return out;
}

}  // namespace

TcpLink::TcpLink(int rank, std::vector<Socket> connections)
    : rank_(rank), events_(epoll_create1(EPOLL_CLOEXEC)), peers_(connections.size()) {
  if (!events_.open())
    fail(Fault::Resource, "rank ", rank, " of ", connections.size(),
         " cannot watch its connections: ", error_text(errno), "; ", kMoreFiles);
  nowhere_.resize(kBuffer);
  // As many as are mostly under way; pages that are not used are not there.
  const std::size_t others = connections.size() - 1;
  for (std::size_t i = 0; i < 64 + 32 * others; ++i) add_operation();
  for (std::size_t i = 0; i < 16 * others; ++i) add_early(false);
  for (std::size_t i = 0; i < std::min<std::size_t>(4 * others, 64); ++i) add_early(true);
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    peers_[r].socket = std::move(connections[r]);
    if (!peers_[r].socket.open()) continue;
    peers_[r].buffer.resize(kBuffer);
    epoll_event event = {};
    event.events = EPOLLIN, event.data.u64 = r;
    if (epoll_ctl(events_.file(), EPOLL_CTL_ADD, peers_[r].socket.file(), &event) != 0)
      fail(Fault::Resource, "rank ", rank, " of ", peers_.size(),
           " cannot watch its connection to rank ", r, ": ", error_text(errno),
           "; raise the limit of memory or of epoll's watches (sysctl "
           "fs.epoll.max_user_watches)");
  }
}

TcpLink::~TcpLink() {
  // The memory of what is under way may be gone.
  for (Operation& operation : operations_) {
    if (operation.state != Operation::UnderWay || operation.own) continue;
    if (!operation.sends) {
      operation.data = nullptr;
      (operation.rank == kAnyone ? anyone_ : peer(operation.rank).posted).remove(&operation);
    } else if (operation.queued) {
      Peer& p = peer(operation.rank);
      const bool begun = operation.moved > 0;
      p.out.remove(&operation);
      if (begun) p.socket = Socket();  // nothing that follows could be understood
    }
  }
  // Where the world has failed, the others are to read why before they see an end.
  const auto until = std::chrono::steady_clock::now() + 200ms;
  const auto open = [](const Peer& p) { return p.socket.open() && !p.lost && !p.bye; };
  for (Peer& p : peers_) {
    if (open(p) && p.out.first == nullptr) shutdown(p.socket.file(), SHUT_WR);
  }
  // A connection that is closed with bytes to be read is reset, and what was sent may be lost.
  try {
    while (std::any_of(peers_.begin(), peers_.end(), open) &&
           std::chrono::steady_clock::now() < until)
      progress(10);
  } catch (...) {  // nobody reads it
  }
}

int TcpLink::machine() {
  const std::array<char, 64> mine = boot();
  std::vector<std::array<char, 64>> all(peers_.size());
  gather(&mine, all.data(), sizeof(mine));
  return static_cast<int>(std::find(all.begin(), all.end(), mine) - all.begin());
}

void TcpLink::gather(const void* mine, void* all, std::size_t bytes) {
  const auto at = [&](int r) {
    return static_cast<std::byte*>(all) + static_cast<std::size_t>(r) * bytes;
  };
  std::vector<Request> requests;
  std::memcpy(at(rank_), mine, bytes);
  for (int r = 0; r < size(); ++r) {
    if (r == rank_) continue;
    requests.push_back(receive(Channel::Control, at(r), bytes, r, kGathered));
    requests.push_back(send(Channel::Control, mine, bytes, r, kGathered));
  }
  backend::Patience patience({});
  for (std::size_t i = 0; i < requests.size(); ++i) {
    while (!done(requests[i])) {
      const int from = static_cast<int>(i / 2) + (static_cast<int>(i / 2) >= rank_);
      if (lost(from))
        fail(Fault::Peer, "rank ", rank_, " of ", size(), " found that ",
             loss_text(text("rank ", from), loss_errno(from)), ", before the first step");
      patience.wait();
    }
  }
}

// ---- Operations.

void TcpLink::add_operation() {
  Operation& fresh = operations_.emplace_back();
  fresh.index = static_cast<std::uint32_t>(operations_.size());  // from 1 on
  free_operations_.reserve(operations_.size());
  free_operations_.push_back(fresh.index);
}

TcpLink::Operation& TcpLink::make(bool sends, Channel channel, int rank, int tag, void* data,
                                  std::size_t bytes) {
  if (free_operations_.empty()) add_operation();
  Operation& out = operations_[free_operations_.back() - 1];
  free_operations_.pop_back();
  out.state = Operation::UnderWay, out.sends = sends, out.own = false, out.channel = channel;
  out.rank = rank, out.tag = tag, out.data = static_cast<std::byte*>(data), out.bytes = bytes;
  out.moved = 0, out.queued = false, out.matched = false, out.granted = kAnyone;
  out.next = nullptr;
  return out;
}

Request TcpLink::request_of(Operation& operation) { return {operation.index, true}; }

void TcpLink::release(Operation& operation) {
  operation.state = Operation::Free;
  free_operations_.push_back(operation.index);
}

void TcpLink::finished(Operation& operation) {
  operation.state = Operation::Done;
  if (operation.own) release(operation);
}

bool TcpLink::done(Request& request) {
  if (!request.pending) return true;
  Operation& operation = of(request);
  if (operation.state != Operation::Done) progress();
  if (operation.state != Operation::Done) return false;
  release(operation);
  request.pending = false;
  return true;
}

/// A message that is moving goes on without the caller's memory: what a send has still to give is
/// copied, what a receive has still to get goes nowhere.
void TcpLink::cancel(Request& request) {
  if (!request.pending) return;
  request.pending = false;
  Operation& operation = of(request);
  if (operation.state == Operation::Done) return release(operation);
  if (operation.sends && operation.queued) return keep_copy(operation);
  if (!operation.sends && !operation.matched) {
    (operation.rank == kAnyone ? anyone_ : peer(operation.rank).posted).remove(&operation);
    return release(operation);
  }
  // An offer that nobody has granted, or what was granted and has not come.
  operation.own = true;
  operation.data = nullptr;
}

// ---- The end.

void TcpLink::finish() {
  Frame bye;
  bye.kind = Frame::Bye;
  for (int r = 0; r < size(); ++r) {
    if (r != rank_) send_own(r, bye);
  }
  const auto at_end = [](const Peer& p) {
    return !p.socket.open() || p.lost || (p.bye && p.out.first == nullptr);
  };
  while (!std::all_of(peers_.begin(), peers_.end(), at_end)) progress(100);
}

/// The others see that this rank has gone; one that hangs is left to what started it.
void TcpLink::end_all(int) {
  for (int r = 0; r < size(); ++r) lose(r, 0);
}

}  // namespace tessera::process
