/// The ranks above 0 while the ranks of a world meet.

#include "tessera/comm/process/tcp/meeting.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <thread>

#include "tessera/base/error.h"
#include "tessera/base/printable.h"
#include "tessera/comm/process/tcp/callers.h"
#include "tessera/comm/process/tcp/introduce.h"
#include "tessera/comm/process/tcp/meeting_leader.h"
#include "tessera/comm/process/tcp/meeting_words.h"
#include "tessera/comm/processes.h"

namespace tessera::process {

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

/// How long a rank waits for rank 0's verdict beyond rank 0's own limit, which it tells first.
constexpr auto kVerdict = 2s;

constexpr const char* kStartRankZero =
    "; start rank 0 there, or give the address and port where it is";
constexpr const char* kEveryHost =
    "every host must reach every other, at any port (is there a firewall?)";

class MeetingFollower {
 public:
  MeetingFollower(const Rendezvous& where, std::chrono::milliseconds limit)
      : where_(where),
        limit_(limit),
        until_(steady_clock::now() + limit),
        ranks_(static_cast<std::size_t>(where.size)) {}

  std::vector<Socket> meet() {
    reach_leader();
    // Rank 0's own time is over before this.
    take_table(await_word(Word::Table, steady_clock::now() + limit_ + kVerdict));
    // Rank 0 begins its second part, however long this rank has waited, and is to hear in time of
    // what does not go well.
    until_ = steady_clock::now() + limit_;
    connect_until_ = until_ - limit_ / 4;
    for (int r = 1; r < where_.rank; ++r) reach(r);
    await_those_above();
    if (!leader().say(Word::Ready, "", until_)) lost_leader();
    await_word(Word::Go, until_ + kVerdict);
    return sockets_of(ranks_);
  }

 private:
  Line& leader() { return ranks_[0]; }
  std::string me() const { return text("rank ", where_.rank, " of ", where_.size); }
  double seconds() const { return std::chrono::duration<double>(limit_).count(); }

  /// Connects to rank 0, which may start later than this one. Its name may get another address
  /// meanwhile, or its first; name servers are asked once a second. Somebody else may listen at one
  /// of the addresses, or before rank 0 does.
  void reach_leader() {
    std::string why;  // no connection was made, the last time
    std::vector<Endpoint> addresses;
    Moment next_question;
    while (steady_clock::now() < until_) {
      if (steady_clock::now() >= next_question) {
        std::string none;
        addresses = addresses_of(where_.address, where_.port, none, until_);
        if (addresses.empty()) why = none;
        next_question = steady_clock::now() + 1s;
      }
      // What says nothing is left in time for the next address.
      const auto patience =
          std::min<Moment::duration>(std::max<Moment::duration>(limit_ / 4, 10s),
                                     limit_ / (static_cast<int>(addresses.size()) + 1));
      for (const Endpoint& to : addresses) {
        Socket socket = connection(to, why);
        if (!socket.open()) strangers_.erase(to_text(to));
        if (socket.open() && is_leader(std::move(socket), to, patience)) return;
      }
      std::this_thread::sleep_for(strangers_.empty() ? 50ms : 200ms);
    }
    const std::string waited =
        text(me(), " has waited ", seconds(), " s for rank 0 at ", where_text(where_), ": ");
    const auto stranger = strangers_.begin();
    if (stranger != strangers_.end()) fail(stranger->second.fault, waited, stranger->second.what);
    fail(Fault::Peer, waited, why, kStartRankZero);
  }

  /// Not open: there is none.
  Socket connection(const Endpoint& to, std::string& why) const {
    Socket out = begin_connect(to);
    if (const int none = errno; !out.open()) {
      why = error_text(none);
      if (out_of_files(none))
        fail(Fault::Resource, me(), " cannot connect to rank 0: ", why, "; ", kMoreFiles);
    } else if (!await_socket(out, true, std::min(until_, steady_clock::now() + 5s))) {
      why = "no answer";
    } else if (const int number = connected(out); number != 0) {
      why = error_text(number);
    } else if (to_text(local_end(out)) == to_text(other_end(out))) {
      why = "nobody listens";  // the system connected this socket with itself
    } else {
      return out;
    }
    return {};
  }

  /// Listens for the ranks above at the address by which rank 0 is reached, as others reach this
  /// rank there. One of the loopback under another name than localhost is rank 0's host, which
  /// others reach too.
  void listen_as(Endpoint here) {
    here.set_port(0);
    const bool anywhere = here.loopback() && !means_this_host(where_.address);
    callers_.emplace(Listening{anywhere ? listen_anywhere(0) : listen_at(here)}, where_.secret);
    if (const int number = errno; !callers_->listener().open())
      fail(Fault::Resource, me(), " cannot listen for the ranks above it: ", error_text(number),
           "; ", out_of_files(number) ? kMoreFiles : "free some ports of this host");
  }

