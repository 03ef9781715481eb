#pragma once
/// What one process has under way on all groups, and the memory that calls use again.

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "tessera/comm/mpi/letter.h"
#include "tessera/comm/mpi/slot.h"

namespace tessera::mpi {

class CallsUnderWay {
 public:
  explicit CallsUnderWay(int ranks);

  /// What this rank has called on one group, however often it joined.
  Calls& of_group(std::uint64_t group, int members);

  // ---- Collectives under way, of all groups, in the order in which this rank started them.
  Underway* first() { return first_; }
  void add(Underway& call);
  void remove(Underway& call) noexcept;
  /// True while one is being ended: then no other is.
  bool ending = false;

  // ---- Memory, kept from one call to the next.
  /// At least `bytes`, aligned for any element.
  std::byte* staging(std::size_t bytes);
  /// Headers of sends from `rank` that have come and are not yet asked for.
  std::vector<Header>& mail_of(int rank) { return mail_[static_cast<std::size_t>(rank)]; }
  std::uint64_t next_mail_to(int rank) { return ++next_mail_[static_cast<std::size_t>(rank)]; }

  /// Calls handle(request) for every message of collectives, those of calls that have ended
  /// included.
  template <typename Handle>
  void each_request(const Handle& handle) {
    for (auto& [group, calls] : groups_) {
      for (Underway& call : calls.under_way) {
        for (Request& request : call.messages.requests) handle(request);
      }
    }
  }

 private:
  Underway* first_ = nullptr;
  std::vector<std::byte> staging_;
  std::map<std::uint64_t, Calls> groups_;
  std::vector<std::vector<Header>> mail_;  // by rank
  std::vector<std::uint64_t> next_mail_;   // by rank
};

}  // namespace tessera::mpi
