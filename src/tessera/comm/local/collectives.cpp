#include "tessera/comm/local/collectives.h"

#include <algorithm>
#include <cstring>

#include "tessera/base/error.h"
#include "tessera/comm/backend/parts.h"
#include "tessera/comm/backend/reduce.h"
#include "tessera/comm/backend/work.h"

namespace tessera::local {

Collectives::Collectives(World& world, LocalGroup& shared, int index)
    : world_(world),
      shared_(shared),
      index_(index),
      waiting_(world, shared, index),
      done_(shared.members.size()),
      ins_(shared.members.size()),
      outs_(shared.members.size()) {}

Number Collectives::start(const Collective& c, const void* in, void* out, const std::int32_t* ids) {
  const Number number = started_ + 1;
  Place& place = waiting_.place();
  place.enter(shared_.group, c, number);
  require_kept(c, number);
  if (world_.stopped()) waiting_.fail_as_peer(c, number);
  try {
    if (number - ended_ > kInFlight) end(number - kInFlight);
    await_place(c, number);
    post(c, in, out, ids);
    do_shares(number);
  } catch (...) {
    withdraw(number);
    throw;
  }
  if (worked_ < number && !is_open_) {
    Open& open = world_.open[static_cast<std::size_t>(waiting_.world_rank(index_))];
    next_open_ = open.first, open.first = this;
    is_open_ = true;
  }
  place.leave();
  return number;
}

void Collectives::wait(Number number) {
  if (number <= ended_) return;
  const Collective& c = *call(number).collective;
  Place& place = waiting_.place();
  place.enter_again(shared_.group, c, number);
  require_kept(c, number);
  try {
    end(number);
  } catch (...) {
    withdraw(number);
    throw;
  }
  place.leave();
}

/// A group of which this rank gave up a call is of no more use to it.
void Collectives::require_kept(const Collective& c, Number number) const {
  if (dropped_ == 0) return;
  if (world_.stopped()) waiting_.fail_as_peer(c, number);
  const Collective dropped = member(index_).posts[dropped_ % kInFlight].collective();
  check(false, "a ticket was dropped before its wait: ", dropped, " (number ", dropped_,
        " of group ", shared_.group, ")");
}

/// The place of a post is free when all are done with the call that was in it.
void Collectives::await_place(const Collective& c, Number number) {
  if (number <= kInFlight) return;
  for (int j = 0; j < size(); ++j) {
    Patience patience(world_.pace);
    while (!is_done(j, number - kInFlight)) waiting_.turn(patience, j, c, number);
  }
}

void Collectives::post(const Collective& c, const void* in, void* out, const std::int32_t* ids) {
  const Number number = ++started_;
  const std::int64_t bytes = in_bytes(c, size());
  const bool small = bytes <= Post::kInline;
  Post& post = member(index_).posts[number % kInFlight];
  post.fill(c, in, out);
  if (small && bytes > 0 && (c.kind != CollectiveKind::Broadcast || c.peer == index_)) {
    std::memcpy(post.small.data(), in, static_cast<std::size_t>(bytes));
  }
  calls_[number % kInFlight] = {&c, ids, small};
  post.arrived.store(number, std::memory_order_release);
}

void Collectives::end(Number last) {
  // All shares first: others wait for them.
  while (worked_ < last) {
    const Number number = worked_ + 1;
    Patience patience(world_.pace);
    for (do_shares(last); worked_ < number; do_shares(last)) {
      const int late = arrived_ < size() ? arrived_ : shared_.withdrawn.load();
      waiting_.turn(patience, late, *call(number).collective, number);
    }
  }
  for (; ended_ < last; ++ended_) {
    const Call& next = call(ended_ + 1);
    if (!next.small) await_done(*next.collective, ended_ + 1);
  }
}

void Collectives::await_done(const Collective& c, Number number) {
  for (int j = 0; j < size(); ++j) {
    Patience patience(world_.pace);
    while (!is_done(j, number)) waiting_.turn(patience, j, c, number);
  }
}

/// Others' cores write `done` all the time: it is read only where what is known does not do.
bool Collectives::is_done(int j, Number number) {
  Number& known = done_[static_cast<std::size_t>(j)];
  if (known < number) known = member(j).done.load(std::memory_order_acquire);
  return known >= number;
}

// ---- Failures.
//
// A rank that fails frees the memory of its calls under way, so nobody may touch it by then. Who is
// about to touch memory of others says so (`working`), then looks whether anyone has withdrawn from
// the group. Who gives up a call says so (`withdrawn`), then waits for those who work. All four are
// in one total order (seq_cst), so of such two the later one sees the earlier: either the one does
// not begin, or the other waits until it is through. Work never waits for anything, so that wait is
// short. Every way out of a call under way leads here: an error in start or wait, or the ticket's
// end. Withdrawals are of the group, not of one call, because after a failure all calls fail; and
// nobody goes on by seeing one: it waits for the stop, with its cause, that the failing rank's
// unwinding ends in. Small calls read posts only, which live as long as the world.

void Collectives::drop(Number number) noexcept {
  if (number > ended_) withdraw(number);
}

void Collectives::withdraw(Number number) noexcept {
  if (dropped_ == 0) dropped_ = number;
  int nobody = -1;
  shared_.withdrawn.compare_exchange_strong(nobody, index_, std::memory_order_seq_cst);
  Patience patience(world_.pace);
  for (const Member& peer : shared_.members) {
    while (peer.working.load(std::memory_order_seq_cst)) patience.wait();
  }
}

namespace {

/// While it lives, the rank touches memory of others, if it may.
class Hold {
 public:
  Hold(LocalGroup& shared, Member& me) : me_(me) {
    me_.working.store(true, std::memory_order_seq_cst);
    allowed = shared.withdrawn.load(std::memory_order_seq_cst) < 0;
  }
  ~Hold() { me_.working.store(false, std::memory_order_release); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  bool allowed;

 private:
  Member& me_;
};

}  // namespace

// ---- Shares.

void Collectives::do_open_shares(World& world, int rank) {
  Collectives** at = &world.open[static_cast<std::size_t>(rank)].first;
  while (Collectives* const one = *at) {
    if (one->dropped_ == 0) one->do_shares(one->started_);
    if (one->dropped_ == 0 && one->worked_ < one->started_) {
      at = &one->next_open_;
    } else {
      *at = one->next_open_;
      one->is_open_ = false;
    }
  }
}

/// Those of calls up to `last` at which all have arrived, in order. None once the world has
/// stopped: who waits then says so for the call that it waits in.
void Collectives::do_shares(Number last) {
  while (worked_ < last && all_arrived() && !world_.stopped()) {
    if (!do_share()) return;
  }
}

bool Collectives::all_arrived() {
  while (arrived_ < size() && member(arrived_).has_arrived(worked_ + 1)) ++arrived_;
  return arrived_ == size();
}

/// False where one has withdrawn from the group.
bool Collectives::do_share() {
  const Number number = worked_ + 1;
  const Call& next = call(number);
  require_agreement(*next.collective, number);
  if (next.small) {
    work(next, number);
  } else {
    const Hold hold(shared_, member(index_));
    if (!hold.allowed) return false;
    work(next, number);
  }
  worked_ = number;
  arrived_ = 0;
  return true;
}

void Collectives::work(const Call& call, Number number) {
  const Collective& c = *call.collective;
  for (std::size_t j = 0; j < shared_.members.size(); ++j) {
    Post& post = shared_.members[j].posts[number % kInFlight];
    ins_[j] = call.small ? post.small.data() : post.in;
    outs_[j] = post.out;
  }
  if (c.kind == CollectiveKind::AllReduce && !call.small) {
    // Of a large one, rank r reduces the r-th chunk and writes it to all.
    const backend::Span mine = backend::share(c.whole.numel(), size(), index_);
    backend::reduce(c.dtype, c.monoid, ins_, mine.begin, outs_, mine.begin, mine.end - mine.begin);
  } else {
    backend::work(c, index_, ins_, outs_[static_cast<std::size_t>(index_)], call.ids);
  }
  member(index_).done.store(number, std::memory_order_release);
}

void Collectives::require_agreement(const Collective& c, Number number) const {
  const auto post = [&](int j) -> const Post& { return member(j).posts[number % kInFlight]; };
  const auto agree = [&](int a, int b) { return post(a).signature == post(b).signature; };
  int differs = 1;
  while (differs < size() && agree(differs, 0)) ++differs;
  if (differs >= size()) return;
  const auto [odd, right] = backend::who_differs(size(), agree);
  waiting_.stop(backend::disagreement(shared_.group, number, c.name, waiting_.world_rank(odd),
                                      tessera::to_text(post(odd).collective()),
                                      waiting_.world_rank(right),
                                      tessera::to_text(post(right).collective())));
  waiting_.fail_as_peer(c, number);
}

}  // namespace tessera::local
