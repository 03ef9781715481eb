/// The ranks above 0 while the ranks of a world meet.

#include "tessera/comm/process/meeting.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>

#include "tessera/base/error.h"
#include "tessera/comm/process/meeting_host.h"
#include "tessera/comm/process/meeting_words.h"
#include "tessera/comm/processes.h"

namespace tessera::process {

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

/// How long a rank waits for rank 0's verdict beyond rank 0's own limit, which it tells first.
constexpr auto kVerdict = 2s;

class MeetingGuest {
 public:
  MeetingGuest(const Place& place, Moment until, std::chrono::milliseconds limit)
      : place_(place), until_(until), limit_(limit), ranks_(static_cast<std::size_t>(place.size)) {}

  std::vector<Socket> meet() {
    reach_host();
    // The own port: where rank 0 can be reached only from this host, so can this rank.
    Endpoint here = local_end(host());
    here.set_port(0);
    listener_ =
        here.loopback() && means_this_host(place_.address) ? listen_at(here) : listen_anywhere(0);
    if (!listener_.open())
      fail(Fault::Resource, me(), " cannot listen for the ranks above it: ", error_text(errno));
    const Greeting greeting = greeting_of(place_, 0, local_end(listener_).port());
    if (!send_all(host(), &greeting, sizeof(greeting), until_)) lost_host();
    read_table(await_word(Word::Table));
    for (int r = 1; r < place_.rank; ++r) reach(r);
    await_those_above();
    if (!say(host(), Word::Ready, "", until_)) lost_host();
    await_word(Word::Go);
    return std::move(ranks_);
  }

 private:
  Socket& host() { return ranks_[0]; }
  std::string me() const { return text("rank ", place_.rank, " of ", place_.size); }
  double seconds() const { return std::chrono::duration<double>(limit_).count(); }

  /// Connects to rank 0, which may start later than this one.
  void reach_host() {
    std::string why;
    while (steady_clock::now() < until_) {
      for (const Endpoint& to : addresses_of(place_.address, place_.port, why)) {
        host() = begin_connect(to);
        if (!host().open()) {
          why = error_text(errno);
        } else if (!await_socket(host(), true, std::min(until_, steady_clock::now() + 5s))) {
          why = "no answer";
        } else if (const int number = connected(host()); number != 0) {
          why = error_text(number);
        } else if (to_text(local_end(host())) == to_text(other_end(host()))) {
          why = "nobody listens";  // the system connected this socket with itself
        } else {
          return;
        }
        host() = Socket();
      }
      std::this_thread::sleep_for(50ms);
    }
    fail(Fault::Peer, me(), " has waited ", seconds(), " s for rank 0 at ", where_text(place_),
         ": ", why, "; start rank 0 there, or give the address and port where it is");
  }

  [[noreturn]] void lost_host() {
    const int number = errno;
    if (number == EPROTO)
      fail(Fault::Usage, me(), ": what listens at ", where_text(place_),
           " is no rank of Tessera; give a port that nothing else uses");
    fail(Fault::Peer, me(), " has lost rank 0 at ", where_text(place_),
         " before all ranks came up: ", error_text(number));
  }

  /// Rank 0's next word. It may be that another rank, or this one, is wrong.
  std::string await_word(Word::Kind wanted) {
    Word word;
    std::string rest;
    if (!hear(host(), word, rest, std::max(until_, steady_clock::now() + limit_) + kVerdict))
      lost_host();
    if (word.kind == Word::Refusal) {
      const Fault fault = static_cast<Fault>(word.fault);
      if (word.speaks != 0) throw Error(fault, rest);
      throw Reported(fault, rest);
    }
    if (word.kind != wanted) {
      errno = EPROTO;
      lost_host();
    }
    return rest;
  }

  void read_table(const std::string& table) {
    listens_.resize(ranks_.size());
    check(table.size() == sizeof(world_) + listens_.size() * sizeof(Endpoint),
          "rank 0 sends a table of ", table.size(), " bytes");
    std::memcpy(&world_, table.data(), sizeof(world_));
    std::memcpy(listens_.data(), table.data() + sizeof(world_), listens_.size() * sizeof(Endpoint));
    // Ranks of rank 0's host may have come by an address that only that host knows.
    for (Endpoint& listens : listens_) {
      if (listens.length == 0 || !listens.loopback()) continue;
      const int port = listens.port();
      listens = other_end(host());
      listens.set_port(port);
    }
  }

