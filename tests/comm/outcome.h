#pragma once
/// Worlds of threads that must fail, and what came of it.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/comm/local.h"

namespace tessera {

struct Outcome {
  std::string message;
  Fault fault{};
  std::chrono::steady_clock::duration took{};
  std::vector<std::string> seen;  // per rank: what it stopped with
};

/// Far below the deadline of a minute that ranks have unless a test says otherwise, and far above
/// what a busy machine takes: whoever needs less has noticed the failure, not waited for it.
constexpr std::chrono::seconds kNoticed{20};

/// Runs ranks that must fail.
inline Outcome outcome_of(int n, const std::function<void(Communicator&)>& body,
                          const LocalOptions& options = {}) {
  Outcome out;
  out.seen.resize(static_cast<std::size_t>(n));
  const auto start = std::chrono::steady_clock::now();
  try {
    run_ranks(
        n,
        [&](Communicator& world) {
          try {
            body(world);
          } catch (const Error& e) {
            out.seen[static_cast<std::size_t>(world.rank())] = e.what();
            throw;
          }
        },
        options);
    ADD_FAILURE() << "nothing failed";
  } catch (const Error& e) {
    out.message = e.what(), out.fault = e.fault();
  }
  out.took = std::chrono::steady_clock::now() - start;
  return out;
}

/// Waits, without comm, until a count is reached.
inline void await(const std::atomic<int>& count, int value) {
  while (count < value) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

inline bool has(const std::string& message, const std::string& words) {
  return message.find(words) != std::string::npos;
}

}  // namespace tessera
