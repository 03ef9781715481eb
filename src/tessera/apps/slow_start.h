#pragma once
/// A line for who waits for ranks to begin.

#include <string>
#include <thread>

#include "tessera/apps/console.h"
#include "tessera/train/callbacks.h"

namespace tessera {

/// Says `line` on the error stream if the run has not begun after some seconds.
class SlowStart : public TrainCallback {
 public:
  SlowStart(std::string line, Console& console);
  void on_start(const RunStart&) override { waiting_ = {}; }

 private:
  std::jthread waiting_;
};

}  // namespace tessera
