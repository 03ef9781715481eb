#include "tessera/comm/local/world.h"

#include <algorithm>
#include <new>
#include <utility>

#include "tessera/base/cores.h"
#include "tessera/base/error.h"
#include "tessera/comm/backend/cores.h"
#include "tessera/comm/local/collectives.h"

namespace tessera::local {

void Place::enter(const Group& group, const Collective& c, Number number) {
  std::array<std::uint64_t, kWords> words{};
  std::memcpy(words.data(), c.name.data(), std::min(c.name.size(), sizeof(words) - 1));
  for (std::size_t i = 0; i < kWords; ++i) name_[i].store(words[i], std::memory_order_relaxed);
  kind_.store(c.kind, std::memory_order_relaxed);
  number_.store(number, std::memory_order_relaxed);
  group_.store(&group, std::memory_order_release);
  inside_.store(true, std::memory_order_relaxed);
  alive();
}

void Place::enter_again(const Group& group, const Collective& c, Number number) {
  const bool same = group_.load(std::memory_order_relaxed) == &group &&
                    number_.load(std::memory_order_relaxed) == number &&
                    kind_.load(std::memory_order_relaxed) == c.kind;
  if (!same) return enter(group, c, number);
  inside_.store(true, std::memory_order_relaxed);
}

Seen Place::view() const {
  std::array<std::uint64_t, kWords> words{};
  for (std::size_t i = 0; i < kWords; ++i) words[i] = name_[i].load(std::memory_order_relaxed);
  std::array<char, sizeof(words)> name{};
  std::memcpy(name.data(), words.data(), sizeof(words));
  const Group* group = group_.load(std::memory_order_acquire);
  return {step_.load(std::memory_order_relaxed),
          group == nullptr ? std::string() : group->name,
          kind_.load(std::memory_order_relaxed),
          number_.load(std::memory_order_relaxed),
          inside_.load(std::memory_order_relaxed),
          ended(),
          std::string(name.data())};
}

void Post::fill(const Collective& c, const void* from, void* to) {
  kind = c.kind, dtype = c.dtype, monoid = c.monoid;
  gather = c.gather, scatter = c.scatter, peer = c.peer, whole = c.whole;
  in = from, out = to;
  signature = backend::signature(c);
}

LocalGroup::LocalGroup(World& world, Group g)
    : group(std::move(g)),
      members(group.ranks.size()),
      channels(group.ranks.size() * group.ranks.size()) {
  for (Channel& channel : channels)
    channel.messages = std::vector<Message>(static_cast<std::size_t>(group.messages));
  for (int i = 0; i < group.size(); ++i)
    collectives.push_back(std::make_unique<Collectives>(world, *this, i));
}

LocalGroup::~LocalGroup() = default;

World::World(int n, std::chrono::milliseconds deadline)
    : deadline(deadline),
      cores_of_host(num_usable_cores()),
      cores_per_rank(cores_of_host / n),
      pace(backend::pace_of(n, cores_of_host, 200)),  // another core answers in less
      places(static_cast<std::size_t>(n)),
      open(static_cast<std::size_t>(n)) {}

LocalGroup& World::group(const Group& group) {
  for (const int rank : group.ranks) {
    check(rank >= 0 && rank < size(), "group ", group, " in a world of ", size());
    check(std::count(group.ranks.begin(), group.ranks.end(), rank) == 1, "group ", group,
          " has a rank twice");
  }
  const std::scoped_lock lock(mutex_);
  std::unique_ptr<LocalGroup>& found = groups_[text(group, " ", group.messages)];
  if (!found) found = std::make_unique<LocalGroup>(*this, group);
  return *found;
}

std::shared_ptr<void> World::in_common(const std::string& key,
                                       const std::function<std::shared_ptr<void>()>& make) {
  const std::scoped_lock lock(mutex_);
  std::weak_ptr<void>& known = common_[key];
  std::shared_ptr<void> out = known.lock();
  if (!out) known = out = make();
  return out;
}

std::uint64_t World::signs() const {
  std::uint64_t out = 0;
  for (const Place& place : places) out += place.signs();
  return out;
}

void World::stop(int rank, std::exception_ptr cause, std::string why) {
  const std::scoped_lock lock(mutex_);
  if (stopped_.load(std::memory_order_relaxed)) return;
  cause_ = std::move(cause);
  try {
    why_ = text("rank ", rank, " of ", size(), " ", why);
  } catch (const std::bad_alloc&) {  // the cause says it
  }
  stopped_.store(true, std::memory_order_release);
}

}  // namespace tessera::local
