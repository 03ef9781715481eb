#include "tessera/comm/process/tcp/meeting_leader.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/base/printable.h"
#include "tessera/comm/process/hosts.h"
#include "tessera/comm/process/letter.h"
#include "tessera/comm/process/tcp/tcp_link.h"

namespace tessera::process {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {
constexpr int kHighestPort = 65535;
}

Greeting greeting_of(const Rendezvous& where, std::uint64_t world, int port) {
  Greeting out;
  for (const std::size_t size : {sizeof(Letter), sizeof(Header), sizeof(Notice), sizeof(Process),
                                 sizeof(Endpoint), TcpLink::kFrameBytes})
    out.layout = out.layout * 31 + static_cast<std::uint32_t>(size);
  out.rank = where.rank, out.size = where.size, out.world = world, out.port = port;
  where.run.copy(out.run.data(), out.run.size() - 1);
  return out;
}

std::string protocol_problem(const Greeting& theirs) {
  const Greeting mine = greeting_of({}, 0, 0);
  if (theirs.protocol == mine.protocol && theirs.layout == mine.layout) return {};
  return text("another build of Tessera (protocol ", theirs.protocol, ".", theirs.layout,
              ", and here it is ", mine.protocol, ".", mine.layout,
              "); start the same program on all ranks");
}

Verdict verdict_on(const Greeting& greeting, const Rendezvous& where, const std::string& from) {
  const Greeting& it = greeting;
  const auto wrong = [](const std::string& why) { return Verdict{false, false, why}; };
  const std::string own_run = greeting_of(where, 0, 0).run.data();
  const std::string their_run(it.run.data(), strnlen(it.run.data(), it.run.size()));
  const std::string wrong_protocol = protocol_problem(it);
  // A run of another version that has a name is another run first.
  const bool both_named = !own_run.empty() && !their_run.empty();
  if (!wrong_protocol.empty() && !(both_named && own_run != their_run))
    return wrong(text("rank ", it.rank, " (", from, ") is ", wrong_protocol));
  if (their_run != own_run || it.world != 0)
    return {
        false, true,
        text("rank 0 at ", where_text(where), " belongs to the run '", own_run,
             "', and this rank to '", printable(their_run), "'; give every run a port of its own")};
  if (it.size != where.size)
    return wrong(text("rank ", it.rank, " (", from, ") was started as one of ", it.size,
                      " ranks, and rank 0 as one of ", where.size,
                      "; give all ranks the same number (", where.source, ")"));
  if (it.rank < 0 || it.rank >= where.size)
    return wrong(text("a process at ", from, " says that it is rank ", it.rank, ", and there are ",
                      where.size, " ranks; give each process a rank from 0 to ", where.size - 1));
  if (it.port < 1 || it.port > kHighestPort)
    return wrong(text("rank ", it.rank, " (", from, ") says that it listens at port ", it.port,
                      "; start the same program on all ranks"));
  return {true, false, ""};
}

std::string where_text(const Rendezvous& where) {
  const bool six = where.address.find(':') != std::string::npos;
  return text(six ? "[" : "", where.address, six ? "]:" : ":", where.port,
              where.source.empty() ? "" : text(" (", where.source, ")"));
}

Listening listen_for(const Rendezvous& where, Moment until) {
  if (where.listener >= 0 && listens_at(where.listener, where.port)) {
    fcntl(where.listener, F_SETFD, FD_CLOEXEC);
    fcntl(where.listener, F_SETFL, O_NONBLOCK);
    return {Socket(where.listener)};
  }
  std::string why;
  const std::vector<Endpoint> found = addresses_of(where.address, where.port, why, until);
  require(!found.empty(), "no address is known for '", where.address, "' (", where.source,
          "), where rank 0 should listen: ", why, "; give its host's name or address");
  // The number that this host has by that name in its own tables may be one of the loopback, by
  // which no other host reaches it; a number that is none of this host's may lead here all the
  // same, as one of a container's host.
  const bool anywhere = found.front().loopback() && !means_this_host(where.address);
  Listening out = {anywhere ? listen_anywhere(where.port) : listen_at(found.front())};
  if (!out.socket.open() && errno == EADDRNOTAVAIL) out = {listen_anywhere(where.port), found};
  const int number = errno;
  if (!out.socket.open() && number == EADDRINUSE)
    fail(Fault::Usage, "rank 0 cannot listen at ", where_text(where),
         ": the port is in use on this host by another program or run; give another port to all "
         "ranks (or is rank 0 on another host, or started twice?)");
  if (!out.socket.open())
    fail(Fault::Resource, "rank 0 cannot listen at ", where_text(where), ": ", error_text(number),
         "; ", out_of_files(number) ? kMoreFiles : "give another port to all ranks");
  return out;
}

MeetingLeader::MeetingLeader(const Rendezvous& where, std::chrono::milliseconds limit)
    : where_(where),
      limit_(limit),
      until_(steady_clock::now() + limit),
      callers_(listen_for(where, until_), where.secret),
      ranks_(static_cast<std::size_t>(where.size)),
      listens_(ranks_.size()),
      missing_(where.size - 1) {}

std::vector<Socket> MeetingLeader::meet() {
  await_all();
  // The last may have come late: it needs as much time as any other to reach the rest.
  until_ = steady_clock::now() + limit_;
  send_addresses();
  await_ready();
  return sockets_of(ranks_);
}

void MeetingLeader::await_all() {
  std::vector<pollfd> files;
  while (missing_ > 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until_ - steady_clock::now());
    if (left.count() <= 0) {
      const double seconds = std::chrono::duration<double>(limit_).count();
      give_up(Fault::Peer, text("rank 0 of ", where_.size, " has waited ", seconds,
                                " s for all ranks to come up; ", missing()));
    }
    files.clear();
    for (const Line& rank : ranks_) files.push_back({rank.file(), POLLIN, 0});
    callers_.add_to(files);
    poll(files.data(), files.size(), static_cast<int>(std::min<std::int64_t>(left.count(), 1000)));
    const std::span<const pollfd> all(files);
    look_for_ends(all.first(ranks_.size()));
    const int number = callers_.look(all.subspan(ranks_.size()),
                                     [this](const Greeting& it, Line& line) { take(it, line); });
    if (number != 0)
      give_up(Fault::Resource, text("rank 0 of ", where_.size, " cannot let in more ranks: ",
                                    error_text(number), "; ", kMoreFiles));
  }
}

