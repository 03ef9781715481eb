#include "tessera/comm/process/meeting_host.h"

#include <poll.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/base/printable.h"
#include "tessera/comm/process/letter.h"

namespace tessera::process {

using namespace std::chrono_literals;

Greeting greeting_of(const Place& place, std::uint64_t world, int port) {
  Greeting out;
  out.layout = sizeof(Letter) * 65536 + sizeof(Notice) * 16 + sizeof(Header) % 16;
  out.rank = place.rank, out.size = place.size, out.world = world, out.port = port;
  place.run.copy(out.run.data(), out.run.size() - 1);
  return out;
}

std::string protocol_problem(const Greeting& theirs) {
  const Greeting mine = greeting_of({}, 0, 0);
  if (theirs.protocol == mine.protocol && theirs.layout == mine.layout) return {};
  return text("another build of Tessera (protocol ", theirs.protocol, ".", theirs.layout,
              ", and here it is ", mine.protocol, ".", mine.layout,
              "); start the same program on all ranks");
}

std::string where_text(const Place& place) {
  const bool six = place.address.find(':') != std::string::npos;
  return text(six ? "[" : "", place.address, six ? "]:" : ":", place.port,
              place.source.empty() ? "" : text(" (", place.source, ")"));
}

Socket listen_for(const Place& place) {
  std::string why;
  const std::vector<Endpoint> found = addresses_of(place.address, place.port, why);
  require(!found.empty(), "no address is known for '", place.address, "' (", place.source,
          "), where rank 0 is to listen: ", why, "; give its host's name or number");
  Socket out =
      means_this_host(place.address) ? listen_at(found.front()) : listen_anywhere(place.port);
  const int number = errno;
  if (!out.open() && number == EADDRINUSE)
    fail(Fault::Usage, "rank 0 cannot listen at ", where_text(place),
         ": the port is in use on this host, by another program or run; give another port to all "
         "ranks (or is this host not that of rank 0, or rank 0 started twice?)");
  if (!out.open())
    fail(Fault::Resource, "rank 0 cannot listen at ", where_text(place), ": ", error_text(number));
  return out;
}

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
  send_all(caller.socket, kWords.data(), kWords.size(), std::chrono::steady_clock::now());
  caller.socket = Socket();
}

MeetingHost::MeetingHost(const Place& place, Moment until, std::chrono::milliseconds limit)
    : place_(place),
      until_(until),
      limit_(limit),
      listener_(listen_for(place)),
      ranks_(static_cast<std::size_t>(place.size)),
      listens_(ranks_.size()),
      missing_(place.size - 1) {}

std::vector<Socket> MeetingHost::meet() {
  await_all();
  tell_addresses();
  await_ready();
  return std::move(ranks_);
}

void MeetingHost::await_all() {
  std::vector<pollfd> files;
  while (missing_ > 0) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until_ - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      const double seconds = std::chrono::duration<double>(limit_).count();
      give_up(Fault::Peer, text("rank 0 of ", place_.size, " has waited ", seconds,
                                " s for all ranks to come up; ", missing()));
    }
    files.assign(1, {listener_.file(), POLLIN, 0});
    for (const Caller& caller : callers_) files.push_back({caller.socket.file(), POLLIN, 0});
    for (const Socket& rank : ranks_) files.push_back({rank.file(), POLLIN, 0});
    poll(files.data(), files.size(), static_cast<int>(std::min<std::int64_t>(left.count(), 1000)));
    const std::size_t callers = callers_.size();
    for (std::size_t i = 0; i < callers; ++i) {
      if (files[1 + i].revents == 0) continue;
      Caller& caller = callers_[i];
      bool bad = false;
      if (!caller.read(bad)) {
        if (bad && strangers_.size() < 8) strangers_.push_back(to_text(other_end(caller.socket)));
        bad ? refuse_stranger(caller) : void(caller.socket = Socket());
      } else if (caller.complete()) {
        take(caller);
      }
    }
    std::erase_if(callers_, [](const Caller& caller) { return !caller.socket.open(); });
    // A rank says nothing before it has the table: what can be read is its end.
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (files[1 + callers + r].revents != 0 && files[1 + callers + r].fd >= 0)
        give_up(Fault::Peer, text("rank ", r, " of ", place_.size, " (", to_text(listens_[r]),
                                  ") has ended before all ranks came up; its own words say why"));
    }
    for (;;) {
      Socket next = accept_next(listener_);
      if (!next.open()) break;
      callers_.push_back({std::move(next)});
    }
  }
}