  void reach(int rank) {
    const auto r = static_cast<std::size_t>(rank);
    const Moment until = until_ - (until_ - steady_clock::now()) / 4;  // rank 0 is to hear of it
    ranks_[r] = begin_connect(listens_[r]);
    int number = errno;
    if (ranks_[r].open()) {
      number = await_socket(ranks_[r], true, until) ? connected(ranks_[r]) : ETIMEDOUT;
    }
    const Greeting greeting = greeting_of(place_, world_, 0);
    if (number == 0 || number == EINPROGRESS) {
      if (send_all(ranks_[r], &greeting, sizeof(greeting), until)) return;
      number = errno;
    }
    give_up(text(me(), " cannot reach rank ", rank, " at ", to_text(listens_[r]), ": ",
                 error_text(number),
                 "; every host must reach every other, at any port (is there a firewall?)"));
  }

  /// Accepts the connections of the ranks above this one.
  void await_those_above() {
    const Moment until = until_ - (until_ - steady_clock::now()) / 4;
    std::vector<Caller> callers;
    int missing = place_.size - 1 - place_.rank;
    std::vector<pollfd> files;
    while (missing > 0) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now());
      if (left.count() <= 0) give_up(text(me(), " has not been reached by ", above()));
      files.assign({{listener_.file(), POLLIN, 0}, {host().file(), POLLIN, 0}});
      for (const Caller& caller : callers) files.push_back({caller.socket.file(), POLLIN, 0});
      poll(files.data(), files.size(), static_cast<int>(left.count()));
      if (files[1].revents != 0) await_word(Word::Go);  // it cannot be that
      for (std::size_t i = 0; i + 2 < files.size(); ++i) {
        if (files[i + 2].revents == 0) continue;
        Caller& caller = callers[i];
        bool bad = false;
        if (!caller.read(bad)) {
          bad ? refuse_stranger(caller) : void(caller.socket = Socket());
        } else if (caller.complete()) {
          missing -= take(caller);
        }
      }
      std::erase_if(callers, [](const Caller& caller) { return !caller.socket.open(); });
      for (;;) {
        Socket next = accept_next(listener_);
        if (!next.open()) break;
        callers.push_back({std::move(next)});
      }
    }
  }

  /// True for a rank of this world.
  bool take(Caller& caller) {
    const Greeting& it = caller.greeting;
    const bool ours = protocol_problem(it).empty() && it.world == world_ && it.rank > place_.rank &&
                      it.rank < place_.size && !ranks_[static_cast<std::size_t>(it.rank)].open();
    if (ours) {
      ranks_[static_cast<std::size_t>(it.rank)] = std::move(caller.socket);
    } else {
      refuse_stranger(caller);
    }
    caller.socket = Socket();
    return ours;
  }

  std::string above() const {
    std::vector<std::string> ranks;
    for (std::size_t r = static_cast<std::size_t>(place_.rank) + 1; r < ranks_.size(); ++r) {
      if (!ranks_[r].open()) ranks.push_back(text("rank ", r, " (", to_text(listens_[r]), ")"));
    }
    return join(ranks);
  }

  /// Tells rank 0, which tells all.
  [[noreturn]] void give_up(const std::string& why) {
    say(host(), Word::Trouble, why, steady_clock::now() + 1s);
    await_word(Word::Refusal);
    throw Error(Fault::Peer, why);
  }

  const Place& place_;
  const Moment until_;
  const std::chrono::milliseconds limit_;
  std::vector<Socket> ranks_;
  Socket listener_;
  std::uint64_t world_ = 0;
  std::vector<Endpoint> listens_;  // by rank
};

}  // namespace

std::vector<Socket> meet(const Place& place, std::chrono::milliseconds limit) {
  if (place.size == 1) return std::vector<Socket>(1);
  const Moment until = steady_clock::now() + limit;
  std::vector<Socket> out = place.rank == 0 ? MeetingHost(place, until, limit).meet()
                                            : MeetingGuest(place, until, limit).meet();
  for (const Socket& socket : out) {
    if (socket.open()) tune(socket, limit);
  }
  return out;
}

}  // namespace tessera::process
