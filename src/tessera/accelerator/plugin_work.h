#pragma once
/// Calls of a plugin that last.

#include <functional>
#include <memory>

#include "tessera/comm/communicator.h"

namespace tessera {

/// Work on a thread of its own. A device that was lost, or that waits for one that was, may keep a
/// call forever: then the thread is left behind, and nobody waits for it.
class PluginWork {
 public:
  /// Calls `work`, and behind its end or failure `afterwards`, which throws nothing. Both own what
  /// they use, as the thread may outlive all else. Errors: no more threads.
  PluginWork(std::function<void()> work, std::function<void()> afterwards);
  PluginWork(const PluginWork&) = delete;
  ~PluginWork();

  /// Waits for the end of `work`, and shows the others meanwhile that this rank is alive. Errors: of
  /// `work`; another rank has failed.
  void wait(Communicator* world);
  /// Waits a little. True: `work` has ended. Errors: of `work`.
  bool over();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tessera
