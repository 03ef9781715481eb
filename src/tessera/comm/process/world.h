#pragma once
/// What one process knows of all ranks: where each is, who failed, who has died.

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/comm/backend/patience.h"
#include "tessera/comm/process/hosts.h"
#include "tessera/comm/process/letter.h"
#include "tessera/comm/process/link.h"
#include "tessera/comm/process/notices.h"
#include "tessera/comm/process/under_way.h"
#include "tessera/comm/process/watch.h"
#include "tessera/comm/processes.h"

namespace tessera::process {

using backend::Clock;
using backend::Patience;

/// A reason for which the world stopped, on the rank that found it.
struct Cause {
  int rank;
  Fault fault;
  std::string why;  // "rank 1 of 4 failed in step 3 after ...: no space"
  bool known;       // false: the rank has only told that it leaves its calls
};

class World {
 public:
  World(Link& link, const LaunchedOptions& options);

  Link& link() { return link_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  std::chrono::milliseconds deadline() const { return options_.deadline; }
  const backend::Pace& pace() const { return pace_; }
  int cores_per_rank() const { return cores_per_rank_; }
  int cores_of_host() const { return cores_of_host_; }

  /// True where not even a look is allowed: MPI is called from one thread.
  bool on_other_thread() const { return std::this_thread::get_id() != thread_; }

  // ---- Where ranks are.
  void set_step(std::int64_t step);
  std::int64_t step() const { return step_; }
  /// This rank begins or ends a call.
  void enter(const Collective& c, const Group& group, Number number);
  void leave();
  /// Another's call. False: what came is no rank's, and the world stops for it.
  bool saw(int rank, const Header& call);
  Seen seen(int rank) const;

  /// Tells the others, now and then, that this rank works.
  void alive();
  /// Signs of life of the others.
  std::uint64_t signs() const { return signs_; }

  // ---- Failures.
  /// Takes in what others have told and who has died, without waiting; passes a request to stop on.
  void look();
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  const std::string& why() const { return causes_.front().why; }
  /// Stops all, unless they are stopped already; `why` goes on after "rank 1 of 4".
  void stop(Fault fault, const std::string& why, std::exception_ptr error);
  /// Tells the others to touch this rank's memory no more.
  void leaving();
  /// After a failure: gives up messages of `members` of a group, so that MPI no longer reads or
  /// writes memory that is about to be freed. Waits for those that are being moved at the moment,
  /// at most a second in all.
  void quiesce(std::span<Request> requests, std::span<const int> members,
               const std::vector<int>& ranks) noexcept;
  /// Tells the others that this rank's body is over.
  void end();
  /// It touches no memory of others any more.
  bool gone(int rank) const {
    return left_[static_cast<std::size_t>(rank)] || ended(rank) || dead(rank);
  }
  bool ended(int rank) const { return ended_[static_cast<std::size_t>(rank)]; }
  bool dead(int rank) const {
    return dead_[static_cast<std::size_t>(rank)].load(std::memory_order_acquire);
  }
  /// It died before it came to its end; any of them.
  bool lost(int rank) const { return dead(rank) && !ended(rank); }
  bool any_lost() const;
  bool any_dead() const { return any_dead_.load(std::memory_order_acquire); }
  /// The one that all ranks choose of what they know: not a mere echo, then the lowest rank's.
  const Cause& cause() const;
  /// What this rank found, to be rethrown.
  const std::exception_ptr& error() const { return error_; }
  /// True for the first who asks: a failure is told once.
  bool may_report() { return !reported_.exchange(true); }
  /// "rank 2 (in step 3 after ...)", of ranks that have neither ended nor died.
  std::string not_ended() const;

  CallsUnderWay& under_way() { return under_way_; }

 private:
  void meet();
  void take(const Notice& notice);
  void drain();
  void tell(Notice::Kind kind, Fault fault, const std::string& words);
  void pass_on_stop();
  void finish_messages() noexcept;
  void find_deaths();
  void note_losses();
  void died(int rank);  // on the thread of the watch
  std::string death_text(int rank) const;

  Link& link_;
  const LaunchedOptions& options_;
  const int rank_, size_;
  const std::thread::id thread_ = std::this_thread::get_id();
  backend::Pace pace_;
  int cores_per_rank_ = 0, cores_of_host_ = 0;
  std::vector<Process> processes_;  // by rank

  mutable std::mutex mutex_;  // of seen_
  std::vector<Seen> seen_;
  std::int64_t step_ = -1;

  Notices notices_;
  std::uint64_t signs_ = 0;
  int losses_ = 0;  // of the link, as they were noted
  Clock::time_point next_alive_;
  std::vector<char> ended_, left_;
  std::vector<Cause> causes_;
  std::exception_ptr error_;
  std::vector<std::atomic<bool>> dead_;
  std::atomic<bool> any_dead_{false}, stopped_{false}, reported_{false}, closing_{false};
  std::optional<Clock::time_point> end_asked_;  // by what started it, first seen
  std::optional<Clock::time_point> quieted_;    // first

  CallsUnderWay under_way_;
  std::unique_ptr<Watch> watch_;  // last: its thread reads the above

 public:
  ~World();
};

}  // namespace tessera::process
