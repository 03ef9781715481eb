#include "tessera/comm/process/world.h"

#include <algorithm>
#include <cstdint>
#include <thread>

namespace tessera::process {

using namespace std::chrono_literals;

namespace {
constexpr const char* kNoRank =
    "; are all ranks the same program? Else memory or network of a host are damaged";
}

World::World(Link& link, const LaunchedOptions& options)
    : link_(link),
      options_(options),
      rank_(link.rank()),
      size_(link.size()),
      seen_(static_cast<std::size_t>(size_)),
      notices_(link),
      ended_(seen_.size()),
      left_(seen_.size()),
      dead_(seen_.size()),
      under_way_(size_) {
  for (Seen& seen : seen_) seen.group.reserve(64), seen.name.reserve(64);
  meet();
}

World::~World() {
  finish_messages();
  under_way_.stop_listening(link_);
  closing_ = true;
  watch_.reset();
}

/// What this rank has sent lies in its own memory until it has left: notices, and letters of calls
/// that have ended, which may be on their way to a rank that has not been in MPI since. After a
/// failure it may never be.
void World::finish_messages() noexcept {
  const auto limit = stopped() ? 100ms : 1000ms;
  Patience patience(pace_);
  const auto await = [&](const auto& done) {
    while (!done() && patience.waited() < limit) patience.wait();
  };
  try {
    await([&] { return notices_.delivered(); });
    under_way_.each_request([&](Request& request) { await([&] { return link_.done(request); }); });
  } catch (...) {  // a message has failed: it is no longer under way
  }
}

void World::meet() {
  const Process mine = this_process(link_.machine());
  processes_.resize(seen_.size());
  link_.gather(&mine, processes_.data(), sizeof(Process));
  for (int r = 0; r < size_; ++r) {
    const std::string problem = processes_[static_cast<std::size_t>(r)].problem(size_);
    if (!problem.empty())
      fail(Fault::Peer, "rank ", rank_, " of ", size_, " was sent ", problem, " by rank ", r,
           ", which no rank writes", kNoRank);
  }
  // Asking MPI takes its time: 2000 turns are some tenths of a millisecond, in which a segment
  // comes.
  const Neighbours here = neighbours(processes_, rank_);
  pace_ = backend::pace_of(here.ranks, here.cores, 2000);
  cores_of_host_ = here.cores;
  cores_per_rank_ = process::cores_per_rank(processes_);
  watch_ = std::make_unique<Watch>(watchable(processes_, rank_), [this](int rank) { died(rank); });
}

void World::alive() {
  const Clock::time_point now = Clock::now();
  if (size_ == 1 || now < next_alive_) return;
  next_alive_ = now + options_.deadline / 4;
  notices_.alive(
      [this](int r) { return !dead(r); });  // those that have ended wait for this one's end
}

// ---- Where ranks are.

void World::set_step(std::int64_t step) {
  const std::scoped_lock lock(mutex_);
  step_ = step;
  seen_[static_cast<std::size_t>(rank_)].step = step;
}

void World::enter(const Collective& c, const Group& group, Number number) {
  const std::scoped_lock lock(mutex_);
  Seen& me = seen_[static_cast<std::size_t>(rank_)];
  me.group = group.name, me.name = c.name, me.kind = c.kind, me.number = number;
  me.inside = true;
}

void World::leave() {
  const std::scoped_lock lock(mutex_);
  seen_[static_cast<std::size_t>(rank_)].inside = false;
}

bool World::saw(int rank, const Header& call) {
  if (const std::string problem = call.problem(); !problem.empty()) {
    stop(Fault::Peer,
         text("was sent ", problem, " by rank ", rank, ", which no rank writes", kNoRank), nullptr);
    return false;
  }
  const std::scoped_lock lock(mutex_);
  call.show(seen_[static_cast<std::size_t>(rank)]);
  return true;
}

Seen World::seen(int rank) const {
  const std::scoped_lock lock(mutex_);
  return seen_[static_cast<std::size_t>(rank)];
}

std::string World::not_ended() const {
  std::string who;
  for (int r = 0; r < size_; ++r) {
    if (r == rank_ || ended(r) || dead(r)) continue;
    who += text(who.empty() ? "rank " : ", rank ", r, " (", seen(r), ")");
  }
  return who;
}

// ---- Failures.

void World::look() {
  drain();
  if (stopped()) return;
  pass_on_stop();
  if (link_.losses() != losses_) note_losses();
  if (any_dead()) find_deaths();
  if (!options_.told_to_end || stopped() || !options_.told_to_end()) return;
  // Who died on this host is known a moment later, and says more.
  const Clock::time_point now = Clock::now();
  if (!end_asked_) end_asked_ = now;
  if (now - *end_asked_ < 200ms) return;
  const std::string why =
      "was ended by what started it: a rank of another host has failed, or the job was ended";
  stop(Fault::Peer, why, nullptr);
}

/// A rank whose connection breaks is as good as dead, on whatever host.
void World::note_losses() {
  losses_ = link_.losses();
  for (int r = 0; r < size_; ++r) {
    if (!link_.lost(r)) continue;
    dead_[static_cast<std::size_t>(r)].store(true, std::memory_order_release);
    any_dead_.store(true, std::memory_order_release);
  }
}

void World::drain() {
  Notice notice;
  while (notices_.next(notice)) take(notice);
}

/// A request that reached one rank is all ranks': the one that leads decides what follows.
void World::pass_on_stop() {
  if (options_.stop == nullptr || notices_.announced(Notice::Ended) || !*options_.stop) return;
  tell(Notice::Stop, Fault::Peer, "");
}

void World::take(const Notice& notice) {
  if (const std::string problem = notice.problem(size_); !problem.empty())
    return stop(Fault::Peer, text("was sent ", problem, ", which no rank writes", kNoRank),
                nullptr);
  ++signs_;
  if (notice.kind == Notice::Alive) return;
  if (notice.kind == Notice::Stop) {
    if (options_.stop != nullptr) *options_.stop = true;
    return;
  }
  if (notice.kind == Notice::Ended) {
    ended_[static_cast<std::size_t>(notice.rank)] = true;
    const std::scoped_lock lock(mutex_);
    seen_[static_cast<std::size_t>(notice.rank)].ended = true;
    return;
  }
  if (notice.kind == Notice::Leaving) {
    left_[static_cast<std::size_t>(notice.rank)] = true;
    if (notice.told_by_others != 0 || stopped()) return;
  }
  causes_.push_back({notice.rank, static_cast<Fault>(notice.fault), notice.words.data(),
                     notice.kind == Notice::Failed});
  stopped_ = true;
}

bool World::any_lost() const {
  for (int r = 0; r < size_; ++r) {
    if (lost(r)) return true;
  }
  return false;
}

void World::find_deaths() {
  for (int r = 0; r < size_; ++r) {
    if (!lost(r)) continue;
    // What it told before may still be on its way.
    for (int i = 0; i < 10 && !ended(r) && !stopped(); ++i) {
      std::this_thread::sleep_for(1ms);
      drain();
    }
    if (stopped()) return;
    if (!ended(r)) return stop(Fault::Peer, death_text(r), nullptr);
  }
}

std::string World::death_text(int rank) const {
  const Process& process = processes_[static_cast<std::size_t>(rank)];
  const std::string who =
      text("rank ", rank, " (process ", process.pid, " of ", process.host_name.data(), ")");
  return text("found that ", loss_text(who, link_.loss_errno(rank)), "; it was last seen ",
              seen(rank));
}

void World::stop(Fault fault, const std::string& why, std::exception_ptr error) {
  // Where a rank has told only that it leaves, this may be another failure, or its echo.
  if (stopped() && (fault == Fault::Peer || std::ranges::any_of(causes_, &Cause::known))) return;
  const std::string all = text("rank ", rank_, " of ", size_, " ", why);
  causes_.push_back({rank_, fault, all, true});
  error_ = error ? error : std::make_exception_ptr(Error(fault, all));
  stopped_ = true;
  tell(Notice::Failed, fault, all);
}

void World::leaving() {
  tell(Notice::Leaving, Fault::Peer,
       text("rank ", rank_, " of ", size_, " left its calls ", seen(rank_)));
}

void World::quiesce(std::span<Request> requests, std::span<const int> members,
                    const std::vector<int>& ranks) noexcept {
  const auto all_done = [&] {
    bool all = true;
    for (Request& request : requests) all = link_.done(request) && all;
    return all;
  };
  const auto all_gone = [&] {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (requests[i].pending && !gone(ranks[static_cast<std::size_t>(members[i])])) return false;
    }
    return true;
  };
  try {
    if (all_done()) return;
    for (Request& request : requests) link_.cancel(request);  // sends go on
    leaving();
    if (!quieted_) quieted_ = Clock::now();
    Patience patience({});
    std::optional<Clock::time_point> gone_since;
    while (!all_done() && Clock::now() - *quieted_ < 1s) {
      drain();
      // What both sides have begun is finished while both wait here.
      if (!gone_since && all_gone()) gone_since = Clock::now();
      if (gone_since && Clock::now() - *gone_since > 50ms) return;
      patience.wait();
    }
  } catch (...) {  // a message has failed: it is no longer under way
  }
}

