#include "tessera/comm/process/tcp/callers.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "tessera/base/text.h"
#include "tessera/comm/process/tcp/meeting_leader.h"

namespace tessera::process {

using std::chrono::steady_clock;

namespace {

/// Tells something that is no rank so, in words that a person can read, and closes it.
void refuse_stranger(Caller& caller) {
  constexpr std::string_view kWords =
      "Tessera: the ranks of a run meet at this port; what you sent is not a rank's greeting\r\n";
  send_all(caller.socket, kWords.data(), kWords.size(), steady_clock::now());
  caller.socket = Socket();
}

}  // namespace

Callers::Callers(Listening listening, const Secret& secret, std::chrono::milliseconds patience)
    : listener_(std::move(listening.socket)),
      secret_(secret),
      patience_(patience),
      also_(std::move(listening.also)) {}

void Callers::add_to(std::vector<pollfd>& files) const {
  files.push_back({listener_.file(), POLLIN, 0});
  for (const Caller& caller : callers_) files.push_back({caller.socket.file(), POLLIN, 0});
}

int Callers::look(std::span<const pollfd> files, const Take& take) {
  for (std::size_t i = 0; i < callers_.size(); ++i) {
    Caller& caller = callers_[i];
    if (files[1 + i].revents == 0 || hears(caller)) continue;
    if (!caller.socket.open()) continue;
    Line line(std::move(caller.socket), caller.said.key(secret_), Line::Side::Listener);
    take(caller.greeting(), line);
  }
  const Moment now = steady_clock::now();
  std::erase_if(callers_, [&](const Caller& caller) {
    const bool silent = caller.socket.open() && now - caller.since > patience_;
    let_go_ += silent;
    return silent || !caller.socket.open();
  });
  // Those that are here are heard before more than these are let in.
  for (std::size_t i = 0; i < kMost / 4; ++i) {
    Socket next = accept_next(listener_);
    const int number = errno;
    if (!next.open() && (number == 0 || callers_.empty())) return number;
    if (!next.open() || callers_.size() >= kMost) let_go_oldest();
    if (next.open()) callers_.push_back({std::move(next), steady_clock::now()});
  }
  return 0;
}

/// Reads on. False: it is closed, or has proved that it is of this run, and is open then.
bool Callers::hears(Caller& caller) {
  for (;;) {
    const bool opened = caller.has_opened();
    const std::size_t begin = opened ? sizeof(Opening) : 0;
    const std::size_t bytes = opened ? sizeof(Proof) : sizeof(Opening);
    char* const at = opened ? reinterpret_cast<char*>(&caller.proof)
                            : reinterpret_cast<char*>(&caller.said.opening);
    const std::size_t got = caller.got - begin;
    const ssize_t count = recv(caller.socket.file(), at + got, bytes - got, 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (count <= 0) {
      caller.socket = Socket();
      return false;
    }
    caller.got += static_cast<std::size_t>(count);
    const std::size_t magic = std::min(caller.got, kMagic.size());
    if (std::memcmp(&caller.said.opening, kMagic.data(), magic) != 0) {
      note(to_text(other_end(caller.socket)));
      refuse_stranger(caller);
      return false;
    }
    if (!opened && caller.got >= sizeof(Greeting) && !answer_opening(caller)) return false;
    if (caller.got < sizeof(Opening) + sizeof(Proof)) continue;
    if (Secret::same(caller.proof, caller.said.proof_of_caller(secret_))) return false;
    note(text("one at ", to_text(other_end(caller.socket)),
              " that does not know the secret of this run"));
    caller.socket = Socket();
    return false;
  }
}

/// To a whole greeting; the challenge may not have come yet. False: it is refused.
bool Callers::answer_opening(Caller& caller) {
  if (caller.greeting().protocol != kProtocol) {  // it may know of no proofs
    const std::string why = protocol_problem(caller.greeting());
    note(text("one at ", to_text(other_end(caller.socket)), ", ", why));
    return refuse(caller, text("this rank is ", why));
  }
  if (!caller.has_opened()) return true;
  const Endpoint own = local_end(caller.socket);
  const PlainEndpoint& dialled = caller.said.opening.dialled;
  if (dialled != plain(own) && std::ranges::find(also_, dialled, plain) == also_.end()) {
    note(text("one at ", to_text(other_end(caller.socket)), " that has dialled another address"));
    return refuse(caller, text("this rank has not dialled ", to_text(own),
                               ", and comes there: something between the two passes connections "
                               "on; give all ranks the address that rank 0's host itself has"));
  }
  Response answer = {draw_challenge(), {}};
  caller.said.answer = answer.challenge;
  answer.proof = caller.said.proof_of_listener(secret_);
  const std::string rest(reinterpret_cast<const char*>(&answer), sizeof(answer));
  if (say(caller.socket, Word::Answer, rest, steady_clock::now())) return true;
  caller.socket = Socket();
  return false;
}

/// Before it has proved itself. Returns false.
bool Callers::refuse(Caller& caller, const std::string& why) {
  say(caller.socket, Word::Refusal, why, steady_clock::now(), Fault::Usage, true);
  caller.socket = Socket();
  return false;
}

/// The oldest of those that say nothing; of all, where all have said something.
void Callers::let_go_oldest() {
  const auto oldest = std::ranges::min_element(callers_, {}, [](const Caller& caller) {
    return std::pair(caller.has_opened(), caller.since);
  });
  if (oldest == callers_.end()) return;
  callers_.erase(oldest);
  ++let_go_;
}

void Callers::note(const std::string& stranger) {
  constexpr std::size_t kMostNamed = 8;
  if (strangers_.size() < kMostNamed) {
    strangers_.push_back(stranger);
  } else {
    ++more_strangers_;
  }
}

std::string Callers::strangers() const {
  std::string out;
  if (!strangers_.empty()) out += text("; refused: ", join(strangers_));
  if (more_strangers_ > 0) out += text(" and ", more_strangers_, " more");
  if (let_go_ > 0) out += text("; let go: ", let_go_, " connections that said nothing in time");
  return out;
}

}  // namespace tessera::process
