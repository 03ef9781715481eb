#include "tessera/schedule/schedule.h"

#include <algorithm>
#include <array>
#include <utility>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/index.h"
#include "tessera/base/text.h"
#include "tessera/schedule/pipeline.h"

namespace tessera {

namespace {

using enum RegionKind;

Actions passes(RegionKind region, int chunk, std::int64_t microbatches, std::int64_t from = 0) {
  Actions out;
  for (std::int64_t k = from; k < microbatches; ++k) out.push_back({region, chunk, k});
  return out;
}

/// `warmup` forwards; then a forward and a backward in turns; then the backwards that are left.
Actions in_turns(const Actions& forwards, const Actions& backwards, std::int64_t warmup) {
  Actions out;
  std::size_t next = 0;
  const auto forward = [&] {
    if (next < forwards.size()) out.push_back(forwards[next++]);
  };
  for (std::int64_t j = 0; j < warmup; ++j) forward();
  for (const Action& backward : backwards) {
    forward();
    out.push_back(backward);
  }
  return out;
}

/// Huang et al. 2019, arXiv 1811.06965.
Schedule gpipe(const PipelineSize& size) {
  Schedule out;
  const std::int64_t m = size.microbatches;
  for (int i = 0; i < size.stages; ++i)
    out.stages.push_back(in_turns(passes(Forward, i, m), passes(Backward, i, m), m));
  return out;
}

/// Narayanan et al. 2021, arXiv 2104.04473, section 2.2.1.
Schedule one_forward_one_backward(const PipelineSize& size) {
  Schedule out;
  const std::int64_t m = size.microbatches;
  for (int i = 0; i < size.stages; ++i)
    out.stages.push_back(
        in_turns(passes(Forward, i, m), passes(Backward, i, m), size.stages - 1 - i));
  return out;
}

/// The same, section 2.2.2: chunk c lies on stage c mod p, and a stage takes a group of
/// micro-batches through all its chunks before it begins the next. A last group that is smaller
/// than p can deadlock: here all have p micro-batches or more, and differ by at most one.
Schedule interleaved(const PipelineSize& size) {
  const int p = size.stages, v = size.chunks;
  const std::int64_t m = size.microbatches, groups = std::max<std::int64_t>(1, m / p);
  std::vector<std::pair<int, std::int64_t>> order;  // chunk of the stage, micro-batch
  for (std::int64_t g = 0; g < groups; ++g) {
    for (int c = 0; c < v; ++c) {
      for (std::int64_t k = m * g / groups; k < m * (g + 1) / groups; ++k) order.emplace_back(c, k);
    }
  }
  const std::int64_t largest = (m + groups - 1) / groups;
  Schedule out;
  for (int i = 0; i < p; ++i) {
    Actions forwards, backwards;
    for (const auto& [c, k] : order) {
      forwards.push_back({Forward, c * p + i, k});
      backwards.push_back({Backward, (v - 1 - c) * p + i, k});
    }
    out.stages.push_back(in_turns(forwards, backwards, (v - 1) * largest + 2 * (p - 1 - i)));
  }
  return out;
}

/// Qi et al. 2023, arXiv 2401.10241: 1f1b, where stage i does each Weights i micro-batches later
/// than its Backward. Later stages hand gradients on sooner, and have work left for the end, where
/// they would wait.
Schedule zb_h1(const PipelineSize& size) {
  const std::int64_t m = size.microbatches;
  Schedule out{{}, true};
  for (int i = 0; i < size.stages; ++i) {
    Actions& actions = out.stages.emplace_back();
    for (const Action& action :
         in_turns(passes(Forward, i, m), passes(Backward, i, m), size.stages - 1 - i)) {
      actions.push_back(action);
      if (action.region == Backward && action.microbatch >= i)
        actions.push_back({Weights, i, action.microbatch - i});
    }
    const Actions left = passes(Weights, i, m, std::max<std::int64_t>(0, m - i));
    actions.insert(actions.end(), left.begin(), left.end());
  }
  return out;
}

/// Two chunks per stage, i and 2p-1-i: down the stages and up again. The order of the figure in
/// arXiv 2401.10241, section 6, which needs 2p-1 micro-batches; those beyond m are left out.
Schedule zb_v_by_hand(const PipelineSize& size) {
  const int p = size.stages;
  const std::int64_t m = size.microbatches, n = std::max<std::int64_t>(m, 2 * p - 1);
  Schedule out{{}, true};
  for (int i = 0; i < p; ++i) {
    Actions& actions = out.stages.emplace_back();
    std::array<std::array<std::int64_t, 2>, kNumRegionKinds> done{};
    // A pattern: region and number of the stage's chunk, over and over.
    using Pattern = std::vector<std::pair<RegionKind, int>>;
    const auto repeat = [&](std::int64_t times, const Pattern& pattern) {
      for (std::int64_t t = 0; t < times; ++t) {
        for (const auto& [region, second] : pattern) {
          std::int64_t& k = done[at(static_cast<int>(region))][at(second)];
          if (k < m) actions.push_back({region, second == 0 ? i : 2 * p - 1 - i, k});
          ++k;
        }
      }
    };
    const Pattern up = {{Forward, 1}, {Backward, 1}, {Weights, 1}};
    repeat(2 * (p - i) - 1, {{Forward, 0}});
    repeat(i, {{Forward, 1}, {Forward, 0}});
    repeat(p - i, up);
    for (std::int64_t t = 0; t < n - 2 * p + 1 + i; ++t) {
      repeat(1, {{Forward, 0}, {Backward, 0}, {Weights, 0}});
      repeat(1, up);
    }
    for (int t = 0; t < p - 1 - i; ++t) {
      repeat(1, {{Backward, 0}, {Weights, 0}});
      repeat(1, up);
    }
    repeat(i, {{Backward, 0}, {Backward, 1}});
    repeat(p - i, {{Backward, 0}, {Weights, 0}});
    repeat(i, {{Weights, 1}});
    repeat(i, {{Weights, 0}});
  }
  return out;
}

/// The other way for zb-v, in units of time: each stage does something that is ready, Backward
/// before Forward before Weights, and Forward only while it holds fewer than 2p results of
/// forwards. Of two Backwards that of the lower chunk, of two Forwards that of the upper one: what
/// leaves the stage sooner comes first.
class Greedy {
 public:
  explicit Greedy(const PipelineSize& size)
      : p_(size.stages), m_(size.microbatches), done_(at(2 * p_)), held_(at(p_)) {}

