/// What ranks send each other: greetings, words, tables, notices, headers of calls, and the frames
/// of all of it. The first byte of an input says which.

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "fuzz/target.h"
#include "tessera/comm/backend/call.h"
#include "tessera/comm/process/hosts.h"
#include "tessera/comm/process/letter.h"
#include "tessera/comm/process/notices.h"
#include "tessera/comm/process/tcp/meeting_leader.h"
#include "tessera/comm/process/tcp/tcp_link.h"

namespace tessera::fuzz {

namespace {

using namespace tessera::process;

constexpr int kRanks = 3, kMe = 2;

/// As it is read from a connection: what does not come stays as it was made.
template <typename T>
T from_bytes(std::string_view input) {
  T out;
  std::memcpy(static_cast<void*>(&out), input.data(), std::min(input.size(), sizeof(T)));
  return out;
}

void refuse(const std::string& problem) {
  if (!problem.empty()) fail(Fault::Peer, problem);
}

void call(std::string_view input) {
  const Header header = from_bytes<Header>(input);
  refuse(header.problem());
  then([&] {
    check(header.shape().ndim() == header.ndim, "a shape of other dims");
    check(header.agrees(header), "a call does not agree with itself");
    const Collective collective = header.collective();
    backend::signature(collective);
    backend::Seen seen;
    header.show(seen);
    check(!text(collective, seen).empty(), "a call without words");
  });
}

void notice(std::string_view input) {
  const Notice it = from_bytes<Notice>(input);
  refuse(it.problem(kRanks));
  then([&] {
    check(it.rank >= 0 && it.rank < kRanks, "a notice of rank ", it.rank);
    if (it.kind == Notice::Alive) return;
    check(std::strlen(it.words.data()) < it.words.size(), "words without an end");
    check(it.fault >= 0 && fault_of(it.fault) == static_cast<Fault>(it.fault), "no fault");
  });
}

void greeting(std::string_view input) {
  Rendezvous where;
  where.size = kRanks;
  Greeting it = from_bytes<Greeting>(input);
  if (it.protocol == 0) {  // what each version numbers anew
    const Greeting ours = greeting_of(where, 0, 0);
    it.protocol = ours.protocol;
    it.layout = ours.layout;
  }
  const Verdict verdict = verdict_on(it, where, "there");
  if (!verdict.welcome) check(!verdict.why.empty(), "refused without a word");
  refuse(verdict.why);
  then([&] { check(it.rank >= 0 && it.rank < kRanks && it.port > 0, "welcome: ", it.rank); });
}

void word(std::string_view input) {
  const Word it = from_bytes<Word>(input);
  if (!is_word(it, kMostOfUnproved)) fail(Fault::Peer, "no word");
  then([&] { check(fault_of(it.fault) <= Fault::Internal, "a fault ", it.fault); });
}

void table(std::string_view input) {
  const Table it = read_table(input, kMe, kRanks, "rank 2");
  then([&] {
    check(to_text(it) == input, "a table is another one when it is written");
    for (int r = 1; r < kMe; ++r)
      check(!to_text(it.listens[static_cast<std::size_t>(r)]).empty(), "rank ", r, " has no name");
  });
}

void hosts(std::string_view input) {
  std::vector<Process> all;
  for (int r = 0; r < kRanks; ++r) {
    all.push_back(from_bytes<Process>(input));
    input.remove_prefix(std::min(input.size(), sizeof(Process)));
    refuse(all.back().problem(kRanks));
  }
  then([&] {
    for (const Watch::Pid& pid : watchable(all, kMe)) check(pid.pid > 0, "a pid ", pid.pid);
    check(neighbours(all, kMe).ranks >= 1 && cores_per_rank(all) >= 0, "nobody is here");
  });
}

/// What another rank sends over its connection, while this one waits for a notice and for letters,
/// sends a large message, and takes all that comes.
void frames(std::string_view input) {
  std::array<int, 2> pair;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair.data()) != 0)
    throw Broken("no pair of sockets");
  const Socket other(pair[0]);
  std::vector<Socket> connections(2);
  connections[1] = Socket(pair[1]);
  std::vector<std::byte> large(kLongestSegment + 1);
  {
    TcpLink link(0, std::move(connections));
    Notices notices(link);
    std::array<Letter, 2> letters;
    std::vector<Request> requests;
    for (Letter& letter : letters) {
      letter.header = Header();
      requests.push_back(link.receive(Channel::Calls, &letter, sizeof(Letter), 1, kLetter));
    }
    requests.push_back(link.receive(Channel::Calls, large.data(), large.size(), 1, kData));
    requests.push_back(link.send(Channel::Calls, large.data(), large.size(), 1, kReduced));
    const auto look = [&] {
      for (Request& request : requests) link.done(request);
      Notice it;
      while (notices.next(it)) it.problem(2);
      for (const Letter& letter : letters) letter.header.problem();
    };
    while (!input.empty() && !link.lost(1)) {
      const ssize_t sent = ::send(other.file(), input.data(), input.size(), MSG_NOSIGNAL);
      if (sent > 0) input.remove_prefix(static_cast<std::size_t>(sent));
      look();
    }
    shutdown(other.file(), SHUT_WR);
    look();
    for (Request& request : requests) link.cancel(request);
    if (link.lost(1) && link.loss_errno(1) == EPROTO) fail(Fault::Peer, "no frames");
  }
}

constexpr std::array<void (*)(std::string_view), 7> kLetters = {call,  notice, greeting, word,
                                                                table, hosts,  frames};

void run(std::string_view input) {
  if (input.empty()) fail(Fault::Peer, "nothing has come");
  const auto which = static_cast<unsigned char>(input.front()) - '0';
  if (which < 0 || which >= static_cast<int>(kLetters.size())) fail(Fault::Peer, "no such letter");
  kLetters[static_cast<std::size_t>(which)](input.substr(1));
}

}  // namespace

/// A link has buffers for what comes early, and one for each offer of 32 bytes.
const Target kTarget = {4 << 20, 512, run};

}  // namespace tessera::fuzz
