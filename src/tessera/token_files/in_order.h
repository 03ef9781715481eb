#pragma once
/// Work that several threads share, with results in the order of the items.

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "tessera/base/start_thread.h"

namespace tessera {

/// Takes items from `next(Item&)` until it returns false, calls `work(item)` on `workers` threads,
/// and hands items and results to `take(item, result)` in the order in which they came. `next` and
/// `take` are called on the calling thread, so the result does not depend on the number of workers.
/// A few items for each worker are held at a time.
/// Errors: the first one in the order of the items, of whichever function; what came before it was
/// taken.
template <typename Item, typename Result, typename Next, typename Work, typename Take>
void in_order(std::size_t workers, const Next& next, const Work& work, const Take& take) {
  struct Slot {
    Item item;
    std::optional<Result> result;
    std::exception_ptr error;
    bool begun = false, done = false;
  };
  std::mutex mutex;
  std::condition_variable changed_work, changed_done;
  std::deque<Slot> slots;  // references stay valid at both ends
  bool stop = false;

  const auto run = [&] {
    std::unique_lock lock(mutex);
    for (;;) {
      Slot* mine = nullptr;
      changed_work.wait(lock, [&] {
        for (Slot& slot : slots) {
          if (!slot.begun) {
            mine = &slot;
            break;
          }
        }
        return stop || mine != nullptr;
      });
      if (stop) return;
      mine->begun = true;
      lock.unlock();
      std::optional<Result> result;
      std::exception_ptr error;
      try {
        result.emplace(work(std::as_const(mine->item)));
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      mine->result = std::move(result);
      mine->error = error;
      mine->done = true;
      changed_done.notify_one();
    }
  };
  std::vector<std::thread> threads;
  struct Joined {
    std::vector<std::thread>& threads;
    std::mutex& mutex;
    std::condition_variable& changed;
    bool& stop;
    ~Joined() {
      {
        const std::lock_guard lock(mutex);
        stop = true;
      }
      changed.notify_all();
      for (std::thread& thread : threads) thread.join();
    }
  } joined{threads, mutex, changed_work, stop};
  for (std::size_t i = 0; i < workers; ++i) threads.push_back(start_thread(run));

  const std::size_t most = 2 * workers + 2;
  bool more = true;
  std::exception_ptr error_of_next;  // what came before it is taken first
  for (;;) {
    std::size_t held = 0;
    {
      const std::lock_guard lock(mutex);
      held = slots.size();
    }
    while (more && held < most) {
      Slot slot;
      try {
        more = next(slot.item);
      } catch (...) {
        more = false;
        error_of_next = std::current_exception();
      }
      if (!more) break;
      {
        const std::lock_guard lock(mutex);
        slots.push_back(std::move(slot));
        ++held;
      }
      changed_work.notify_one();
    }
    if (held == 0) break;
    Slot first;
    {
      std::unique_lock lock(mutex);
      changed_done.wait(lock, [&] { return slots.front().done; });
      first = std::move(slots.front());
      slots.pop_front();
    }
    if (first.error) std::rethrow_exception(first.error);
    take(std::as_const(first.item), std::as_const(*first.result));
  }
  if (error_of_next) std::rethrow_exception(error_of_next);
}

}  // namespace tessera
