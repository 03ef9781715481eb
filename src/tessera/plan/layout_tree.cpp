#include "tessera/plan/layout_tree.h"

#include <algorithm>
#include <limits>

#include "tessera/base/round_up.h"

namespace tessera {

namespace {

constexpr std::int64_t kNoFloor = std::numeric_limits<std::int64_t>::max();
/// At pairs of buffers for the obstacles, which take at most a gigabyte then.
constexpr std::int64_t kMostLooks = std::int64_t{1} << 26;

}  // namespace

LayoutTree::LayoutTree(LayoutProblem problem) : problem_(std::move(problem)) {
  obstacles_.resize(problem_.buffers.size());
  if (problem_.sections() == 0) return;
  std::vector<int> fixed, open;
  for (int b = 0; at(b) < obstacles_.size(); ++b) (buffer(b).fixed ? fixed : open).push_back(b);
  const bool by_fixed = fixed.size() <= open.size();
  std::int64_t looks = 0;
  for (const int b : by_fixed ? fixed : open) {
    looks += problem_.neighbours(b);
    can_walk_ = looks <= kMostLooks;
    if (!can_walk_) return;
    problem_.for_neighbours(b, [&](int other) {
      if (buffer(other).fixed == by_fixed) return;
      const LayoutProblem::Buffer& of = buffer(by_fixed ? b : other);
      obstacles_[at(by_fixed ? other : b)].push_back({of.low, of.low + of.bytes});
    });
  }
  for (std::vector<Obstacle>& of : obstacles_)
    std::sort(of.begin(), of.end(), [](Obstacle a, Obstacle b) { return a.low < b.low; });
}

std::int64_t LayoutTree::beside_fixed(int b, std::int64_t low) const {
  const LayoutProblem::Buffer& of = buffer(b);
  low = round_up(low, of.alignment);
  for (const Obstacle obstacle : obstacles_[at(b)]) {
    if (low + of.bytes > obstacle.low && low < obstacle.end)
      low = round_up(obstacle.end, of.alignment);
  }
  steps_ += std::ssize(obstacles_[at(b)]);
  return low;
}

void LayoutTree::reset(const Walk& walk) {
  walk_ = &walk;
  decided_ = steps_ = 0;
  const std::size_t n = problem_.buffers.size();
  floor_.assign(n, 0);
  placed_.assign(n, 0);
  refused_.assign(n, -1);
  reach_.assign(problem_.sections(), 0);
  low_.assign(problem_.sections(), 0);
  dirty_.assign(problem_.sections(), 0);
  trail_.clear(), waiting_.clear(), decisions_.clear(), parts_.clear(), dirty_sections_.clear();
  changed_begin_ = changed_end_ = 0;
  pending_ = -1;
  lists_.clear();
  for (int b = 0; at(b) < n; ++b) {
    if (!buffer(b).fixed) lists_.push_back(b);
    floor_[at(b)] = beside_fixed(b, buffer(b).low);
  }
}

LayoutOutcome LayoutTree::walk(const Walk& walk) {
  reset(walk);
  if (!can_walk_) return LayoutOutcome::GaveUp;
  for (int b = 0; at(b) < floor_.size(); ++b) {
    if (floor_[at(b)] > walk.capacity - buffer(b).bytes) return LayoutOutcome::Impossible;
    touch(b);
  }
  if (!settle()) return LayoutOutcome::Impossible;
  split({0, lists_.size()}, -1);
  while (pending_ >= 0) {
    if (steps_ > walk.max_steps) return LayoutOutcome::GaveUp;
    const Part part = parts_[at(pending_)];
    pending_ = part.next;
    const int b = choose(part);
    const int decision = static_cast<int>(decisions_.size());
    decisions_.push_back(
        {b, part, pending_, trail_.size(), lists_.size(), parts_.size(), waiting_.size()});
    ++decided_;
    if (place(b)) {
      split(part, decision);
    } else if (!back(decision)) {
      return LayoutOutcome::Impossible;
    }
  }
  return LayoutOutcome::Found;
}

bool LayoutTree::back(int d) {
  while (d >= 0) {
    const Decision taken = decisions_[at(d)];
    for (; trail_.size() > taken.trail; trail_.pop_back())
      *trail_.back().what = trail_.back().before;
    lists_.resize(taken.lists);
    parts_.resize(taken.parts);
    waiting_.resize(taken.waiting);
    decisions_.resize(at(d));
    pending_ = taken.pending;
    if (refuse(taken.buffer)) {
      parts_.push_back({taken.part.first, taken.part.size, taken.part.parent, pending_});
      pending_ = static_cast<int>(parts_.size()) - 1;
      return true;
    }
    d = taken.part.parent;
  }
  return false;
}

bool LayoutTree::before(int a, int b) const {
  const std::int64_t fa = floor_[at(a)], fb = floor_[at(b)];
  return fa != fb ? fa < fb : walk_->rank[at(a)] < walk_->rank[at(b)];
}

int LayoutTree::lowest(std::span<const int> among) const {
  int best = -1;
  for (const int b : among) {
    if (is_open(b) && (best < 0 || before(b, best))) best = b;
  }
  steps_ += std::ssize(among);
  return best;
}

int LayoutTree::choose(const Part& part) const {
  if (walk_->next == Next::Lowest) return lowest(std::span(lists_).subspan(part.first, part.size));
  return without_any_below(lowest(problem_.alive[at(tightest_section(part))]));
}

int LayoutTree::tightest_section(const Part& part) const {
  int begin = static_cast<int>(problem_.sections()), end = 0;
  for (std::size_t k = part.first; k < part.first + part.size; ++k) {
    if (placed(lists_[k])) continue;
    begin = std::min(begin, buffer(lists_[k]).begin);
    end = std::max(end, buffer(lists_[k]).end);
  }
  int best = -1;
  for (int s = begin; s < end; ++s) {
    const auto key = [&](int of) { return std::pair(-reach_[at(of)], low_[at(of)]); };
    if (low_[at(s)] != kNoFloor && (best < 0 || key(s) < key(best))) best = s;
  }
  steps_ += static_cast<std::int64_t>(part.size) + end - begin;
  return best;
}

int LayoutTree::without_any_below(int b) const {
  while (true) {
    int below = -1;
    problem_.for_neighbours(b, [&](int other) {
      ++steps_;
      if (is_open(other) && floor_[at(other)] + buffer(other).bytes <= floor_[at(b)] &&
          (below < 0 || before(other, below)))
        below = other;
    });
    if (below < 0) return b;
    b = below;
  }
}

bool LayoutTree::place(int b) {
  set(placed_[at(b)], 1);
  touch(b);
  const std::int64_t low = floor_[at(b)], high = low + buffer(b).bytes;
  bool fits = true;
  problem_.for_neighbours(b, [&](int other) {
    ++steps_;
    if (!fits || !is_open(other)) return;
    const std::int64_t refused = refused_[at(other)];
    if (refused >= 0 && low < refused + buffer(other).bytes) set(refused_[at(other)], -1);
    fits = raise(other, high);
  });
  return settle(fits);
}

bool LayoutTree::refuse(int b) {
  set(refused_[at(b)], floor_[at(b)]);
  waiting_.push_back(b);
  touch(b);
  return settle();
}

/// The part of each section, by number; -1 where nothing is alive.
std::vector<int> LayoutTree::parts_of_sections(std::span<const int> live, int begin,
                                               int end) const {
  std::vector<int> crossing(at(end - begin + 1), 0);  // changes of the number alive
  for (const int b : live) {
    ++crossing[at(buffer(b).begin - begin)];
    --crossing[at(buffer(b).end - begin)];
  }
  std::vector<int> joined(at(end - begin + 1), 0);  // those that go on from the section before
  for (const int b : live) {
    if (buffer(b).begin + 1 == buffer(b).end) continue;
    ++joined[at(buffer(b).begin + 1 - begin)];
    --joined[at(buffer(b).end - begin)];
  }
  std::vector<int> out(at(end - begin), -1);
  int part = -1, alive = 0, going_on = 0;
  for (int s = 0; s < end - begin; ++s) {
    alive += crossing[at(s)], going_on += joined[at(s)];
    if (alive == 0) continue;
    if (going_on == 0) ++part;
    out[at(s)] = part;
  }
  return out;
}

void LayoutTree::split(const Part& part, int parent) {
  std::vector<int> live;
  int begin = static_cast<int>(problem_.sections()), end = 0;
  for (std::size_t k = part.first; k < part.first + part.size; ++k) {
    const int b = lists_[k];
    if (placed(b)) continue;
    live.push_back(b);
    begin = std::min(begin, buffer(b).begin), end = std::max(end, buffer(b).end);
  }
  steps_ += static_cast<std::int64_t>(part.size);
  if (live.empty()) return;
  const std::vector<int> of = parts_of_sections(live, begin, end);
  const int count = *std::max_element(of.begin(), of.end()) + 1;
  const auto add = [&](std::size_t first, std::size_t size) {
    parts_.push_back({first, size, parent, pending_});
    pending_ = static_cast<int>(parts_.size()) - 1;
  };
  if (count == 1 && live.size() > part.size / 2) return add(part.first, part.size);
  std::vector<std::vector<int>> lists(at(count));
  for (const int b : live) lists[at(of[at(buffer(b).begin - begin)])].push_back(b);
  std::stable_sort(lists.begin(), lists.end(),  // the smallest is searched first
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  for (const std::vector<int>& list : lists) {
    const std::size_t first = lists_.size();
    lists_.insert(lists_.end(), list.begin(), list.end());
    add(first, list.size());
  }
}

void LayoutTree::set(std::int64_t& what, std::int64_t value) {
  trail_.push_back({&what, what});
  what = value;
}

bool LayoutTree::raise(int b, std::int64_t to) {
  if (to <= floor_[at(b)]) return true;
  const LayoutProblem::Buffer& of = buffer(b);
  if (of.fixed) return false;
  to = beside_fixed(b, to);
  if (to > walk_->capacity - of.bytes) return false;
  set(floor_[at(b)], to);
  touch(b);
  return true;
}

void LayoutTree::touch(int b) {
  const LayoutProblem::Buffer& of = buffer(b);
  const bool none = changed_begin_ == changed_end_;
  changed_begin_ = none ? of.begin : std::min(changed_begin_, of.begin);
  changed_end_ = none ? of.end : std::max(changed_end_, of.end);
  for (int s = of.begin; s < of.end; ++s) {
    if (dirty_[at(s)] != 0) continue;
    dirty_[at(s)] = 1;
    dirty_sections_.push_back(s);
  }
}

bool LayoutTree::settle(bool holds) {
  while (holds && !dirty_sections_.empty()) {
    holds = lift_waiting();
    for (std::size_t k = 0; holds && k < dirty_sections_.size(); ++k) {
      const int s = dirty_sections_[k];
      dirty_[at(s)] = 0;
      holds = settle_section(s);
    }
    if (!holds) break;
    dirty_sections_.clear();
    for (const auto& [b, to] : lifts_) holds = holds && raise(b, to);
    lifts_.clear();
  }
  for (const int s : dirty_sections_) dirty_[at(s)] = 0;
  dirty_sections_.clear();
  lifts_.clear();
  changed_begin_ = changed_end_ = 0;
  return holds;
}

/// A buffer that was refused lies above its blocker: above the lowest end of those that may be it.
bool LayoutTree::lift_waiting() {
  while (changed_begin_ < changed_end_) {
    const int begin = changed_begin_, end = changed_end_;
    changed_begin_ = changed_end_ = 0;
    for (const int b : waiting_) {
      const std::int64_t refused = refused_[at(b)];
      if (refused < 0 || placed(b) || buffer(b).begin >= end || buffer(b).end <= begin) continue;
      const std::int64_t refused_end = refused + buffer(b).bytes;
      std::int64_t above = kNoFloor;
      problem_.for_neighbours(b, [&](int other) {
        ++steps_;
        if (is_open(other) && floor_[at(other)] < refused_end)
          above = std::min(above, floor_[at(other)] + buffer(other).bytes);
      });
      if (above == kNoFloor || !raise(b, above)) return false;
    }
  }
  return true;
}

/// Buffers by descending floor: those down to any of them take their bytes above its floor.
bool LayoutTree::settle_section(int s) {
  std::vector<int>& alive = problem_.alive[at(s)];
  const auto key = [&](int b) { return placed(b) ? -1 : floor_[at(b)]; };
  for (std::size_t k = 1; k < alive.size(); ++k) {  // nearly in order from the last time
    const int b = alive[k];
    const std::int64_t of = key(b);
    std::size_t to = k;
    for (; to > 0 && key(alive[to - 1]) < of; --to, ++steps_) alive[to] = alive[to - 1];
    alive[to] = b;
  }
  std::int64_t above = 0, reach = 0, low = kNoFloor;
  std::size_t live = 0;
  for (; live < alive.size() && !placed(alive[live]); ++live) {
    const int b = alive[live];
    above += buffer(b).bytes;
    reach = std::max(reach, floor_[at(b)] + above);
    if (reach > walk_->capacity) return false;
    if (!buffer(b).fixed) low = floor_[at(b)];
  }
  steps_ += static_cast<std::int64_t>(alive.size());
  if (reach_[at(s)] != reach) set(reach_[at(s)], reach);
  if (low_[at(s)] != low) set(low_[at(s)], low);
  return order_section(s, live);
}

/// Where what is above a floor leaves too little room for a buffer with a lower one, that lies
/// below them all (edge finding, as for a machine that does one task at a time).
bool LayoutTree::order_section(int s, std::size_t live) {
  const std::vector<int>& alive = problem_.alive[at(s)];
  largest_.assign(live + 1, 0);  // of those from k on
  for (std::size_t k = live; k-- > 0;)
    largest_[k] = std::max(largest_[k + 1], buffer(alive[k]).bytes);
  std::int64_t above = 0;
  for (std::size_t k = 0; k + 1 < live; ++k) {
    above += buffer(alive[k]).bytes;
    const std::int64_t floor = floor_[at(alive[k])], room = walk_->capacity - floor - above;
    if (largest_[k + 1] <= room || floor == floor_[at(alive[k + 1])]) continue;
    std::int64_t end = 0;  // of what must lie below
    for (std::size_t q = live; q-- > k + 1;) {
      ++steps_;
      const LayoutProblem::Buffer& of = buffer(alive[q]);
      if (of.bytes > room) end = std::max(end, floor_[at(alive[q])]) + of.bytes;
    }
    if (end > walk_->capacity - above) return false;
    if (end <= floor) continue;
    for (std::size_t q = 0; q <= k; ++q) {
      if (floor_[at(alive[q])] < end) lifts_.emplace_back(alive[q], end);
    }
  }
  return true;
}

}  // namespace tessera
