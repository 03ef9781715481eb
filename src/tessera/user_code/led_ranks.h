#pragma once
/// Devices, each a thread, that do what a program asks for, when it asks.

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "tessera/config/config.h"
#include "tessera/launch/console.h"
#include "tessera/plan/plan.h"
#include "tessera/runtime/backend.h"
#include "tessera/train/rank_group.h"

namespace tessera {

class LedRanks {
 public:
  /// The plan of a rank, which calls this in its own thread.
  using Compile = std::function<Plan(const Backend& backend, int rank)>;
  /// Starts the devices of `config`, which is complete; `begin` is what the leader does first.
  /// `console` hears of a device that hangs, which ends the process. Errors: of `compile`, `begin`
  /// and on_ranks.
  LedRanks(RunConfig config, Compile compile, const std::function<void(RankGroup& group)>& begin,
           Console& console);
  /// Waits until the devices have ended.
  ~LedRanks();
  LedRanks(const LedRanks&) = delete;
  LedRanks& operator=(const LedRanks&) = delete;

  /// Runs `work` on the rank that leads, and returns when it has; calls of several threads wait for
  /// each other. Errors: those of `work`: the devices have ended then, and every later call has the
  /// same.
  void on_leader(const std::function<void(RankGroup& group)>& work);

 private:
  void run_ranks(Console& console);
  void lead(RankGroup& group);
  void await_work(RankGroup& group);

  RunConfig config_;
  Compile compile_;
  std::mutex asking_;  // one at a time
  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void(RankGroup&)>* work_ = nullptr;  // that the leader is to do
  bool ends_ = false;                                      // no more will come
  bool ended_ = false;                                     // no rank is left
  std::exception_ptr failure_;
  std::thread ranks_;
};

}  // namespace tessera
