#include "tessera/schedule/pipeline.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <string>

#include "tessera/base/error.h"
#include "tessera/base/index.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

using enum RegionKind;

/// Most actions of `first` that have begun while that of `last` has not ended, for chunks that
/// `counts` takes.
template <typename Counts>
std::int64_t most_alive(const Actions& actions, RegionKind first, RegionKind last,
                        const Counts& counts) {
  std::int64_t now = 0, most = 0;
  for (const Action& action : actions) {
    if (!counts(action)) continue;
    if (action.region == first) most = std::max(most, ++now);
    if (action.region == last) --now;
  }
  return most;
}

}  // namespace

std::vector<std::pair<int, int>> skips_of(const std::vector<Edge>& edges) {
  std::set<std::pair<int, int>> out;
  for (const Edge& edge : edges) {
    const auto [a, b] = std::minmax(edge.giver, edge.taker);
    if (b - a > 1) out.emplace(a, b);
  }
  return {out.begin(), out.end()};
}

Pipeline::Pipeline(Schedule schedule, const std::vector<std::pair<int, int>>& skips)
    : schedule_(std::move(schedule)) {
  for (int i = 0; i < static_cast<int>(schedule_.stages.size()); ++i) {
    for (const Action& action : schedule_.stages[at(i)]) {
      if (at(action.chunk) >= stage_.size()) stage_.resize(at(action.chunk + 1), -1);
      int& stage = stage_[at(action.chunk)];
      check(stage < 0 || stage == i, "schedule: chunk ", action.chunk, " is on stages ", stage,
            " and ", i);
      stage = i;
      microbatches_ = std::max(microbatches_, action.microbatch + 1);
    }
  }
  std::vector<std::int64_t> next(at(kNumRegionKinds * chunks()), 0);
  for (const Actions& actions : schedule_.stages) {
    for (const Action& action : actions) {
      std::int64_t& k = next[index(action.region, action.chunk)];
      check(action.microbatch == k, "schedule: ", to_text(action, schedule_), " comes where ", k,
            " is the next micro-batch");
      ++k;
    }
  }
  const bool all[] = {false, true, true, schedule_.splits, false};
  for (int c = 0; c < chunks(); ++c) {
    for (int r = 0; r < kNumRegionKinds; ++r) {
      const std::int64_t done = next[index(static_cast<RegionKind>(r), c)];
      check(done == (all[r] ? microbatches_ : 0), "schedule: ", done, " actions ",
            to_text(static_cast<RegionKind>(r)), " of chunk ", c, " for ", microbatches_,
            " micro-batches");
    }
  }
  givers_.resize(next.size());
  sends_.resize(next.size());
  const auto link = [&](RegionKind region, int giver, int taker) {
    givers_[index(region, taker)].push_back(giver);
    if (stage_of(giver) == stage_of(taker)) return;
    sends_[index(region, giver)].push_back(edges_.size());
    edges_.push_back({region, giver, taker});
  };
  const auto both = [&](int a, int b) {
    link(Forward, a, b);
    link(Backward, b, a);
  };
  for (int c = 0; c + 1 < chunks(); ++c) both(c, c + 1);
  for (const auto& [a, b] : skips) {
    check(a >= 0 && a < b && b < chunks(), "schedule: chunk ", b, " of ", chunks(), " reads what ",
          a, " results in");
    both(a, b);
  }
}

std::size_t Pipeline::index(RegionKind region, int chunk) const {
  return at(static_cast<int>(region) * chunks() + chunk);
}

std::int64_t Pipeline::alive(int chunk, RegionKind first, RegionKind last) const {
  return most_alive(schedule_.stages[at(stage_of(chunk))], first, last,
                    [&](const Action& action) { return action.chunk == chunk; });
}

std::int64_t Pipeline::in_flight(int stage, RegionKind last) const {
  return most_alive(schedule_.stages[at(stage)], Forward, last, [](const Action&) { return true; });
}

std::int64_t Pipeline::ahead(const Edge& edge) const {
  const auto [a, b] = std::minmax(edge.giver, edge.taker);
  return b - a == 1 ? 1 : alive(a, Forward, Backward);
}

std::vector<std::int64_t> Pipeline::held_slots() const {
  std::vector<std::int64_t> out;
  for (const Edge& edge : edges_) out.push_back(alive(edge.taker, edge.region, schedule_.last()));
  return out;
}

