#pragma once
/// Rank 0 while the ranks of a world meet.

#include <optional>
#include <string>
#include <vector>

#include "tessera/comm/process/meeting.h"
#include "tessera/comm/process/meeting_words.h"

namespace tessera::process {

/// The greeting of this rank.
Greeting greeting_of(const Place& place, std::uint64_t world, int port);
/// Why a greeting is none of this protocol; empty: it is.
std::string protocol_problem(const Greeting& theirs);
/// "node1:29500 (MASTER_ADDR, MASTER_PORT)"
std::string where_text(const Place& place);
/// Listens at the address of rank 0: only for this host where no other can mean it by that name.
Socket listen_for(const Place& place);

/// What comes to a listening socket and has not said all of its greeting.
struct Caller {
  Socket socket;
  Greeting greeting = {};
  std::size_t got = 0;
  /// Reads on. False: it is closed, or no rank of Tessera; `bad` says whether it said anything.
  bool read(bool& bad);
  bool complete() const { return got == sizeof(greeting); }
};
/// Tells something that is no rank so, in words that a person can read, and closes it.
void refuse_stranger(Caller& caller);

/// Rank 0's part: waits for all, tells them all addresses, and lets them go on together.
class MeetingHost {
 public:
  MeetingHost(const Place& place, Moment until, std::chrono::milliseconds limit);
  std::vector<Socket> meet();

 private:
  void await_all();
  void take(Caller& caller);
  void tell_addresses();
  void await_ready();
  [[noreturn]] void give_up(Fault fault, const std::string& why);
  std::string missing() const;

  const Place& place_;
  const Moment until_;
  const std::chrono::milliseconds limit_;
  Socket listener_;
  std::vector<Socket> ranks_;
  std::vector<Endpoint> listens_;  // by rank: where others reach it
  std::vector<Caller> callers_;
  std::vector<std::string> strangers_;
  int missing_;
};

}  // namespace tessera::process
