// Each schedule beside its numbers: time, what is held, slots. The numbers are those of the papers,
// and of a model of all this that was checked apart.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "tessera/base/error.h"
#include "tessera/base/index.h"
#include "tessera/base/text.h"
#include "tessera/schedule/pipeline.h"

namespace tessera::test {
namespace {

using enum RegionKind;

struct Case {
  std::string name;
  PipelineSize size;

  int p() const { return size.stages; }
  int v() const { return size.chunks; }
  std::int64_t m() const { return size.microbatches; }
  std::string text() const { return tessera::text(name, " p=", p(), " v=", v(), " m=", m()); }
  /// zb-v with fewer micro-batches than it fills the stages with.
  bool sparse() const { return name == "zb-v" && m() < 2 * p() - 1; }
  std::int64_t largest_group() const {
    const std::int64_t groups = std::max<std::int64_t>(1, m() / p());
    return (m() + groups - 1) / groups;
  }
};

std::vector<Case> cases(int most_stages) {
  std::vector<Case> out;
  for (int p = 1; p <= most_stages; ++p) {
    for (std::int64_t m = 1; m <= 3 * p + 2; ++m) {
      for (const std::string& name : schedule_names()) {
        const ScheduleDef& def = find_schedule(name);
        out.push_back({name, {p, def.least_chunks, m}});
        if (def.most_chunks == 0) out.push_back({name, {p, def.least_chunks + 1, m}});
      }
    }
  }
  return out;
}

/// Units of time from the first begin to the last end; none for some of zb-v.
std::optional<double> expected_time(const Case& c) {
  const std::int64_t p = c.p(), m = c.m();
  std::int64_t out = 0;
  if (c.name == "gpipe" || c.name == "1f1b") out = 3 * (m + p - 1);
  if (c.name == "interleaved") out = 3 * (c.v() * std::max(m, p) + std::min(m, p) - 1);
  if (c.name == "zb-h1") out = std::max(3 * m + p - 1, 2 * m + 2 * p - 1);
  if (c.name == "zb-v") {
    if (m != p && c.sparse()) return {};
    out = 6 * m + p - 1;
  }
  return static_cast<double>(out);
}

/// Results of forwards that stage i holds at once until Backward.
std::int64_t expected_alive(const Case& c, int i) {
  std::int64_t ahead = c.p() - 1 - i;
  if (c.name == "gpipe") ahead = c.m();
  if (c.name == "interleaved") ahead = (c.v() - 1) * c.largest_group() + 2 * ahead;
  if (c.name == "zb-v") ahead = 2 * c.p() - 1;
  return std::min(c.v() * c.m(), ahead + 1);
}

bool is_stuck(const Pipeline& pipeline, const PlayOptions& options) {
  try {
    pipeline.play(options);
    return false;
  } catch (const Broken&) {
    return true;
  }
}

/// An action begins behind the one before it on its stage, and behind what it reads.
void expect_causes_before_effects(const Pipeline& pipeline, const std::vector<Spans>& played) {
  std::map<Action, double> ends;
  const auto& stages = pipeline.schedule().stages;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    for (std::size_t j = 0; j < stages[i].size(); ++j) ends[stages[i][j]] = played[i][j].end;
  }
  for (std::size_t i = 0; i < stages.size(); ++i) {
    double clock = 0;
    for (std::size_t j = 0; j < stages[i].size(); ++j) {
      const auto& [region, chunk, k] = stages[i][j];
      const double begin = played[i][j].begin;
      ASSERT_GE(begin, clock);
      clock = played[i][j].end;
      if (region == Forward && chunk > 0) {
        ASSERT_LE((ends[{Forward, chunk - 1, k}]), begin);
      }
      if (region == Backward) {
        ASSERT_LE((ends[{Forward, chunk, k}]), begin);
      }
      if (region == Backward && chunk + 1 < pipeline.chunks()) {
        ASSERT_LE((ends[{Backward, chunk + 1, k}]), begin);
      }
      if (region == Weights) {
        ASSERT_LE((ends[{Backward, chunk, k}]), begin);
      }
    }
  }
}

/// A ring of `slots` for the results of a chunk's forwards: is one overwritten before its last
/// reader?
bool overwritten(const Pipeline& pipeline, int chunk, std::int64_t slots) {
  std::set<std::int64_t> taken;
  for (const Action& action : pipeline.schedule().stages[at(pipeline.stage_of(chunk))]) {
    if (action.chunk != chunk) continue;
    if (action.region == Forward && !taken.insert(action.microbatch % slots).second) return true;
    if (action.region == pipeline.schedule().last()) taken.erase(action.microbatch % slots);
  }
  return false;
}

/// The planner judges schedules by these columns alone.
TEST(Schedules, ColumnsSayWhatSchedulesDo) {
  for (const ScheduleDef& def : schedules()) {
    SCOPED_TRACE(std::string(def.name));
    const PipelineSize size{4, def.least_chunks, 12};
    const Schedule made = make_schedule(def.name, size);
    EXPECT_EQ(made.splits, def.splits_backward);
    const std::int64_t alive = Pipeline(made).in_flight(0);
    EXPECT_EQ(alive == size.microbatches * def.least_chunks, def.keeps_all) << alive;
    if (def.dominated_by.empty()) continue;
    const ScheduleDef& better = find_schedule(def.dominated_by);
    EXPECT_TRUE(better.dominated_by.empty());
    const Pipeline worse_one(made), better_one(make_schedule(better.name, size));
    EXPECT_LE(makespan(better_one.play()), makespan(worse_one.play()));
    for (int stage = 0; stage < size.stages; ++stage)
      EXPECT_LE(better_one.in_flight(stage), worse_one.in_flight(stage));
  }
  EXPECT_EQ(simplest_schedule(false).name, kUsualSchedule);
  EXPECT_TRUE(simplest_schedule(true).splits_backward);
}

TEST(Schedules, TakeTheTimeOfTheirFormulas) {
  for (const Case& c : cases(5)) {
    SCOPED_TRACE(c.text());
    const Pipeline pipeline(make_schedule(c.name, c.size));
    const std::vector<Spans> played = pipeline.play();
    expect_causes_before_effects(pipeline, played);
    const double time = makespan(played);
    if (const auto expected = expected_time(c)) {
      EXPECT_EQ(time, *expected);
    } else {
      const auto p = static_cast<double>(c.p()), m = static_cast<double>(c.m());
      EXPECT_GE(time, 6 * m + p - 1);
      EXPECT_LE(time, std::max(6 * m + p - 1, 4 * m + 4 * p - 2));
    }
  }
}

TEST(Schedules, HoldAsManyResultsAsTheirFormulas) {
  for (const Case& c : cases(5)) {
    SCOPED_TRACE(c.text());
    const Pipeline pipeline(make_schedule(c.name, c.size));
    for (int i = 0; i < c.p(); ++i) {
      if (c.sparse()) {
        EXPECT_LE(pipeline.in_flight(i), 2 * c.p());
        continue;
      }
      EXPECT_EQ(pipeline.in_flight(i, Backward), expected_alive(c, i)) << "stage " << i;
      const std::int64_t until_last =
          c.name == "zb-h1" ? std::min<std::int64_t>(c.p(), c.m()) : expected_alive(c, i);
      EXPECT_EQ(pipeline.in_flight(i), until_last) << "stage " << i;
    }
  }
}

TEST(Schedules, NeedAsManySlotsAsAreAliveAndNoFewer) {
  for (const Case& c : cases(4)) {
    SCOPED_TRACE(c.text());
    const Pipeline pipeline(make_schedule(c.name, c.size));
    const double time = makespan(pipeline.play());
    for (int chunk = 0; chunk < pipeline.chunks(); ++chunk) {
      const std::int64_t slots = pipeline.alive(chunk, Forward, pipeline.schedule().last());
      EXPECT_FALSE(overwritten(pipeline, chunk, slots)) << "chunk " << chunk;
      if (slots > 1) {
        EXPECT_TRUE(overwritten(pipeline, chunk, slots - 1)) << "chunk " << chunk;
      }
    }
    // Groups that are larger than the number of stages need as many slots more.
    const std::int64_t beyond =
        c.name == "interleaved" ? std::max<std::int64_t>(0, c.largest_group() - c.p()) : 0;
    PlayOptions passing, holding;
    passing.send_slots = holding.send_slots = 1;
    passing.slots.assign(pipeline.edges().size(), 1 + beyond);
    holding.hold = true;
    holding.slots = pipeline.held_slots();
    for (std::int64_t& slots : holding.slots) slots += beyond;
    EXPECT_EQ(makespan(pipeline.play(passing)), time);
    EXPECT_EQ(makespan(pipeline.play(holding)), time);
    if (beyond > 0) continue;
    holding.send_slots = 0;
    for (std::size_t edge = 0; edge < holding.slots.size(); ++edge) {
      if (holding.slots[edge] == 1) continue;
      PlayOptions fewer = holding;
      --fewer.slots[edge];
      EXPECT_TRUE(is_stuck(pipeline, fewer)) << "edge " << edge;
    }
  }
}

TEST(Schedules, BubblesAreThoseOfThePapers) {
  for (const int p : {2, 4, 8}) {
    for (const int times : {1, 2, 4, 8}) {
      const std::int64_t m = p * times;
      const auto ideal = [&](const std::string& name, int v) {
        return bubble(Pipeline(make_schedule(name, {p, v, m})).play());
      };
      const double lost = p - 1, of = static_cast<double>(m);
      EXPECT_NEAR(ideal("gpipe", 1), lost / (of + lost), 1e-12);
      EXPECT_NEAR(ideal("1f1b", 1), lost / (of + lost), 1e-12);
      EXPECT_NEAR(ideal("interleaved", 2), lost / (2 * of + lost), 1e-12);
      EXPECT_NEAR(ideal("interleaved", 3), lost / (3 * of + lost), 1e-12);
      EXPECT_NEAR(ideal("zb-h1", 1), lost / (3 * of + lost), 1e-12);
      if (m >= 2 * p - 1) {
        EXPECT_NEAR(ideal("zb-v", 2), lost / (6 * of + lost), 1e-12);
      }
    }
  }
}

/// Where sends take time and go on beside work, one more slot at both ends is as good as any
/// number.
TEST(Schedules, OneMoreSlotIsEnoughWhereSendsTakeTime) {
  for (const Case& c :
       {Case{"gpipe", {4, 1, 8}}, Case{"1f1b", {4, 1, 16}}, Case{"interleaved", {4, 2, 8}},
        Case{"zb-h1", {4, 1, 16}}, Case{"zb-v", {4, 2, 8}}, Case{"zb-v", {2, 2, 8}}}) {
    SCOPED_TRACE(c.text());
    const Pipeline pipeline(make_schedule(c.name, c.size));
    PlayOptions options;
    options.send = 0.25;
    const double time = makespan(pipeline.play(options));
    options.send_slots = 2;
    options.slots.assign(pipeline.edges().size(), 2);
    EXPECT_EQ(makespan(pipeline.play(options)), time);
    options.hold = true;
    options.slots = pipeline.held_slots();
    for (std::int64_t& slots : options.slots) ++slots;
    EXPECT_EQ(makespan(pipeline.play(options)), time);
  }
}

/// Every chunk may send to every later one, as an encoder does: with as many slots as the lower of
/// the two holds, nothing waits longer.
TEST(Schedules, SendToAnyLaterChunk) {
  for (const Case& c :
       {Case{"gpipe", {4, 1, 8}}, Case{"1f1b", {4, 1, 16}}, Case{"interleaved", {4, 2, 8}},
        Case{"zb-h1", {4, 1, 16}}, Case{"zb-v", {4, 2, 8}}}) {
    SCOPED_TRACE(c.text());
    const Schedule schedule = make_schedule(c.name, c.size);
    std::vector<std::pair<int, int>> skips;
    for (int b = 2; b < c.p() * c.v(); ++b) {
      for (int a = 0; a + 1 < b; ++a) skips.emplace_back(a, b);
    }
    const Pipeline pipeline(schedule), skipping(schedule, skips);
    const double time = makespan(pipeline.play());
    EXPECT_EQ(makespan(skipping.play()), time);
    PlayOptions options;
    options.send_slots = 1;
    for (const Edge& edge : skipping.edges())
      options.slots.push_back(skipping.alive(std::min(edge.giver, edge.taker), Forward, Backward));
    EXPECT_EQ(makespan(skipping.play(options)), time);
    options.slots.assign(skipping.edges().size(), 1);
    EXPECT_EQ(is_stuck(skipping, options), c.v() == 2);
  }
}

/// What every plan can do at least: receives ahead of the action that waits, one send under way.
TEST(Schedules, RunWithReceivesAheadAndOneSend) {
  for (const std::string& name : schedule_names()) {
    const ScheduleDef& def = find_schedule(name);
    const int most = def.most_chunks == 0 ? 3 : def.most_chunks;
    for (const int p : {1, 2, 3, 4, 8}) {
      for (int v = def.least_chunks; v <= most; ++v) {
        for (const int m : {1, 2, p, 2 * p, 4 * p + (name == "interleaved" ? 0 : 1)}) {
          if (name == "interleaved" && m % p != 0) continue;
          const Schedule schedule = make_schedule(name, {p, v, m});
          PlayOptions options;
          options.ahead = true;
          options.send_slots = 1;
          for (int reach = 2; reach <= p * v; ++reach) {
            SCOPED_TRACE(text(name, " p=", p, " v=", v, " m=", m, " reach=", reach));
            std::vector<std::pair<int, int>> skips;
            for (int a = 0; a + reach < p * v; ++a) skips.emplace_back(a, a + reach);
            EXPECT_FALSE(is_stuck(Pipeline(schedule, skips), options));
          }
        }
      }
    }
  }
}

TEST(Schedules, EdgesPastNeighboursAreSkips) {
  EXPECT_EQ(skips_of({{Forward, 0, 1}, {Forward, 0, 3}, {Backward, 3, 0}, {Backward, 2, 1}}),
            (std::vector<std::pair<int, int>>{{0, 3}}));
  const Schedule schedule = make_schedule("1f1b", {3, 1, 4});
  for (const auto& [a, b] : std::vector<std::pair<int, int>>{{-1, 1}, {1, 1}, {2, 0}, {0, 3}})
    EXPECT_THROW(Pipeline(schedule, {{a, b}}), Broken) << a << " " << b;
}

/// The second message of two may be on its way only once the second action before it has begun.
TEST(Schedules, MessagesTakeTimeByEdge) {
  const Pipeline pipeline(make_schedule("gpipe", {2, 1, 2}));
  ASSERT_EQ(pipeline.edges().size(), 2u);
  PlayOptions options;
  options.sends = {3, 5};  // forward, backward
  const auto played = pipeline.play(options);
  EXPECT_EQ(played[1][0].begin, 4);
  EXPECT_EQ(played[1][1].begin, 5);
  EXPECT_EQ(played[0][2].begin, played[1][2].end + 5);
  options.ahead = true;  // the second forward is received from 4 on
  EXPECT_EQ(pipeline.play(options)[1][1].begin, 7);
}

/// Megatron's order, by its own numbers.
TEST(Schedules, InterleavedIsMegatronsOrder) {
  for (const PipelineSize size : {PipelineSize{2, 2, 4}, {4, 2, 8}, {4, 3, 12}}) {
    const int p = size.stages, v = size.chunks;
    const Schedule schedule = make_schedule("interleaved", size);
    for (int i = 0; i < p; ++i) {
      std::int64_t forwards = 0, backwards = 0;
      for (const Action& action : schedule.stages[at(i)]) {
        const bool forward = action.region == Forward;
        const std::int64_t j = forward ? forwards++ : backwards++;
        const std::int64_t c = j % (p * v) / p, k = j / (p * v) * p + j % p;
        EXPECT_EQ(action.chunk, (forward ? c : v - 1 - c) * p + i);
        EXPECT_EQ(action.microbatch, k);
      }
    }
  }
}

TEST(Schedules, WrongListsAreRefused) {
  const auto reason = [](Schedule schedule) -> std::string {
    try {
      Pipeline(std::move(schedule)).play();
      return "";
    } catch (const Broken& broken) {
      return broken.what();
    }
  };
  const Schedule right = make_schedule("1f1b", {2, 1, 4}),
                 split = make_schedule("zb-h1", {2, 1, 4});
  EXPECT_EQ(reason(right), "");
  EXPECT_EQ(reason(split), "");
  Schedule lacks = right, twice = right, on_two = right, early = right, no_weights = right;
  lacks.stages[1].pop_back();
  twice.stages[0].push_back(twice.stages[0].back());
  on_two.stages[1].push_back(on_two.stages[0][0]);
  std::swap(early.stages[1][0], early.stages[1][1]);
  no_weights.splits = true;
  Schedule weights_early = split;
  std::swap(weights_early.stages[0][2], weights_early.stages[0][3]);
  const std::pair<Schedule, std::string_view> wrong[] = {
      {lacks, "3 actions backward of chunk 1 for 4 micro-batches"},
      {twice, "BW0.3 comes where 4 is the next micro-batch"},
      {on_two, "chunk 0 is on stages 0 and 1"},
      {early, "nothing can go on: stage 0 before BW0.0, stage 1 before BW1.0"},
      {no_weights, "0 actions weights of chunk 0 for 4 micro-batches"},
      {weights_early, "stage 0 before W0.0"},
  };
  for (const auto& [schedule, why] : wrong)
    EXPECT_NE(reason(schedule).find(why), std::string::npos)
        << reason(schedule) << "; not: " << why;
}

TEST(Schedules, SizesThatTheyDoNotAdmit) {
  const auto message = [](const std::string& name, const PipelineSize& size) -> std::string {
    try {
      make_schedule(name, size);
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::Usage);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message("1f2b", {2, 1, 4}),
            text("no pipeline schedule '1f2b'; schedules are ", join(schedule_names())));
  EXPECT_EQ(message("1f1b", {2, 2, 4}),
            "pipeline schedule '1f1b' has 1 virtual stage per stage, not 2");
  EXPECT_EQ(message("interleaved", {2, 1, 4}),
            "pipeline schedule 'interleaved' has at least 2 virtual stages per stage, not 1");
  EXPECT_EQ(message("zb-v", {2, 1, 4}),
            "pipeline schedule 'zb-v' has 2 virtual stages per stage, not 1");
  EXPECT_EQ(message("gpipe", {0, 1, 4}),
            "a pipeline of 0 stages and 4 micro-batches; both are at least 1");
}

std::string line(const Schedule& schedule, int stage) {
  std::string out;
  for (const Action& action : schedule.stages[at(stage)])
    out += (out.empty() ? "" : " ") + to_text(action, schedule);
  return out;
}

/// Where two orders take the same time, and hold as much, which one it is.
TEST(Schedules, OrdersOfZbV) {
  const struct {
    const char* why;
    PipelineSize size;
    std::vector<std::string> stages;
  } kCases[] = {
      {"a tie of both ways: by hand", {1, 2, 1}, {"F0.0 F1.0 B1.0 W1.0 B0.0 W0.0"}},
      {"Weights are taken from the chunk that is behind with them",
       {2, 2, 1},
       {"F0.0 F3.0 B3.0 W3.0 B0.0 W0.0", "F1.0 F2.0 B2.0 B1.0 W1.0 W2.0"}},
      {"greedy: what leaves the stage sooner comes first; of equal times the one whose stages are "
       "shorter at work",
       {3, 2, 4},
       {"F0.0 F0.1 F0.2 F0.3 F5.0 B5.0 F5.1 B5.1 W5.0 W5.1 B0.0 F5.2 B0.1 B5.2 W0.0 W0.1 F5.3 B5.3 "
        "B0.2 W0.2 W5.2 W5.3 B0.3 W0.3",
        "F1.0 F1.1 F1.2 F4.0 F1.3 F4.1 B4.0 W4.0 B4.1 B1.0 F4.2 B1.1 W1.0 W1.1 B4.2 F4.3 W4.1 B1.2 "
        "B4.3 W1.2 W4.2 B1.3 W1.3 W4.3",
        "F2.0 F3.0 F2.1 F3.1 F2.2 F3.2 B3.0 B2.0 B3.1 B2.1 W2.0 F2.3 W3.0 F3.3 B3.2 B2.2 W2.1 W3.1 "
        "B3.3 B2.3 W2.2 W3.2 W2.3 W3.3"}},
      {"by hand, with fewer micro-batches than its order has",
       {4, 2, 6},
       {"F0.0 F0.1 F0.2 F0.3 F0.4 F0.5 F7.0 B7.0 W7.0 F7.1 B7.1 W7.1 F7.2 B7.2 W7.2 F7.3 B7.3 W7.3 "
        "B0.0 W0.0 F7.4 B7.4 W7.4 B0.1 W0.1 F7.5 B7.5 W7.5 B0.2 W0.2 B0.3 W0.3 B0.4 W0.4 B0.5 W0.5",
        "F1.0 F1.1 F1.2 F1.3 F1.4 F6.0 F1.5 F6.1 B6.0 W6.0 F6.2 B6.1 W6.1 F6.3 B6.2 W6.2 B1.0 W1.0 "
        "F6.4 B6.3 W6.3 B1.1 W1.1 F6.5 B6.4 W6.4 B1.2 W1.2 B6.5 W6.5 B1.3 B1.4 W1.3 B1.5 W1.4 W1.5",
        "F2.0 F2.1 F2.2 F5.0 F2.3 F5.1 F2.4 F5.2 B5.0 W5.0 F5.3 B5.1 W5.1 F2.5 B2.0 W2.0 F5.4 B5.2 "
        "W5.2 B2.1 W2.1 F5.5 B5.3 W5.3 B2.2 W2.2 B5.4 W5.4 B2.3 B5.5 B2.4 B2.5 W2.3 W2.4 W5.5 W2.5",
        "F3.0 F4.0 F3.1 F4.1 F3.2 F4.2 F3.3 F4.3 B4.0 W4.0 F3.4 B3.0 W3.0 F4.4 B4.1 W4.1 F3.5 B3.1 "
        "W3.1 F4.5 B4.2 W4.2 B3.2 W3.2 B4.3 W4.3 B3.3 B4.4 B3.4 B4.5 B3.5 W3.3 W4.4 W4.5 W3.4 "
        "W3.5"}},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.why);
    const Schedule schedule = make_schedule("zb-v", c.size);
    for (int i = 0; i < c.size.stages; ++i) EXPECT_EQ(line(schedule, i), c.stages[at(i)]);
  }
}

/// Three stages and one micro-batch: it is sent four times, and nothing else goes on.
TEST(Schedules, SendsTakeTheirTime) {
  PlayOptions options;
  options.send = 0.25;
  EXPECT_EQ(makespan(Pipeline(make_schedule("1f1b", {3, 1, 1})).play(options)), 3 * 3 + 4 * 0.25);
}

TEST(Schedules, HaveATextForm) {
  const Schedule one = make_schedule("1f1b", {2, 1, 2}), split = make_schedule("zb-h1", {2, 1, 2});
  EXPECT_EQ(line(one, 0), "F0.0 F0.1 BW0.0 BW0.1");
  EXPECT_EQ(line(one, 1), "F1.0 BW1.0 F1.1 BW1.1");
  EXPECT_EQ(line(split, 0), "F0.0 F0.1 B0.0 W0.0 B0.1 W0.1");
  EXPECT_EQ(line(split, 1), "F1.0 B1.0 F1.1 B1.1 W1.0 W1.1");
}

}  // namespace
}  // namespace tessera::test
