#include "tessera/comm/local/world.h"

#include <sched.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <thread>
#include <utility>

#include "tessera/base/error.h"

namespace tessera::local {

namespace {
void pause_core() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}
}  // namespace

void Patience::wait() {
  constexpr auto kAwake = std::chrono::milliseconds(2);
  if (left_ > 0) {
    --left_;
    pause_core();
    return;
  }
  if (left_ == 0) --left_, since_ = Clock::now();
  now_ = Clock::now();
  if (now_ - since_ < kAwake) {
    sched_yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

void Place::enter(const Group& group, const Collective& c, Number number) {
  std::array<std::uint64_t, kWords> words{};
  std::memcpy(words.data(), c.name.data(), std::min(c.name.size(), sizeof(words) - 1));
  for (std::size_t i = 0; i < kWords; ++i) name_[i].store(words[i], std::memory_order_relaxed);
  kind_.store(c.kind, std::memory_order_relaxed);
  number_.store(number, std::memory_order_relaxed);
  group_.store(&group, std::memory_order_release);
  inside_.store(true, std::memory_order_relaxed);
}

Place::View Place::view() const {
  std::array<std::uint64_t, kWords> words{};
  for (std::size_t i = 0; i < kWords; ++i) words[i] = name_[i].load(std::memory_order_relaxed);
  std::array<char, sizeof(words)> name{};
  std::memcpy(name.data(), words.data(), sizeof(words));
  return {step_.load(std::memory_order_relaxed),
          group_.load(std::memory_order_acquire),
          kind_.load(std::memory_order_relaxed),
          number_.load(std::memory_order_relaxed),
          inside_.load(std::memory_order_relaxed),
          ended(),
          std::string(name.data())};
}

std::string to_text(const Place::View& view) {
  std::string out = view.step < 0 ? "before the first step" : text("in step ", view.step);
  if (view.group == nullptr) return out + ", before any call";
  out += text(view.inside ? " at " : " after ", to_text(view.kind), " '", view.name, "' (number ",
              view.number, " of ", view.group->name, ")");
  return view.ended ? out + ", has ended" : out;
}

void Post::fill(const Collective& c, const void* from, void* to) {
  kind = c.kind, dtype = c.dtype, monoid = c.monoid;
  gather = c.gather, scatter = c.scatter, peer = c.peer, whole = c.whole;
  in = from, out = to;
  std::uint64_t h = 0;
  const auto mix = [&](auto value) {
    h = (h ^ static_cast<std::uint64_t>(value)) * 0x9e3779b97f4a7c15u;
    h ^= h >> 32;
  };
  mix(static_cast<int>(kind) | static_cast<int>(dtype) << 8 | static_cast<int>(monoid) << 16);
  mix(gather), mix(scatter), mix(peer), mix(whole.ndim());
  for (const std::int64_t size : whole) mix(size);
  signature = h;
}

LocalGroup::LocalGroup(Group g)
    : group(std::move(g)),
      members(group.ranks.size()),
      channels(group.ranks.size() * group.ranks.size()),
      next(group.ranks.size()),
      next_send(channels.size()),
      next_recv(channels.size()) {}

LocalGroup& World::group(const Group& group) {
  for (const int rank : group.ranks) {
    check(rank >= 0 && rank < size(), "group ", group, " in a world of ", size());
    check(std::count(group.ranks.begin(), group.ranks.end(), rank) == 1, "group ", group,
          " has a rank twice");
  }
  const std::scoped_lock lock(mutex_);
  std::unique_ptr<LocalGroup>& found = groups_[text(group)];
  if (!found) found = std::make_unique<LocalGroup>(group);
  return *found;
}

void World::stop(int rank, std::exception_ptr cause, std::string why) {
  const std::scoped_lock lock(mutex_);
  if (stopped_.load(std::memory_order_relaxed)) return;
  cause_ = std::move(cause);
  why_ = text("rank ", rank, " of ", size(), " ", why);
  stopped_.store(true, std::memory_order_seq_cst);
}

}  // namespace tessera::local
