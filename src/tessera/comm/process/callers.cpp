#include "tessera/comm/process/callers.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

namespace tessera::process {

using std::chrono::steady_clock;

bool Caller::read(bool& bad) {
  bad = false;
  while (!complete()) {
    auto* at = reinterpret_cast<char*>(&greeting);
    const ssize_t count = recv(socket.file(), at + got, sizeof(greeting) - got, 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (count <= 0) return false;
    got += static_cast<std::size_t>(count);
    if (std::memcmp(at, kMagic.data(), std::min(got, kMagic.size())) != 0) {
      bad = true;
      return false;
    }
  }
  return true;
}

void refuse_stranger(Caller& caller) {
  constexpr std::string_view kWords =
      "Tessera: the ranks of a run meet at this port; what you sent is no rank's greeting\r\n";
  send_all(caller.socket, kWords.data(), kWords.size(), steady_clock::now());
  caller.socket = Socket();
}

void Callers::add_to(std::vector<pollfd>& files) const {
  const bool full = callers_.size() >= kMost;  // who comes next waits
  files.push_back({full ? -1 : listener_.file(), POLLIN, 0});
  for (const Caller& caller : callers_) files.push_back({caller.socket.file(), POLLIN, 0});
}

int Callers::look(std::span<const pollfd> files, const std::function<void(Caller&)>& take) {
  for (std::size_t i = 0; i < callers_.size(); ++i) {
    if (files[1 + i].revents == 0) continue;
    Caller& caller = callers_[i];
    bool bad = false;
    const bool goes_on = caller.read(bad);
    if (goes_on && !caller.complete()) continue;
    if (goes_on) {
      take(caller);
    } else if (bad) {
      note(to_text(other_end(caller.socket)));
      refuse_stranger(caller);
    }
    caller.socket = Socket();
  }
  const Moment now = steady_clock::now();
  const bool full = callers_.size() >= kMost;
  std::erase_if(callers_, [&](const Caller& caller) {
    return !caller.socket.open() || (full && now - caller.since > patience_);
  });
  while (callers_.size() < kMost) {
    Socket next = accept_next(listener_);
    if (!next.open()) return errno;
    callers_.push_back({std::move(next), now});
  }
  return 0;
}

void Callers::note(const std::string& stranger) {
  constexpr std::size_t kMostNamed = 8;
  if (strangers_.size() < kMostNamed) strangers_.push_back(stranger);
}

}  // namespace tessera::process
