#include "tessera/apps/slow_start.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "tessera/base/start_thread.h"

namespace tessera {

SlowStart::SlowStart(std::string line, Console& console)
    : waiting_(starting_thread([&] {
        return std::jthread([line = std::move(line), &console](const std::stop_token& stop) {
          constexpr auto kAfter = std::chrono::seconds(3);
          std::mutex mutex;
          std::unique_lock lock(mutex);
          std::condition_variable_any ended;
          ended.wait_for(lock, stop, kAfter, [] { return false; });
          if (!stop.stop_requested()) console.err << line + "\n" << std::flush;
        });
      })) {}

}  // namespace tessera
