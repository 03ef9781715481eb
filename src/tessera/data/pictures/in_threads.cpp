#include "tessera/data/pictures/in_threads.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "tessera/base/cores.h"
#include "tessera/base/start_thread.h"

namespace tessera {

void in_threads(std::int64_t count, const std::function<void(std::int64_t)>& work) {
  constexpr int kMostThreads = 32;
  std::atomic<std::int64_t> next = 0;
  std::mutex failing;
  std::exception_ptr error;
  std::int64_t failed = count;
  const auto some = [&] {
    for (std::int64_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(failing);
        if (i >= failed) continue;
        failed = i;
        error = std::current_exception();
      }
    }
  };
  const std::int64_t threads =
      std::min<std::int64_t>(std::min(num_usable_cores(), kMostThreads), count);
  std::vector<std::thread> others;
  try {
    for (std::int64_t i = 1; i < threads; ++i) others.push_back(start_thread(some));
  } catch (const Error&) {  // those that there are do it all
  }
  some();
  for (std::thread& other : others) other.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace tessera
