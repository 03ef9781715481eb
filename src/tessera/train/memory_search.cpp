#include "tessera/train/memory_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/base/text.h"

namespace tessera {

namespace {

/// Calls that a search may compile once it has found something: some 15 seconds; and before that.
constexpr std::int64_t kMostWork = 400'000, kMostWorkForAny = 4 * kMostWork;
/// Two kinds of offloading may share copies. What one of them adds to a step, both add at least
/// this part of.
constexpr double kShared = 0.5;
/// Of the cap: where recomputing all takes no more than this, recomputing less may take less.
constexpr double kNotFar = 2;

}  // namespace

std::int64_t MemorySearch::most_candidates() {
  return std::min(space_.size(), std::max<std::int64_t>(kMostWork / as_asked().work, 2));
}

bool MemorySearch::spent() const { return work_ > (best_ ? kMostWork : kMostWorkForAny); }

MemoryChoice MemorySearch::choice(const MemoryCandidate& candidate) const {
  MemoryChoice out = space_.asked;
  out.recompute = space_.recompute[candidate.recompute];
  if (space_.layers > 0 && recomputes(candidate) && candidate.layers < space_.layers)
    out.layers = candidate.layers == 1 ? "0" : text("0-", candidate.layers - 1);
  out.micro_batch_size = space_.sizes[candidate.size];
  out.offload = space_.offload[candidate.offload];
  return out;
}

const MemoryPrice& MemorySearch::at(const MemoryCandidate& candidate) {
  const auto found = known_.find(candidate);
  if (found != known_.end()) return found->second;
  RunConfig config = config_;
  set_memory_choice(config, choice(candidate));
  complete(config);
  const MemoryPrice& out = known_[candidate] = memory_price(config, device_);
  work_ += out.work;
  return out;
}

double MemorySearch::best_seconds() const {
  return best_ ? known_.at(*best_).seconds : std::numeric_limits<double>::infinity();
}

void MemorySearch::offer(const MemoryCandidate& candidate) {
  if (fits(candidate) && at(candidate).seconds < best_seconds()) best_ = candidate;
}

MemoryCandidate MemorySearch::all_recomputed(std::size_t how, std::size_t size,
                                             std::size_t offload) const {
  MemoryCandidate out{how, 0, size, offload};
  if (recomputes(out)) out.layers = space_.layers;
  return out;
}

/// What recomputes nothing, or as little as the run asks for; then what recomputes all layers.
std::vector<MemoryCandidate> MemorySearch::ends(std::size_t size, std::size_t offload) const {
  std::vector<MemoryCandidate> out;
  for (std::size_t how = 0; how < space_.recompute.size(); ++how)
    out.push_back(all_recomputed(how, size, offload));
  return out;
}

/// In all layers; where that does not fit but fewer might, in fewer. Backward begins with the last
/// layers, so computing them again may take more memory than it saves.
MemoryCandidate MemorySearch::most_recomputed(std::size_t how, std::size_t size,
                                              std::size_t offload) {
  const MemoryCandidate all = all_recomputed(how, size, offload);
  for (const std::int64_t less : {std::int64_t{1}, all.layers / 2}) {
    if (fits(all) || less >= all.layers || spent()) break;
    const double share = static_cast<double>(less) / static_cast<double>(all.layers);
    MemoryCandidate some = all;
    some.layers -= less;
    const double within = static_cast<double>(cap_) * (1 + 2 * share);
    if (static_cast<double>(at(all).capped_bytes) <= within && fits(some)) return some;
  }
  return all;
}

/// If as much as helps is recomputed: all, or less where all does not miss by far; where
/// activations are offloaded that may be nothing.
bool MemorySearch::may_fit(std::size_t size, std::size_t offload) {
  for (std::size_t how = space_.recompute.size(); how-- > 0 && !spent();) {
    if (how == 0 && space_.recompute.size() > 1) break;
    const MemoryCandidate most = most_recomputed(how, size, offload);
    if (fits(most)) return true;
    if (static_cast<double>(at(most).capped_bytes) > kNotFar * static_cast<double>(cap_)) break;
  }
  return space_.offload[offload].activations && fits({0, 0, size, offload});
}

/// The largest from `low` on that may fit; the smallest does.
std::size_t MemorySearch::first_size(std::size_t low, std::size_t offload) {
  std::size_t high = space_.sizes.size() - 1;
  while (low < high && !spent()) {
    const std::size_t middle = (low + high) / 2;
    if (may_fit(middle, offload))
      high = middle;
    else
      low = middle + 1;
  }
  return high;
}

/// Of all ways of recomputing. None costs least, unless it spares copies of activations.
double MemorySearch::least_seconds(std::size_t size, std::size_t offload) {
  double out = at({0, 0, size, offload}).seconds;
  if (!space_.offload[offload].activations) return out;
  for (const MemoryCandidate& each : ends(size, offload)) out = std::min(out, at(each).seconds);
  return out;
}

MemoryCandidate MemorySearch::leanest_known() const {
  return std::ranges::min_element(known_, {},
                                  [](const auto& each) { return each.second.capped_bytes; })
      ->first;
}

/// That differ in one respect.
std::vector<MemoryCandidate> MemorySearch::neighbours(const MemoryCandidate& candidate) const {
  std::vector<MemoryCandidate> out;
  const auto add = [&](auto MemoryCandidate::*what, auto value) {
    out.push_back(candidate);
    out.back().*what = value;
    if (!recomputes(out.back())) out.back().layers = 0;
    if (recomputes(out.back()) && out.back().layers == 0) out.back().layers = space_.layers;
    if (out.back() == candidate) out.pop_back();
  };
  for (std::size_t bit = 1; bit < space_.offload.size(); bit *= 2)
    add(&MemoryCandidate::offload, candidate.offload ^ bit);
  for (std::size_t i = 0; i < space_.recompute.size(); ++i) add(&MemoryCandidate::recompute, i);
  if (candidate.size > 0) add(&MemoryCandidate::size, candidate.size - 1);
  if (candidate.layers > 1) {
    add(&MemoryCandidate::layers, candidate.layers - 1);
    add(&MemoryCandidate::layers, candidate.layers / 2);
  }
  return out;
}

void MemorySearch::descend() {
  // A step in one micro-batch adds up no gradients, and may take less than one in two.
  descend_from(0);
  if (!best_) descend_from(space_.sizes.size() - 1);
}

void MemorySearch::descend_from(std::size_t size) {
  MemoryCandidate from =
      all_recomputed(space_.recompute.size() - 1, size, space_.offload.size() - 1);
  while (!fits(from) && !spent()) {
    MemoryCandidate least = from;
    for (const MemoryCandidate& next : neighbours(from)) {
      if (spent()) break;
      if (at(next).capped_bytes < at(least).capped_bytes) least = next;
    }
    if (least == from) return;
    from = least;
  }
  offer(from);
}

std::optional<MemoryCandidate> MemorySearch::cheapest() {
  if (as_asked().batch_bytes > cap_) return {};
  descend();
  if (!best_) return {};
  const std::size_t n = space_.offload.size(), smallest = space_.sizes.size() - 1;
  offer({0, 0, smallest, 0});  // smaller micro-batches alone
  const bool small = !may_fit(0, n - 1) && may_fit(smallest, n - 1);
  const std::size_t top = small ? first_size(0, n - 1) : 0;
  relax(top);
  // Ways of offloading, each by the least that it is known to cost: the cheapest goes first.
  std::vector<bool> priced(n, false), done(n, false);
  for (std::size_t bit = 1; bit < n; bit *= 2) {
    if (spent() || may_fit(smallest, n - 1 - bit) || may_fit(top, n - 1 - bit)) continue;
    for (std::size_t i = 0; i < n; ++i) done[i] = done[i] || (i & bit) == 0;
  }
  if (spent()) return best_;
  const double base = at({0, 0, top, 0}).seconds;
  std::vector<double> least(n, base);
  while (!spent()) {
    std::size_t next = n;
    for (std::size_t i = 0; i < n; ++i) {
      if (!done[i] && least[i] <= best_seconds() && (next == n || least[i] < least[next])) next = i;
    }
    if (next == n) break;
    if (priced[next]) {
      done[next] = true;
      search_offload(top, next);
      continue;
    }
    priced[next] = true;
    least[next] = least_seconds(top, next);
    for (std::size_t i = 0; i < n; ++i) {
      if (!priced[i] && (i & next) == next)
        least[i] = std::max(least[i], base + kShared * (least[next] - base));
    }
  }
  return best_;
}

/// Soon finds something good, with which the rest is compared: from what takes least at this size,
/// gives up offloading and recomputing, in both orders, so far as it fits.
void MemorySearch::relax(std::size_t size) {
  for (const bool offload_first : {true, false}) {
    const std::size_t last = space_.recompute.size() - 1, all = space_.offload.size() - 1;
    MemoryCandidate from = most_recomputed(last, size, all);
    if (!fits(from)) from = {0, 0, size, all};
    if (!fits(from)) return;
    const auto take = [&](const MemoryCandidate& next) {
      if (spent() || !fits(next)) return;
      offer(from = next);
    };
    const auto less_recomputed = [&] {
      for (std::size_t how = from.recompute; how-- > 0;)
        take(all_recomputed(how, size, from.offload));
    };
    if (!offload_first) less_recomputed();
    for (std::size_t bit = (all + 1) / 2; bit > 0; bit /= 2) {
      MemoryCandidate next = from;
      next.offload &= ~bit;
      if (next != from) take(next);
    }
    if (offload_first) less_recomputed();
  }
}

/// All ways of recomputing, with micro-batches of that size and smaller ones.
void MemorySearch::search_offload(std::size_t top, std::size_t offload) {
  const bool large = may_fit(top, offload);
  if (!large && !may_fit(space_.sizes.size() - 1, offload)) return;
  for (std::size_t size = large ? top : first_size(top, offload); size < space_.sizes.size();
       ++size) {
    if (spent() || least_seconds(size, offload) > best_seconds()) return;  // smaller are dearer
    const MemoryCandidate none{0, 0, size, offload};
    offer(none);
    if (fits(none) && at(none).seconds <= least_seconds(size, offload)) return;
    for (std::size_t how = 0; how < space_.recompute.size() && !spent(); ++how) {
      const MemoryCandidate some = most_recomputed(how, size, offload);
      offer(some);
      const bool cheaper = at(some).seconds < at(none).seconds;  // it spares copies
      if (fits(some) && (!fits(none) || cheaper)) search_layers(none, some);
    }
  }
}

/// The fewest layers, from `none`, which does not fit or costs more, to `some`, which fits. Both
/// the peak and the price are nearly linear in the number of layers: goes where lines meet the cap,
/// every other time to the middle. Where recomputing spares copies, and so time, only half of the
/// layers are tried.
void MemorySearch::search_layers(const MemoryCandidate& none, MemoryCandidate some) {
  std::int64_t low = 0;
  auto low_peak = static_cast<double>(at(none).capped_bytes);
  for (bool guess = true; some.layers - low > 1 && !spent(); guess = !guess) {
    const MemoryPrice high = at(some);
    const double by_layer = (high.seconds - at(none).seconds) / static_cast<double>(some.layers);
    const double next = at(none).seconds + by_layer * static_cast<double>(low + 1);
    if (by_layer <= 0 && low == 0)
      offer({some.recompute, some.layers / 2, some.size, some.offload});
    if (by_layer <= 0 || next >= best_seconds()) return;
    const auto between = static_cast<double>(some.layers - low),
               drop = low_peak - static_cast<double>(high.capped_bytes),
               wanted = low_peak - static_cast<double>(cap_);
    const double ahead = guess && drop > 0 ? std::ceil(wanted / drop * between) : between / 2;
    MemoryCandidate middle = some;
    middle.layers =
        low + std::clamp(static_cast<std::int64_t>(ahead), std::int64_t{1}, some.layers - low - 1);
    offer(middle);
    if (fits(middle)) {
      some = middle;
    } else {
      low = middle.layers;
      low_peak = static_cast<double>(at(middle).capped_bytes);
    }
  }
}

}  // namespace tessera