  Schedule run() {
    Schedule out{std::vector<Actions>(at(p_)), true};
    for (std::int64_t left = 6 * p_ * m_; left > 0;) {
      Actions chosen;
      for (int i = 0; i < p_; ++i) {
        const Action* const best = choose(i);
        if (best == nullptr) continue;
        out.stages[at(i)].push_back(*best);
        chosen.push_back(*best);
      }
      check(!chosen.empty(), "a greedy zb-v comes to a halt");
      left -= static_cast<std::int64_t>(chosen.size());
      for (const Action& action : chosen) end(action);
    }
    return out;
  }

 private:
  std::int64_t& done(RegionKind region, int chunk) {
    return done_[at(chunk)][at(static_cast<int>(region))];
  }
  int stage(int chunk) const { return chunk < p_ ? chunk : 2 * p_ - 1 - chunk; }

  void end(const Action& action) {
    ++done(action.region, action.chunk);
    if (action.region == Forward) ++held_[at(stage(action.chunk))];
    if (action.region == Weights) --held_[at(stage(action.chunk))];
  }

  /// The first of the actions that the stage can do, by preference.
  const Action* choose(int i) {
    const int lower = i, upper = 2 * p_ - 1 - i;
    const auto take = [&](RegionKind region, int chunk) {
      return &(next_ = {region, chunk, done(region, chunk)});
    };
    for (const int c : {lower, upper}) {
      const std::int64_t k = done(Backward, c);
      if (k < done(Forward, c) && (c == 2 * p_ - 1 || k < done(Backward, c + 1)))
        return take(Backward, c);
    }
    for (const int c : {upper, lower}) {
      const std::int64_t k = done(Forward, c);
      if (k < m_ && held_[at(i)] < 2 * p_ && (c == 0 || k < done(Forward, c - 1)))
        return take(Forward, c);
    }
    const auto ready = [&](int c) { return done(Weights, c) < done(Backward, c); };
    if (!ready(lower) && !ready(upper)) return nullptr;
    const bool first =
        ready(lower) && (!ready(upper) || done(Weights, lower) <= done(Weights, upper));
    return take(Weights, first ? lower : upper);
  }