  /// False: it lets this rank go, as one of many that say nothing, or is not rank 0.
  bool is_leader(Socket socket, const Endpoint& at, Moment::duration patience) {
    listen_as(local_end(socket));
    const int port = local_end(callers_->listener()).port();
    Reception how = introduce(std::move(socket), greeting_of(where_, 0, port), where_.secret,
                              std::min(until_, steady_clock::now() + patience));
    if (how.how == Reception::Refused && how.proved) refused(how.word, how.reason);
    if (how.changed()) stop_at(how.number);
    if (how.how != Reception::Welcome) return note_stranger(how, to_text(at));
    leader() = std::move(how.line);
    return true;
  }

  /// Remembers for messages who is not rank 0. Returns false.
  bool note_stranger(const Reception& how, const std::string& at) {
    const std::string it = text("what listens at ", at),
                      remedy = "; give a port that nothing else uses";
    const bool silent = how.how == Reception::Broken && how.number == ETIMEDOUT;
    Stranger& stranger = strangers_[at];
    // It may have said before who it is.
    if ((silent || how.how == Reception::Closed) && !stranger.what.empty()) return false;
    if (how.how == Reception::Refused)
      stranger = {Fault::Usage, text(it, " refuses this rank: ", printable(how.reason))};
    else if (how.how == Reception::Unknown)
      stranger = {Fault::Usage,
                  text(it,
                       " does not know the secret of this run: it is of another run or user, or "
                       "rank 0 was given another secret; give all ranks the same, by "
                       "--secret-file or TESSERA_SECRET")};
    else if (how.how == Reception::Closed)
      stranger = {Fault::Peer, text(it, " closes every connection", kStartRankZero)};
    else if (silent)
      stranger = {Fault::Peer, text(it, " says nothing: it is not rank 0, or hangs", remedy)};
    else
      stranger = {Fault::Usage,
                  text(it, " is not a rank of Tessera (",
                       how.number == EPROTO ? "it says something else" : error_text(how.number),
                       ")", remedy)};
    return false;
  }

  /// By errno. What it has said before it went may still lie here to be read.
  [[noreturn]] void lost_leader() {
    const int number = errno;
    Word word;
    std::string why;
    leader().hear(word, why, steady_clock::now());
    if (word.kind == Word::Refusal) refused(word, why);
    stop_at(number);
  }

  [[noreturn]] void stop_at(int number) {
    const std::string rank_zero = text("rank 0 at ", where_text(where_));
    if (number == EPROTO)
      fail(Fault::Peer, me(), ": ", rank_zero,
           " sent an unexpected message; start the same program on all ranks");
    if (number == EBADMSG) fail(Fault::Peer, me(), ": ", changed_text(rank_zero));
    fail(Fault::Peer, me(), " has lost ", rank_zero,
         " before all ranks had started: ", error_text(number),
         "; see the output of rank 0, and start again");
  }

  /// Another rank, or this one, is wrong.
  [[noreturn]] void refused(const Word& word, const std::string& why) {
    const Fault fault = fault_of(word.fault);
    if (word.speaks != 0) throw Error(fault, why.empty() ? "rank 0 refuses this rank" : why);
    throw Reported(fault, why);
  }

  /// Rank 0's next word.
  std::string await_word(Word::Kind wanted, Moment until) {
    Word word;
    std::string rest;
    const bool whole = leader().hear(word, rest, until);
    const int number = errno;
    if (word.kind == Word::Refusal) refused(word, rest);
    if (!whole || word.kind != wanted) stop_at(whole ? EPROTO : number);
    return rest;
  }

  void take_table(const std::string& table) {
    Table all = process::read_table(table, where_.rank, where_.size, me());
    world_ = all.world, listens_ = std::move(all.listens);
    const Endpoint& own = listens_[static_cast<std::size_t>(where_.rank)];
    callers_->let_dial(own);
    // Others dial this rank, if it is of rank 0's host, by the address that they have for that.
    if (own.loopback() && listens_[0].valid()) {
      Endpoint outside = listens_[0];
      outside.set_port(own.port());
      callers_->let_dial(outside);
    }
    // Ranks of rank 0's host may have come by an address that means only that host there.
    for (Endpoint& listens : listens_) {
      if (listens.length == 0 || !listens.loopback()) continue;
      const int port = listens.port();
      listens = other_end(leader().socket());
      listens.set_port(port);
    }
  }

