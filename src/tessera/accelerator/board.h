#pragma once
/// What the plugins of several processes tell each other: PJRT's key-value store, carried by comm.

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "tessera/pjrt/client.h"

namespace tessera {

/// A process's copy of what has been told. Threads of its plugin put and get; its ranks carry what
/// is new to the other processes. A run has boards of its own, so that no key of another is seen.
class Board {
 public:
  /// For this process's client; the board outlives it.
  pjrt::KeyValueStore store();

  /// What was put here since the last call, for add() of the others.
  std::string take_news();
  /// Errors: Fault::Peer: no news.
  void add(std::string_view news);
  /// Whoever waits for a key fails, with that reason.
  void close(const std::string& why);

 private:
  std::string get(const std::string& key, std::chrono::milliseconds time);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> told_;
  std::string news_, closed_;
};

}  // namespace tessera
