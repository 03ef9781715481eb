#pragma once
/// What connects while the ranks of a world meet: ranks, and anything else that finds the port.

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tessera/comm/process/tcp/introduce.h"
#include "tessera/comm/process/tcp/sockets.h"

namespace tessera::process {

/// Where a rank listens, and what others dial instead of that, where addresses are translated.
struct Listening {
  Socket socket;
  std::vector<Endpoint> also = {};
};

/// A connection that has not proved that it is a rank's.
struct Caller {
  Socket socket;
  Moment since;  // when it came
  Said said = {};
  Proof proof = {};
  std::size_t got = 0;  // bytes of opening and proof together

  const Greeting& greeting() const { return said.opening.greeting; }
  bool has_opened() const { return got >= sizeof(Opening); }
};

/// A listening socket with those that have come to it. There are never more than kMost: where more
/// come, or this process can open no more files, the oldest of those that say nothing is let go,
/// and each after `patience`. A rank comes again if that should be one.
class Callers {
 public:
  static constexpr std::size_t kMost = 1024;

  using Take = std::function<void(const Greeting&, Line&)>;

  Callers(Listening listening, const Secret& secret,
          std::chrono::milliseconds patience = std::chrono::milliseconds(10'000));
  const Socket& listener() const { return listener_; }
  /// Others may dial this address too.
  void let_dial(const Endpoint& address) { also_.push_back(address); }
  const std::vector<Endpoint>& also() const { return also_; }
  /// Adds what is to be polled.
  void add_to(std::vector<pollfd>& files) const;
  /// Reads what has come by `files`, which begin with those of add_to, and lets in who comes next.
  /// Hands each that has proved that it is of this run to `take`, which welcomes it; what that
  /// leaves of a line is closed.
  ///
  /// Returns 0, or the errno for which nobody can be let in.
  int look(std::span<const pollfd> files, const Take& take);
  /// Remembers someone who was refused, for messages.
  void note(const std::string& stranger);
  /// "; refused: 10.0.0.1:4711, rank 1 of another run at 10.0.0.2:4711; let go: 1300 connections
  /// that said nothing"; empty: there were none.
  std::string strangers() const;

 private:
  bool hears(Caller& caller);
  bool answer_opening(Caller& caller);
  bool refuse(Caller& caller, const std::string& why);
  void let_go_oldest();

  Socket listener_;
  const Secret& secret_;
  std::chrono::milliseconds patience_;
  std::vector<Endpoint> also_;
  std::vector<Caller> callers_;
  std::vector<std::string> strangers_;
  std::int64_t more_strangers_ = 0, let_go_ = 0;
};

}  // namespace tessera::process
