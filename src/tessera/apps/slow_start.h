#pragma once
/// A line for who waits for ranks to begin.

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "tessera/apps/console.h"
#include "tessera/train/callbacks.h"

namespace tessera {

/// Says `line` on the error stream if the run has not begun after some seconds.
class SlowStart : public TrainCallback {
 public:
  SlowStart(std::string line, Console& console);
  ~SlowStart() override;
  void on_start(const RunStart&) override { end(); }

 private:
  void wait() noexcept;
  void end();

  const std::string line_;
  Console& console_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool has_ended_ = false;
  std::thread waiting_;
};

}  // namespace tessera