  void reach(int rank) {
    const auto r = static_cast<std::size_t>(rank);
    Reception how = reception_by(listens_[r]);
    while (how.how == Reception::Closed && steady_clock::now() < connect_until_) {
      std::this_thread::sleep_for(10ms);
      how = reception_by(listens_[r]);
    }
    const std::string who = text("rank ", rank, " at ", to_text(listens_[r]));
    if (how.how == Reception::Welcome)
      ranks_[r] = std::move(how.line);
    else if (how.changed())
      give_up(Fault::Peer, text(me(), ": ", changed_text(who)));
    else
      give_up(out_of_files(how.number) ? Fault::Resource : Fault::Peer,
              text(me(), " cannot reach ", who, ": ", why_not(how)));
  }

  Reception reception_by(const Endpoint& rank) {
    Reception broken;
    Socket to = begin_connect(rank);
    if (!to.open())
      broken.number = errno;
    else if (!await_socket(to, true, connect_until_))
      broken.number = ETIMEDOUT;
    else
      broken.number = connected(to);
    if (broken.number != 0) return broken;
    return introduce(std::move(to), greeting_of(where_, world_, 0), where_.secret, connect_until_);
  }

  /// And what to do.
  static std::string why_not(const Reception& how) {
    if (how.how == Reception::Refused) return text("it refuses: ", printable(how.reason));
    const std::string why =
        how.how == Reception::Closed    ? "what listens there closes every connection"
        : how.how == Reception::Unknown ? "what listens there does not know the secret of this run"
                                        : error_text(how.number);
    return text(why, "; ", out_of_files(how.number) ? kMoreFiles : kEveryHost);
  }

  /// Takes the connections of the ranks above this one.
  void await_those_above() {
    int missing = where_.size - 1 - where_.rank;
    std::vector<pollfd> files;
    while (missing > 0) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(connect_until_ - steady_clock::now());
      if (left.count() <= 0)
        give_up(Fault::Peer, text(me(), " has not been reached by ", above(), "; ", kEveryHost,
                                  callers_->strangers()));
      files.assign(1, {leader().file(), POLLIN, 0});
      callers_->add_to(files);
      poll(files.data(), files.size(),
           static_cast<int>(std::min<std::int64_t>(left.count(), 1000)));
      if (files[0].revents != 0) await_word(Word::Go, until_);  // it cannot be that
      const int number = callers_->look(
          std::span<const pollfd>(files).subspan(1),
          [&](const Greeting& it, Line& line) { missing -= static_cast<int>(take(it, line)); });
      if (number != 0)
        give_up(Fault::Resource, text(me(), " cannot let in the ranks above it: ",
                                      error_text(number), "; ", kMoreFiles));
    }
  }

  /// True for a rank of this world.
  bool take(const Greeting& it, Line& line) {
    const bool ours = protocol_problem(it).empty() && it.world == world_ && it.rank > where_.rank &&
                      it.rank < where_.size && !ranks_[static_cast<std::size_t>(it.rank)].open() &&
                      line.say(Word::Welcome, "", steady_clock::now());
    if (ours) {
      ranks_[static_cast<std::size_t>(it.rank)] = std::move(line);
    } else {
      line.say(Word::Refusal, "ranks of another run meet at this port", steady_clock::now(),
               Fault::Usage, true);
    }
    return ours;
  }

  std::string above() const {
    std::vector<std::string> ranks;
    for (std::size_t r = static_cast<std::size_t>(where_.rank) + 1; r < ranks_.size(); ++r) {
      if (!ranks_[r].open()) ranks.push_back(text("rank ", r, " (", to_text(listens_[r]), ")"));
    }
    return join(ranks);
  }

  /// Tells rank 0, which tells all.
  [[noreturn]] void give_up(Fault fault, const std::string& why) {
    leader().say(Word::Trouble, why, steady_clock::now() + 1s, fault);
    await_word(Word::Refusal, until_ + kVerdict);
    throw Error(fault, why);
  }

  /// What listens in place of rank 0.
  struct Stranger {
    Fault fault = Fault::Peer;
    std::string what;  // and what to do
  };

  const Rendezvous& where_;
  const std::chrono::milliseconds limit_;
  Moment until_;          // of this part
  Moment connect_until_;  // of connecting, in the second
  std::vector<Line> ranks_;
  std::optional<Callers> callers_;             // of the ranks above
  std::map<std::string, Stranger> strangers_;  // by address
  std::uint64_t world_ = 0;
  std::vector<Endpoint> listens_;  // by rank
};

}  // namespace

std::vector<Socket> meet(const Rendezvous& where, std::chrono::milliseconds limit) {
  if (where.size == 1) return std::vector<Socket>(1);
  std::vector<Socket> out =
      where.rank == 0 ? MeetingLeader(where, limit).meet() : MeetingFollower(where, limit).meet();
  for (const Socket& socket : out) {
    if (socket.open()) watch_host(socket, limit);
  }
  return out;
}

}  // namespace tessera::process
