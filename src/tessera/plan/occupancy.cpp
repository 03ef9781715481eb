#include "tessera/plan/occupancy.h"

#include <algorithm>
#include <bit>

namespace tessera {

namespace {

bool meet(TimeSpan a, TimeSpan b) { return a.first <= b.last && b.first <= a.last; }
bool covers(TimeSpan a, TimeSpan b) { return a.first <= b.first && b.last <= a.last; }

}  // namespace

Occupancy::Occupancy(std::int32_t end, std::size_t buffers) {
  constexpr std::size_t kInLeaf = 16;
  leaves_ = std::bit_ceil(std::max<std::size_t>(1, buffers / kInLeaf));
  const std::int64_t leaves = static_cast<std::int64_t>(leaves_);
  step_ = std::max<std::int64_t>(1, (end + leaves - 1) / leaves);
  any_.resize(2 * leaves_);
  all_.resize(2 * leaves_);
  parts_.resize(leaves_);
}

TimeSpan Occupancy::time_of(std::size_t node) const {
  const std::size_t level = static_cast<std::size_t>(std::bit_width(node)) - 1;
  const std::int64_t width = step_ * static_cast<std::int64_t>(leaves_ >> level);
  const std::int64_t first = static_cast<std::int64_t>(node - (std::size_t{1} << level)) * width;
  return {static_cast<std::int32_t>(first), static_cast<std::int32_t>(first + width - 1)};
}

/// Visits the nodes whose time meets `life`, down to those that lie within it.
template <typename Visit>
void Occupancy::descend(std::size_t node, TimeSpan life, const Visit& visit) {
  const TimeSpan time = time_of(node);
  if (!meet(time, life)) return;
  const bool within = covers(life, time);
  visit(node, within);
  if (within || node >= leaves_) return;
  descend(2 * node, life, visit);
  descend(2 * node + 1, life, visit);
}

/// Joins the stretch with those that it overlaps or touches.
void Occupancy::add(Runs& runs, Stretch stretch) {
  const auto first = std::lower_bound(runs.begin(), runs.end(), stretch.offset,
                                      [](const Stretch& s, std::int64_t x) { return s.end < x; });
  auto last = first;
  for (; last != runs.end() && last->offset <= stretch.end; ++last) {
    stretch = {std::min(stretch.offset, last->offset), std::max(stretch.end, last->end)};
  }
  if (first == last) {
    runs.insert(first, stretch);
  } else {
    *first = stretch;
    runs.erase(first + 1, last);
  }
}

void Occupancy::add(TimeSpan life, Stretch stretch) {
  descend(1, life, [&](std::size_t node, bool within) {
    add(any_[node], stretch);
    if (within) {
      add(all_[node], stretch);
    } else if (node >= leaves_) {
      parts_[node - leaves_].push_back({life, stretch});
    }
  });
}

const std::vector<Stretch>& Occupancy::during(TimeSpan life) {
  found_.clear();
  descend(1, life, [&](std::size_t node, bool within) {
    const Runs& runs = within ? any_[node] : all_[node];
    found_.insert(found_.end(), runs.begin(), runs.end());
    if (within || node < leaves_) return;
    for (const Part& part : parts_[node - leaves_]) {
      if (meet(part.life, life)) found_.push_back(part.stretch);
    }
  });
  std::sort(found_.begin(), found_.end(),
            [](const Stretch& a, const Stretch& b) { return a.offset < b.offset; });
  return found_;
}

}  // namespace tessera
