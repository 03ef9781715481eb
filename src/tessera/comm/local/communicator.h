#pragma once
/// One rank's end of a group of threads.

#include <memory>
#include <vector>

#include "tessera/comm/communicator.h"
#include "tessera/comm/local/world.h"

namespace tessera::local {

/// Collectives are done in start: a barrier at which all show what they call and where their memory
/// lies, the work, and a barrier after which nobody touches a peer's memory. Calls whose operand
/// has at most Post::kInline bytes copy it at the first barrier and have no second. A send shows
/// its memory in start and ends in wait; a receive is done in wait.
class LocalCommunicator final : public Communicator {
 public:
  LocalCommunicator(World& world, LocalGroup& shared, int index);

  std::unique_ptr<Communicator> join(const Group& group) override;
  void set_step(std::int64_t step) override { place().set_step(step); }
  bool peer_failed() override { return world_.stopped(); }
  int cores_per_rank() const override { return world_.cores_per_rank; }

 private:
  void do_start(Ticket& ticket, const void* in) override;
  void do_wait(Ticket& ticket) override;
  void drop(Ticket& ticket) noexcept override;

  void collective(const Collective& c, const void* in, void* out);
  void enter(const Collective& c, Number number);
  void require_agreement(const Collective& c, Number number);
  void reduce_share(const Collective& c);
  void finish(const Collective& c, Number number);
  [[noreturn]] void leave(const Collective& c, Number number);

  void start_send(Ticket& ticket, const void* in);
  void wait_send(Ticket& ticket);
  void wait_recv(Ticket& ticket);

  /// One turn of a wait for `member`. Stops all where it has ended or the deadline has passed.
  void wait_for(Patience& patience, int member, const Collective& c, Number number);
  /// Stops all for a reason that this rank found, unless another was first.
  void stop(const std::string& why);
  [[noreturn]] void fail_as_peer(const Collective& c, Number number) const;
  std::string here(const Collective& c, Number number) const;
  std::string missing(const Collective& c, Number number) const;
  int world_rank(int member) const { return group().ranks[static_cast<std::size_t>(member)]; }
  Place& place() const { return world_.places[static_cast<std::size_t>(world_rank(rank()))]; }

  World& world_;
  LocalGroup& shared_;
  std::vector<const void*> ins_;  // by member, of the call at hand
  std::vector<void*> outs_;
};

}  // namespace tessera::local
