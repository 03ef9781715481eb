#pragma once
/// A line for who waits for ranks to begin.

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "tessera/launch/console.h"
#include "tessera/train/callbacks.h"

namespace tessera {

/// Says `line` on the error stream if the run has not begun by then.
class SlowStart : public TrainCallback {
 public:
  SlowStart(std::string line, Console& console,
            std::chrono::milliseconds after = std::chrono::seconds(3));
  ~SlowStart() override;
  void on_start(const RunStart&) override { end(); }

 private:
  void wait() noexcept;
  void end();

  const std::string line_;
  Console& console_;
  const std::chrono::milliseconds after_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool has_ended_ = false;
  std::thread waiting_;
};

}  // namespace tessera
