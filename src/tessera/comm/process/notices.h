#pragma once
/// Notices between the ranks of a world: beside calls, whatever those are doing.

#include <array>
#include <chrono>
#include <vector>

#include "tessera/comm/process/letter.h"
#include "tessera/comm/process/link.h"

namespace tessera::process {

/// Messages of one rank arrive at another in the order in which they were sent. Allocates only when
/// made.
class Notices {
 public:
  explicit Notices(Link& link);
  /// What has not been sent by then may never be: await delivered() before.
  ~Notices();
  Notices(const Notices&) = delete;
  Notices& operator=(const Notices&) = delete;

  /// Takes in the next notice that has come, whatever is in it. False: none has.
  bool next(Notice& notice);
  /// Sends to all ranks for which wants(rank). Each kind once; more calls of it do nothing.
  template <typename Wants>
  void tell(const Notice& notice, const Wants& wants) {
    if (!begin(notice)) return;
    for (int r = 0; r < link_.size(); ++r) {
      if (r != link_.rank() && wants(r)) send(notice.kind, r);
    }
  }
  bool announced(Notice::Kind kind) const { return announced_[static_cast<std::size_t>(kind)]; }
  /// A sign of life, as often as one likes: to those ranks that have taken in the last one.
  template <typename Wants>
  void alive(const Wants& wants) {
    for (int r = 0; r < link_.size(); ++r) {
      if (r != link_.rank() && wants(r)) send_alive(r);
    }
  }
  /// True when all that was sent has left this process.
  bool delivered();

 private:
  void listen();
  bool begin(const Notice& notice);
  void send(Notice::Kind kind, int to);
  void send_alive(int to);

  Link& link_;
  Notice incoming_, alive_;
  Request incoming_request_;
  std::array<Notice, Notice::kKinds> outgoing_;
  std::array<bool, Notice::kKinds> announced_{};
  std::vector<Request> requests_, alive_requests_;  // the second by rank
};

}  // namespace tessera::process
