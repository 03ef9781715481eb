#pragma once
/// One rank's collectives on one group of threads.

#include <array>
#include <vector>

#include "tessera/comm/local/waiting.h"
#include "tessera/comm/local/world.h"

namespace tessera::local {

/// A collective is a post, at which a rank shows what it calls and where its memory lies; the
/// rank's share of the work, done when all have posted, in whatever call of comm the rank is then;
/// and a wait until all are done, so that nobody touches a peer's memory after it. Calls whose
/// operand has at most Post::kInline bytes copy it into the post and have no such wait.
class alignas(kCacheLine) Collectives {
 public:
  Collectives(World& world, LocalGroup& shared, int index);

  /// Posts a call, and does what can be done at once. Gives its number.
  Number start(const Collective& c, const void* in, void* out, const std::int32_t* ids);
  /// Ends call `number` and all before it.
  void wait(Number number);
  /// Ends a call that is not waited for: afterwards nobody touches its memory.
  void drop(Number number) noexcept;

  /// Does the shares of a rank, on all its groups, in calls at which all have arrived.
  static void do_open_shares(World& world, int rank);

 private:
  static constexpr auto kInFlight = static_cast<Number>(Communicator::kInFlight);
  struct Call {
    const Collective* collective = nullptr;
    const std::int32_t* ids = nullptr;
    bool small = false;
  };

  void require_kept(const Collective& c, Number number) const;
  void await_place(const Collective& c, Number number);
  void post(const Collective& c, const void* in, void* out, const std::int32_t* ids);
  void end(Number last);
  void await_done(const Collective& c, Number number);
  void withdraw(Number number) noexcept;

  void do_shares(Number last);
  bool all_arrived();
  bool do_share();
  void work(const Call& call, Number number);
  void require_agreement(const Collective& c, Number number) const;

  int size() const { return shared_.group.size(); }
  Member& member(int j) const { return shared_.members[static_cast<std::size_t>(j)]; }
  bool is_done(int member, Number number);
  const Call& call(Number number) const { return calls_[number % kInFlight]; }

  World& world_;
  LocalGroup& shared_;
  const int index_;
  const Waiting waiting_;
  std::array<Call, kInFlight> calls_;  // by number
  Number started_ = 0, worked_ = 0, ended_ = 0;
  Number dropped_ = 0;        // the first call that this rank gave up, or 0
  int arrived_ = 0;           // members that are known to have arrived at worked_ + 1
  std::vector<Number> done_;  // by member: what is known of its `done`
  std::vector<const void*> ins_;
  std::vector<void*> outs_;
  Collectives* next_open_ = nullptr;
  bool is_open_ = false;
};

}  // namespace tessera::local
