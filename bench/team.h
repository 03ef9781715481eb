/// A fixed team of threads for bench programs, each with one OpenMP thread for the libraries that
/// it calls.
#pragma once

#include <omp.h>

#include <barrier>
#include <functional>
#include <thread>
#include <vector>

namespace bench {

/// Threads that run one function together; the caller is thread 0.
class Team {
 public:
  explicit Team(int size) : size_(size), start_(size), end_(size) {
    omp_set_num_threads(1);  // a setting of the calling thread: each makes its own
    for (int t = 1; t < size; ++t) {
      workers_.emplace_back([this, t] {
        omp_set_num_threads(1);
        for (start_.arrive_and_wait(); work_ != nullptr; start_.arrive_and_wait()) {
          (*work_)(t);
          end_.arrive_and_wait();
        }
      });
    }
  }
  ~Team() {
    work_ = nullptr;
    start_.arrive_and_wait();
    for (std::thread& worker : workers_) worker.join();
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return size_; }

  /// Calls work(0) .. work(size - 1), each on its thread; `work` must not throw.
  void run(const std::function<void(int)>& work) {
    work_ = &work;
    start_.arrive_and_wait();
    work(0);
    end_.arrive_and_wait();
  }

 private:
  int size_;
  std::barrier<> start_, end_;
  const std::function<void(int)>* work_ = nullptr;
  std::vector<std::thread> workers_;
};

}  // namespace bench
