#pragma once
/// What one process has under way on all groups, and the memory that calls use again.

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "tessera/comm/process/letter.h"
#include "tessera/comm/process/link.h"
#include "tessera/comm/process/slot.h"

namespace tessera::process {

class CallsUnderWay {
 public:
  explicit CallsUnderWay(int ranks);

  /// What this rank has called on one group, however often it joined.
  Calls& of_group(std::uint64_t id, const Group& group);

  // ---- Collectives under way, of all groups, in the order in which this rank started them.
  Underway* first() { return first_; }
  void add(Underway& call);
  void remove(Underway& call) noexcept;
  /// True while one is being ended: then no other is.
  bool ending = false;

  // ---- Messages, of all groups.
  /// Receives that are not There, in the order in which they were started.
  std::vector<Posted*> posted;
  /// Sends that are not known to have left.
  std::vector<Sent*> sent;
  /// Headers of sends from one rank. They are taken in while a receive expects one.
  struct Mail {
    int expected = 0;
    bool listening = false;
    Header incoming;
    Request request;              // of `incoming`
    std::vector<Header> unasked;  // that came before their receives were started
    std::uint64_t sent = 0;       // by this rank, to that one
  };
  std::vector<Mail> mail;  // by rank
  void stop_listening(Link& link) noexcept;

  // ---- Memory, kept from one call to the next.
  /// At least `bytes`, aligned for any element.
  std::byte* staging(std::size_t bytes);

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
};

}  // namespace tessera::process
