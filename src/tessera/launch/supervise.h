#pragma once
/// mpirun, or what starts ranks in its place, as a child of this process, from its start to the end
/// of all that it started. Here it is called mpirun.

#include <signal.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "tessera/launch/console.h"

namespace tessera {

/// Where programs are looked for if PATH is not set.
inline constexpr const char* kUsualPath = "/usr/local/bin:/usr/bin:/bin";

/// Requests to stop: from its making on they wait to be read, and end nothing. A blocked signal is
/// queued even if it is ignored; so SIGHUP is left out where nohup ignores it.
class StopRequests {
 public:
  StopRequests();
  ~StopRequests();
  StopRequests(const StopRequests&) = delete;
  StopRequests& operator=(const StopRequests&) = delete;

  /// Readable where one has come, or a child has changed.
  int file() const { return file_; }
  /// The signals that have come, without SIGCHLD.
  std::vector<int> take();
  /// In a child of this process: signals do again what they did before.
  void restore() const;

 private:
  int file_ = -1;
  sigset_t before_;
};

struct Supervision {
  bool ranks_are_here = true;   // as children of mpirun
  bool stops_in_order = false;  // the command saves and ends where its first rank's input says so
  bool verbose = false;         // mpirun's own words are passed on
  std::chrono::seconds timeout{60};  // of an mpirun that starts no rank
  bool has_words = true;             // it is mpirun itself, whose lines are not those of ranks
};

struct LaunchEnd {
  int code = 0;             // of mpirun; 128 + n: signal n has ended it
  int requested = 0;        // the signal that asked for an end at once; 0: none did
  bool killed = false;      // a signal has ended mpirun itself
  bool hung = false;        // it was ended because it started no rank
  bool lost_ranks = false;  // it was ended because its ranks were gone and it waited for them still
  bool error_seen = false;  // a rank has said why
  std::string words;        // mpirun's own
};

/// What to print to standard error of such an end; empty: nothing.
using LaunchReport = std::function<std::string(const LaunchEnd&)>;

/// Runs mpirun to its end and passes requests to stop on: the first as a byte to the input of rank
/// 0, the second as SIGTERM to mpirun, which ends the ranks. Afterwards no process of it is left on
/// this machine. What it and the ranks printed has been passed on then, and the report; after a
/// second request only as far as the reader takes it without delay.
LaunchEnd supervise(std::vector<std::string> words, const Supervision& how,
                    const LaunchReport& report, StopRequests& requests, Console& console);

}  // namespace tessera
