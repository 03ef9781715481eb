#pragma once
/// The room `comm`: collectives and messages among ranks, which are threads (local/) or processes
/// (process/, over MPI or TCP).
/// For: moving bytes, with the same sums in the same order whatever carries them.
/// Not for: which collective is needed (passes/redistribute.h), or starting ranks (launch).
/// Rejected: MPI's own all_reduce: its order of sums is its own, so threads and processes would
/// give other bits; ours took 0.5 to 1.1 times as long. Collectives that block: start and wait are
/// two calls of the plan, so that they overlap with computing, for some memory.
///
/// Communicators: one rank's end of a group. Backends (threads, MPI) implement this interface.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "tessera/comm/collective.h"
#include "tessera/comm/group.h"

namespace tessera {

class Communicator;

/// The handle that `start` returns and `wait` takes. It has no memory of its own; an executor keeps
/// as many as it has calls under way. One that is dropped before its wait takes its call back, so
/// that nobody reads or writes the memory of a rank that failed: drop it before that memory. Where
/// a rank drops one of a collective and goes on, its next collective on that group fails.
class Ticket {
 public:
  Ticket() = default;
  Ticket(Ticket&& other) noexcept { *this = std::move(other); }
  Ticket& operator=(Ticket&& other) noexcept;
  ~Ticket();

  Communicator* owner = nullptr;  // null: nothing is under way
  const Collective* collective = nullptr;
  void* out = nullptr;
  const std::int32_t* ids = nullptr;  // of Collective::rows
  std::uint64_t number = 0;           // for the backend
};

/// Calls of one rank on one group, counted when a call starts.
struct Count {
  std::int64_t calls = 0;
  std::int64_t bytes = 0;  // bytes_sent() of the calls, with their ids
  friend bool operator==(const Count&, const Count&) = default;
};
using Counts = std::array<Count, kNumCollectiveKinds>;  // by CollectiveKind

/// A call is under way from start to wait. All members of a group start the same calls in the same
/// order. Up to kInFlight collectives of one group may be under way; one more start ends the oldest
/// first. Nothing is allocated by start and wait.
///
/// Sends and receives: those from one member to another are a channel of the group, in which the
/// n-th receive gets the n-th send, so groups of other names are channels of their own. A message
/// moves as soon as its send and its receive have been started, without a wait on either side:
/// threads move it in the later of the two starts; processes in every call, alive() included. A
/// rank that starts its receives before it waits for anything never keeps a sender waiting. One
/// more send than the group has messages waits in start until the first has moved; one more receive
/// is an error of the caller.
///
/// Errors:  Fault::Peer where ranks call different things, a rank failed, or one does not come; the
///          message names it. After that every call of every rank fails.
class Communicator {
 public:
  static constexpr int kInFlight = 8;

  explicit Communicator(Group group, int index) : group_(std::move(group)), index_(index) {}
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  const Group& group() const { return group_; }
  /// This rank's index in the group.
  int rank() const { return index_; }
  int size() const { return group_.size(); }
  const Counts& counts() const { return counts_; }

  /// This rank's end of another group of the same world. All its members ask for it, before a step;
  /// twice the same group is the same group.
  virtual std::unique_ptr<Communicator> join(const Group& group) = 0;
  /// Names the step in messages, for all groups of this rank.
  virtual void set_step(std::int64_t step) = 0;
  /// True once a rank of the world, this one or another, has failed: what is due now, a checkpoint
  /// most of all, must not be done. Looks without waiting; the next call says what happened. May be
  /// asked on any thread.
  virtual bool peer_failed() = 0;
  /// A sign of life of a rank that works at something in which the others take no part, and for
  /// which they may be waiting: their deadline begins anew. Messages move on meanwhile. To be
  /// called often, on the rank's own thread; the beginning of a call is a sign too. work_alone.h
  /// does it for long work.
  virtual void alive() = 0;
  /// Cores of each rank of the world, the same number on every rank: each host's are shared out
  /// over the ranks on it, and the rank that has fewest counts. 0 where a host has more ranks than
  /// cores.
  virtual int cores_per_rank() const = 0;
  /// Cores of this rank's host that its ranks may use together: a launcher may have bound each to
  /// some of them.
  virtual int cores_of_host() const = 0;
  /// What ranks of one process hold in common: the first that asks for `key` makes it, the others
  /// get the same one, which lives as long as one of them holds it. Ranks of several processes
  /// make one each.
  virtual std::shared_ptr<void> in_common(const std::string& key,
                                          const std::function<std::shared_ptr<void>()>& make) {
    (void)key;
    return make();
  }

  /// Begins a call; `collective`, `in`, `ids` and `out` stay as they are until wait, and what it writes is
  /// no part of another call under way. Where groups cross, calls on them start in an order that
  /// all ranks share.
  Ticket start(const Collective& collective, const void* in, void* out,
               const std::int32_t* ids = nullptr);
  /// Ends it: `out` is there, `in` may be written. A collective ends with all that were started
  /// before it on its group; tickets may be waited for in any order, also other ones on other
  /// ranks. Receives of one channel end in the order in which they were started.
  void wait(Ticket& ticket);
  void run(const Collective& collective, const void* in, void* out,
           const std::int32_t* ids = nullptr);

 protected:
  friend class Ticket;
  /// Of one channel.
  std::uint64_t most_messages() const { return static_cast<std::uint64_t>(group_.messages); }
  virtual void start_collective(Ticket& ticket, const void* in) = 0;
  virtual void start_send(Ticket& ticket, const void* in) = 0;
  virtual void start_recv(Ticket& ticket) = 0;
  virtual void wait_collective(Ticket& ticket) = 0;
  virtual void wait_send(Ticket& ticket) = 0;
  virtual void wait_recv(Ticket& ticket) = 0;
  virtual void drop_collective(Ticket& ticket) noexcept = 0;
  virtual void drop_send(Ticket& ticket) noexcept = 0;
  virtual void drop_recv(Ticket& ticket) noexcept = 0;

 private:
  void drop(Ticket& ticket) noexcept;

  Group group_;
  int index_;
  Counts counts_{};
};

}  // namespace tessera
