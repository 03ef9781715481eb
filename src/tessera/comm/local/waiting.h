#pragma once
/// How a rank waits for others of a group, and what it says where they do not come.

#include <string>

#include "tessera/comm/local/world.h"

namespace tessera::local {

/// One member's; copies are the same.
class Waiting {
 public:
  Waiting(World& world, LocalGroup& shared, int index)
      : world_(world), shared_(shared), index_(index) {}

  /// One turn of a wait for `member` in a call. Meanwhile this rank's shares of collectives, of
  /// every group, are done as others arrive: those may be what the awaited one waits for.
  /// Errors:  the world has stopped. Stops it where `member` has ended or the deadline has passed.
  void turn(Patience& patience, int member, const Collective& c, Number number) const;

  /// Stops all for a reason that this rank found, unless another was first.
  void stop(const std::string& why) const;
  [[noreturn]] void fail_as_peer(const Collective& c, Number number) const;
  std::string here(const Collective& c, Number number) const;

  int world_rank(int member) const { return shared_.group.ranks[static_cast<std::size_t>(member)]; }
  Place& place() const { return world_.places[static_cast<std::size_t>(world_rank(index_))]; }

 private:
  std::string missing(const Collective& c, Number number, int late) const;

  World& world_;
  LocalGroup& shared_;
  int index_;
};

}  // namespace tessera::local