/// A rank says nothing before it has the table: what can be read is its end.
void MeetingLeader::look_for_ends(std::span<const pollfd> ranks) {
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].fd < 0 || ranks[r].revents == 0) continue;
    give_up(Fault::Peer, text(name_of(static_cast<int>(r)),
                              " has ended before all ranks came up; its own words say why"));
  }
}

void MeetingLeader::take(const Greeting& it, Line& line) {
  const std::string from = to_text(other_end(line.socket()));
  Verdict verdict = verdict_on(it, where_, from);
  const auto taken = [&] {
    return it.rank == 0 || ranks_[static_cast<std::size_t>(it.rank)].open();
  };
  if (verdict.welcome && taken()) {
    const auto r = static_cast<std::size_t>(it.rank);
    const std::string first = it.rank == 0 ? "the one that listens at " + where_text(where_)
                                           : "one at " + to_text(other_end(ranks_[r].socket()));
    verdict = {false, false,
               text("two processes say that they are rank ", it.rank, ": ", first, " and one at ",
                    from, "; give each process a rank of its own, 0 to ", where_.size - 1)};
  }
  if (!verdict.welcome) {
    line.say(Word::Refusal, verdict.why, steady_clock::now() + 1s, Fault::Usage, true);
    line = Line();
    if (!verdict.another_run) give_up(Fault::Usage, verdict.why);
    return callers_.note(text("rank ", it.rank, " of another run at ", from));
  }
  if (!line.say(Word::Welcome, "", steady_clock::now())) return;  // it has gone
  const auto r = static_cast<std::size_t>(it.rank);
  listens_[r] = other_end(line.socket());
  listens_[r].set_port(it.port);
  ranks_[r] = std::move(line);
  --missing_;
}

void MeetingLeader::send_addresses() {
  std::uint64_t world = 0;
  while (world == 0) {
    if (getrandom(&world, sizeof(world), 0) != sizeof(world))
      world = static_cast<std::uint64_t>(steady_clock::now().time_since_epoch().count());
  }
  // Where this host has another address outside, ranks of it are dialled there too.
  if (!callers_.also().empty()) listens_[0] = callers_.also().front();
  const std::string table = to_text(Table{world, listens_});
  for (std::size_t r = 1; r < ranks_.size(); ++r) {
    if (!ranks_[r].say(Word::Table, table, until_))
      give_up(Fault::Peer, text(name_of(static_cast<int>(r)),
                                " has ended before all ranks came up: ", error_text(errno),
                                "; its own words say why"));
  }
}

void MeetingLeader::await_ready() {
  std::vector<pollfd> files;
  for (const Line& rank : ranks_) files.push_back({rank.file(), POLLIN, 0});
  for (std::size_t ready = 1; ready < ranks_.size();) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until_ - steady_clock::now());
    if (poll(files.data(), files.size(),
             static_cast<int>(std::max<std::int64_t>(0, left.count()))) == 0)
      errno = ETIMEDOUT;
    for (std::size_t r = 1; r < ranks_.size(); ++r) {
      if (files[r].fd < 0 || (files[r].revents == 0 && left.count() > 0)) continue;
      Word word;
      std::string rest;
      if (!ranks_[r].hear(word, rest, until_)) {
        const int number = errno;
        const std::string who = name_of(static_cast<int>(r));
        give_up(Fault::Peer,
                number == EBADMSG
                    ? changed_text(who)
                    : text(who, " did not come up with the others: ", error_text(number),
                           "; its own words say why, or it hangs"));
      }
      if (word.kind != Word::Ready) give_up(fault_of(word.fault), rest);
      files[r].fd = -1;
      ++ready;
    }
  }
  for (std::size_t r = 1; r < ranks_.size(); ++r) ranks_[r].say(Word::Go, "", until_);
}

void MeetingLeader::give_up(Fault fault, const std::string& why) {
  const Moment soon = steady_clock::now() + 200ms;
  for (Line& rank : ranks_) {
    if (rank.open()) rank.say(Word::Refusal, why, soon, fault);
  }
  for (const Line& rank : ranks_) {
    if (rank.open()) end_orderly(rank.socket(), soon);
  }
  fail(fault, why);
}

std::string MeetingLeader::name_of(int rank) const {
  return text("rank ", rank, " of ", where_.size, " (",
              to_text(listens_[static_cast<std::size_t>(rank)]), ")");
}

std::string MeetingLeader::missing() const {
  std::vector<std::string> ranks;
  for (std::size_t r = 1; r < ranks_.size(); ++r) {
    if (!ranks_[r].open()) ranks.push_back(text(r));
  }
  constexpr std::size_t kMost = 16;
  const std::size_t count = ranks.size();
  if (count > kMost) ranks.resize(kMost);
  std::string out = text(count == 1 ? "rank " : "ranks ", join(ranks), count > kMost ? ", ..." : "",
                         count == 1 ? " has" : " have", " not come to ", where_text(where_),
                         ": not started, or the port cannot be reached from there");
  return out + callers_.strangers();
}

}  // namespace tessera::process