/// One play: the ends of actions that have been played, and the times at which receives are posted.
class Player {
 public:
  Player(const Pipeline& pipeline, const PlayOptions& options)
      : of_(pipeline),
        options_(options),
        ends_(pipeline.givers_.size() * at(pipeline.microbatches()), kNever) {}

  std::vector<Spans> run() {
    const auto& stages = of_.schedule().stages;
    std::vector<Spans> out(stages.size());
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t i = 0; i < stages.size(); ++i) {
        for (; out[i].size() < stages[i].size(); moved = true) {
          const Action& action = stages[i][out[i].size()];
          const double clock = out[i].empty() ? 0 : out[i].back().end;
          const double begin = std::max(clock, ready(action));
          if (begin == kNever) break;
          const Span& span = out[i].emplace_back(Span{begin, begin + cost(action)});
          ends_[place(action.region, action.chunk, action.microbatch)] = span.end;
        }
      }
    }
    std::string stuck;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      if (out[i].size() < stages[i].size())
        stuck += text(stuck.empty() ? "" : ", ", "stage ", i, " before ",
                      to_text(stages[i][out[i].size()], of_.schedule()));
    }
    check(stuck.empty(), "schedule: nothing can go on: ", stuck);
    return out;
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  std::size_t place(RegionKind region, int chunk, std::int64_t microbatch) const {
    return of_.index(region, chunk) * at(of_.microbatches()) + at(microbatch);
  }
  double end(RegionKind region, int chunk, std::int64_t microbatch) const {
    return ends_[place(region, chunk, microbatch)];
  }
  double cost(const Action& action) const {
    if (options_.cost) return options_.cost(action);
    return action.region == Backward && !of_.schedule().splits ? 2 : 1;
  }

  double arrival(std::size_t number, std::int64_t k) const {
    const Edge& edge = of_.edges()[number];
    double posted = 0;
    if (!options_.slots.empty() && k >= options_.slots[number]) {
      const RegionKind reader = options_.hold ? of_.schedule().last() : edge.region;
      posted = end(reader, edge.taker, k - options_.slots[number]);
    }
    if (const std::int64_t n = options_.ahead ? of_.ahead(edge) : 0; n > 0 && k >= n) {
      const Action before{edge.region, edge.taker, k - n};
      posted = std::max(posted, end(edge.region, edge.taker, k - n) - cost(before));
    }
    const double takes = options_.sends.empty() ? options_.send : options_.sends[number];
    return std::max(end(edge.region, edge.giver, k), posted) + takes;
  }

  /// When all is there that the action needs; never, if not all of it has been played.
  double ready(const Action& action) const {
    const auto& [region, chunk, k] = action;
    double out = 0;
    for (const int giver : of_.givers_[of_.index(region, chunk)]) {
      if (of_.stage_of(giver) == of_.stage_of(chunk)) {
        out = std::max(out, end(region, giver, k));
        continue;
      }
      for (const std::size_t edge : of_.sends_[of_.index(region, giver)]) {
        if (of_.edges()[edge].taker == chunk) out = std::max(out, arrival(edge, k));
      }
    }
    if (region != Forward)
      out = std::max(out, end(region == Weights ? Backward : Forward, chunk, k));
    if (options_.send_slots > 0 && k >= options_.send_slots) {
      for (const std::size_t edge : of_.sends_[of_.index(region, chunk)])
        out = std::max(out, arrival(edge, k - options_.send_slots));
    }
    return out;
  }

  const Pipeline& of_;
  const PlayOptions& options_;
  std::vector<double> ends_;  // by region, chunk and micro-batch
};

std::vector<Spans> Pipeline::play(const PlayOptions& options) const {
  check(options.slots.empty() || options.slots.size() == edges_.size(),
        "schedule: ", options.slots.size(), " numbers of slots for ", edges_.size(), " edges");
  check(options.sends.empty() || options.sends.size() == edges_.size(),
        "schedule: ", options.sends.size(), " times of messages for ", edges_.size(), " edges");
  return Player(*this, options).run();
}

double makespan(const std::vector<Spans>& played) {
  double begin = std::numeric_limits<double>::infinity(), end = 0;
  for (const Spans& spans : played) {
    begin = std::min(begin, spans.front().begin);
    end = std::max(end, spans.back().end);
  }
  return end - begin;
}

double bubble(const std::vector<Spans>& played) {
  double busy = 0;
  for (const Spans& spans : played) {
    for (const Span& span : spans) busy += span.end - span.begin;
  }
  const double all = makespan(played) * static_cast<double>(played.size());
  return all > 0 ? 1 - busy / all : 0;
}

}  // namespace tessera