void MeetingHost::take(Caller& caller) {
  const Greeting& it = caller.greeting;
  const std::string from = to_text(other_end(caller.socket));
  const auto refuse = [&](const std::string& why) {
    say(caller.socket, Word::Refusal, why, until_, Fault::Usage, true);
    caller.socket = Socket();
  };
  const std::string own_run(greeting_of(place_, 0, 0).run.data());
  if (const std::string why = protocol_problem(it); !why.empty()) {
    const std::string all = text("rank ", it.rank, " (", from, ") is ", why);
    refuse(all);
    give_up(Fault::Usage, all);
  }
  if (std::string_view(it.run.data()) != own_run || it.world != 0) {
    strangers_.push_back(text("rank ", it.rank, " of another run at ", from));
    return refuse(text("rank 0 at ", where_text(place_), " is of another run ('", own_run,
                       "', and this is '", it.run.data(), "'); give every run a port of its own"));
  }
  std::string why;
  if (it.size != place_.size) {
    why = text("rank ", it.rank, " (", from, ") was told that there are ", it.size,
               " ranks, and rank 0 that there are ", place_.size,
               "; give all ranks the same number (", place_.source, ")");
  } else if (it.rank < 0 || it.rank >= place_.size) {
    why = text("rank ", it.rank, " (", from, ") of a world of ", place_.size);
  } else if (it.rank == 0 || ranks_[static_cast<std::size_t>(it.rank)].open()) {
    const auto r = static_cast<std::size_t>(it.rank);
    why =
        text("two processes say that they are rank ", it.rank, ": ",
             it.rank == 0 ? "the one that listens at " + where_text(place_)
                          : "one at " + to_text(other_end(ranks_[r])),
             " and one at ", from, "; give each process a rank of its own, 0 to ", place_.size - 1);
  }
  if (!why.empty()) {
    refuse(why);
    give_up(Fault::Usage, why);
  }
  const auto r = static_cast<std::size_t>(it.rank);
  listens_[r] = other_end(caller.socket);
  listens_[r].set_port(it.port);
  ranks_[r] = std::move(caller.socket);
  --missing_;
}

void MeetingHost::tell_addresses() {
  std::uint64_t world = 0;
  while (world == 0) {
    if (getrandom(&world, sizeof(world), 0) != sizeof(world))
      world =
          static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }
  std::string table(reinterpret_cast<const char*>(&world), sizeof(world));
  table.append(reinterpret_cast<const char*>(listens_.data()), listens_.size() * sizeof(Endpoint));
  for (std::size_t r = 1; r < ranks_.size(); ++r) {
    if (!say(ranks_[r], Word::Table, table, until_))
      give_up(Fault::Peer, text("rank ", r, " of ", place_.size, " (", to_text(listens_[r]),
                                ") has ended before all ranks came up: ", error_text(errno)));
  }
}

void MeetingHost::await_ready() {
  std::vector<pollfd> files;
  for (const Socket& rank : ranks_) files.push_back({rank.file(), POLLIN, 0});
  for (std::size_t ready = 1; ready < ranks_.size();) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until_ - std::chrono::steady_clock::now());
    if (poll(files.data(), files.size(),
             static_cast<int>(std::max<std::int64_t>(0, left.count()))) == 0)
      errno = ETIMEDOUT;
    for (std::size_t r = 1; r < ranks_.size(); ++r) {
      if (files[r].fd < 0 || (files[r].revents == 0 && left.count() > 0)) continue;
      Word word;
      std::string rest;
      const bool heard = hear(ranks_[r], word, rest, until_);
      if (!heard)
        give_up(Fault::Peer, text("rank ", r, " of ", place_.size, " (", to_text(listens_[r]),
                                  ") did not come up with the others: ", error_text(errno)));
      if (word.kind != Word::Ready) give_up(Fault::Peer, rest);
      files[r].fd = -1;
      ++ready;
    }
  }
  for (std::size_t r = 1; r < ranks_.size(); ++r) say(ranks_[r], Word::Go, "", until_);
}

void MeetingHost::give_up(Fault fault, const std::string& why) {
  const Moment soon = std::chrono::steady_clock::now() + 200ms;
  for (const Socket& rank : ranks_) {
    if (rank.open()) say(rank, Word::Refusal, why, soon, fault);
  }
  fail(fault, why);
}

std::string MeetingHost::missing() const {
  std::vector<std::string> ranks;
  for (std::size_t r = 1; r < ranks_.size(); ++r) {
    if (!ranks_[r].open()) ranks.push_back(text(r));
  }
  constexpr std::size_t kMost = 16;
  const std::size_t count = ranks.size();
  if (count > kMost) ranks.resize(kMost);
  std::string out = text(count == 1 ? "rank " : "ranks ", join(ranks), count > kMost ? ", ..." : "",
                         count == 1 ? " has" : " have", " not come to ", where_text(place_),
                         ": not started, or the port cannot be reached from there");
  if (!strangers_.empty())
    out += text("; refused: ", join(strangers_), ", which are no ranks of this run");
  return out;
}

}  // namespace tessera::process
