#pragma once
/// Calls of a plugin that last.

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tessera/comm/communicator.h"

namespace tessera {

/// Who waits looks so often whether others have failed.
constexpr auto kBetweenSigns = std::chrono::milliseconds(20);

/// How long work may last without a sign of life.
struct Patience {
  std::chrono::milliseconds time{0};  // 0: for ever
  /// Raised by the work where it gets on; all that is written here is shared with it.
  std::shared_ptr<std::atomic<std::int64_t>> signs = {};
  std::string name = {};  // of the work, as messages say it
};

/// Threads that wait for work: one started anew costs a step about a millisecond.
class PluginThreads {
 public:
  PluginThreads() = default;
  PluginThreads(const PluginThreads&) = delete;
  ~PluginThreads();

 private:
  friend class PluginWork;
  class OfWork;
  /// One that waits, or a new one. Errors: no more threads.
  std::shared_ptr<OfWork> take();
  void give_back(std::shared_ptr<OfWork> thread);

  std::mutex mutex_;
  std::vector<std::shared_ptr<OfWork>> waiting_;
};

/// Work on a thread of its own. A device that was lost, or that waits for one that was, may keep a
/// call forever: then the thread is left behind, and nobody waits for it.
class PluginWork {
 public:
  /// Calls `work`, and behind its end or failure `afterwards`, which throws nothing. Both own what
  /// they use, as the thread may outlive all else. Errors: no more threads.
  PluginWork(PluginThreads& threads, std::function<void()> work, std::function<void()> afterwards,
             Patience patience = {});
  PluginWork(const PluginWork&) = delete;
  ~PluginWork();

  /// Waits for the end of `work`, and shows the others meanwhile that this rank is alive. Errors: of
  /// `work`; another rank has failed; Fault::Peer: no patience is left.
  void wait(Communicator* world);
  /// Waits a little. True: `work` has ended. Errors: of `work`; no patience is left.
  bool over();

 private:
  using Clock = std::chrono::steady_clock;
  void require_life();

  PluginThreads& threads_;
  std::shared_ptr<PluginThreads::OfWork> thread_;
  Patience patience_;
  std::int64_t seen_ = 0;  // signs, and when they became so many
  Clock::time_point seen_at_ = Clock::now();
};

}  // namespace tessera
