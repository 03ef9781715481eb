#include "tessera/comm/work_alone.h"

#include <chrono>
#include <future>

#include "tessera/base/start_thread.h"

namespace tessera {

void work_alone(Communicator* world, const std::function<void()>& work) {
  if (world == nullptr) return work();
  constexpr auto kBetweenSigns = std::chrono::milliseconds(20);
  std::future<void> done = starting_thread([&] { return std::async(std::launch::async, work); });
  while (done.wait_for(kBetweenSigns) != std::future_status::ready) world->alive();
  done.get();
}

}  // namespace tessera