  int p_;
  std::int64_t m_;
  std::vector<std::array<std::int64_t, kNumRegionKinds>> done_;  // by chunk, region
  std::vector<std::int64_t> held_;                               // by stage
  Action next_;
};

/// The better of the two: by hand from 2p-1 micro-batches on, below that mostly the greedy one.
Schedule zb_v(const PipelineSize& size) {
  Schedule by_hand = zb_v_by_hand(size), greedy = Greedy(size).run();
  const auto cost = [](const Schedule& schedule) {
    const std::vector<Spans> played = Pipeline(schedule).play();
    double longest = 0;
    for (const Spans& spans : played)
      longest = std::max(longest, spans.back().end - spans.front().begin);
    return std::pair(makespan(played), longest);
  };
  return cost(greedy) < cost(by_hand) ? greedy : by_hand;
}

constexpr std::array kSchedules = {
    ScheduleDef{.name = "gpipe",
                .least_chunks = 1,
                .most_chunks = 1,
                .make = gpipe,
                .keeps_all = true,
                .dominated_by = "1f1b"},
    ScheduleDef{"1f1b", 1, 1, one_forward_one_backward},
    ScheduleDef{"interleaved", 2, 0, interleaved},
    ScheduleDef{"zb-h1", 1, 1, zb_h1, /*splits_backward=*/true},
    ScheduleDef{"zb-v", 2, 2, zb_v, /*splits_backward=*/true},
};

}  // namespace

std::string_view to_text(RegionKind kind) {
  constexpr std::array<std::string_view, kNumRegionKinds> kNames = {"begin", "forward", "backward",
                                                                    "weights", "update"};
  return kNames[at(static_cast<int>(kind))];
}

std::string to_text(const Action& action, const Schedule& schedule) {
  const std::string_view kind = action.region == Forward    ? "F"
                                : action.region == Weights  ? "W"
                                : action.region == Backward ? (schedule.splits ? "B" : "BW")
                                                            : to_text(action.region);
  return text(kind, action.chunk, ".", action.microbatch);
}

std::span<const ScheduleDef> schedules() { return kSchedules; }

const ScheduleDef& simplest_schedule(bool splits_backward) {
  return *std::ranges::find_if(kSchedules, [&](const ScheduleDef& def) {
    return def.splits_backward == splits_backward && def.least_chunks == 1 &&
           def.dominated_by.empty();
  });
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> out;
  for (const ScheduleDef& def : kSchedules) out.emplace_back(def.name);
  return out;
}

const ScheduleDef& find_schedule(std::string_view name) {
  for (const ScheduleDef& def : kSchedules) {
    if (def.name == name) return def;
  }
  fail(Fault::Usage, "no pipeline schedule '", name, "'; schedules are ",
       join(schedule_names(), ", "));
}

Schedule make_schedule(std::string_view name, const PipelineSize& size) {
  const ScheduleDef& def = find_schedule(name);
  require(size.stages >= 1 && size.microbatches >= 1, "a pipeline of ",
          counted(size.stages, "stage"), " and ", size.microbatches, " micro-batches",
          "; both are at least 1");
  const bool at_least = def.most_chunks == 0;
  require(size.chunks >= def.least_chunks && (at_least || size.chunks <= def.most_chunks),
          "pipeline schedule '", name, "' has ", at_least ? "at least " : "",
          counted(def.least_chunks, "virtual stage"), " per stage, not ", size.chunks);
  return def.make(size);
}

}  // namespace tessera