void World::end() {
  {
    const std::scoped_lock lock(mutex_);
    seen_[static_cast<std::size_t>(rank_)].ended = true;
  }
  tell(Notice::Ended, Fault::Peer, text(seen(rank_)));
}

void World::tell(Notice::Kind kind, Fault fault, const std::string& words) {
  if (notices_.announced(kind)) return;
  Notice notice;
  notice.told_by_others = !error_ && stopped();
  notice.kind = kind, notice.rank = rank_, notice.fault = static_cast<std::int32_t>(fault);
  notice.write(words);
  notices_.tell(notice, [this](int r) { return !dead(r); });
}

const Cause& World::cause() const {
  const auto less = [](const Cause& a, const Cause& b) {
    const auto worth = [](const Cause& c) { return c.known + (c.known && c.fault != Fault::Peer); };
    return worth(a) != worth(b) ? worth(a) > worth(b) : a.rank < b.rank;
  };
  return *std::min_element(causes_.begin(), causes_.end(), less);
}

/// Main threads that wait in comm see a death within a millisecond, and tell. Where none does, the
/// ranks compute, and where the launcher will end them soon, the lowest tells from here. Others
/// tell in their next call, when they have read whether it was one.
void World::died(int rank) {
  dead_[static_cast<std::size_t>(rank)].store(true, std::memory_order_release);
  any_dead_.store(true, std::memory_order_release);
  if (!link_.ends_together()) return;
  for (int i = 0; i < 40; ++i) {
    if (stopped() || closing_) return;
    std::this_thread::sleep_for(10ms);
  }
  for (int r = 0; r < rank_; ++r) {
    if (!dead(r)) return;
  }
  if (stopped() || closing_ || !options_.report || !may_report()) return;
  options_.report(std::make_exception_ptr(
      Error(Fault::Peer, text("rank ", rank_, " of ", size_, " ", death_text(rank)))));
}

}  // namespace tessera::process
