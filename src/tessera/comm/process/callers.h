#pragma once
/// What connects while the ranks of a world meet: ranks, and anything else that finds the port.

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/text.h"
#include "tessera/comm/process/meeting_words.h"
#include "tessera/comm/process/sockets.h"

namespace tessera::process {

/// A connection that has not said all of its greeting.
struct Caller {
  Socket socket;
  Moment since;  // when it came
  Greeting greeting = {};
  std::size_t got = 0;
  /// Reads on. False: it is closed, or no rank of Tessera; `bad` says whether it said anything.
  bool read(bool& bad);
  bool complete() const { return got == sizeof(greeting); }
};

/// Tells something that is no rank so, in words that a person can read, and closes it.
void refuse_stranger(Caller& caller);

/// A listening socket with those that have come to it. They may say nothing for as long as they
/// like; where they are kMost, those that have for longer than `patience` are let go.
class Callers {
 public:
  static constexpr std::size_t kMost = 256;

  explicit Callers(Socket listener,
                   std::chrono::milliseconds patience = std::chrono::milliseconds(5000))
      : listener_(std::move(listener)), patience_(patience) {}
  const Socket& listener() const { return listener_; }
  /// Adds what is to be polled.
  void add_to(std::vector<pollfd>& files) const;
  /// Reads what has come by `files`, which begin with those of add_to, and lets in who comes next.
  /// Hands each whole greeting to `take`; what it leaves of a caller is closed.
  ///
  /// Returns 0, or the errno for which nobody can be let in.
  int look(std::span<const pollfd> files, const std::function<void(Caller&)>& take);
  /// Remembers someone who was refused, for messages.
  void note(const std::string& stranger);
  /// The first of them: "10.0.0.1:4711, rank 1 of another run at 10.0.0.2:4711"
  std::string strangers() const { return join(strangers_); }

 private:
  Socket listener_;
  std::chrono::milliseconds patience_;
  std::vector<Caller> callers_;
  std::vector<std::string> strangers_;
};

}  // namespace tessera::process
