#pragma once
/// Rank 0 while the ranks of a world meet.

#include <poll.h>

#include <string>
#include <vector>

#include "tessera/comm/process/tcp/callers.h"
#include "tessera/comm/process/tcp/meeting.h"
#include "tessera/comm/process/tcp/meeting_words.h"

namespace tessera::process {

/// The greeting of this rank.
Greeting greeting_of(const Rendezvous& where, std::uint64_t world, int port);
/// Why a greeting is none of this protocol; empty: it is.
std::string protocol_problem(const Greeting& theirs);
/// "node1:29500 (MASTER_ADDR, MASTER_PORT)"
std::string where_text(const Rendezvous& where);
/// What rank 0 says to one at `from` who is of this run, as it has proved.
struct Verdict {
  bool welcome = false;
  bool another_run = false;  // of the same secret: it is let go, and the others are awaited
  std::string why;           // not welcome
};
Verdict verdict_on(const Greeting& greeting, const Rendezvous& where, const std::string& from);
/// Listens at the address of rank 0 alone; everywhere where that is not how others reach this host.
Listening listen_for(const Rendezvous& where, Moment until);

/// Rank 0's part: waits for all, sends them all addresses, and lets them go on together.
class MeetingLeader {
 public:
  MeetingLeader(const Rendezvous& where, std::chrono::milliseconds limit);
  std::vector<Socket> meet();

 private:
  void await_all();
  void look_for_ends(std::span<const pollfd> ranks);
  void take(const Greeting& it, Line& line);
  void send_addresses();
  void await_ready();
  [[noreturn]] void give_up(Fault fault, const std::string& why);
  std::string missing() const;
  std::string name_of(int rank) const;

  const Rendezvous& where_;
  const std::chrono::milliseconds limit_;
  Moment until_;  // of this part
  Callers callers_;
  std::vector<Line> ranks_;
  std::vector<Endpoint> listens_;  // by rank: where others reach it
  int missing_;
};

}  // namespace tessera::process
