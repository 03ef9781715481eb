/// What is told of a pipeline: read back by a reader that knows nothing of schedules, and beside
/// the formulas of the papers.

#include "tessera/report/pipeline_report.h"

#include <gtest/gtest.h>

#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "tessera/base/index.h"
#include "tessera/base/text.h"
#include "tessera/report/json/reports.h"
#include "tessera/report/schedule_svg.h"
#include "train/elements_of.h"

namespace tessera {
namespace {

struct ToldAction {
  std::string kind;
  int chunk = 0;
  std::int64_t microbatch = 0;
};

ToldAction read_action(const std::string& word) {
  static const std::regex kForm("(F|B|W|BW)([0-9]+)\\.([0-9]+)");
  std::smatch parts;
  EXPECT_TRUE(std::regex_match(word, parts, kForm)) << word;
  return {parts[1], std::stoi(parts[2]), std::stoll(parts[3])};
}

/// Plays the actions of "pipeline" as they are told, each for a unit of time, BW for two.
struct Replay {
  double bubble = 0;
  std::vector<std::int64_t> alive;  // by stage: forwards whose last gradient has not come yet
  std::size_t done = 0;             // kinds, chunks and micro-batches, each once

  Replay(const nlohmann::json& told, int chunks) {
    using What = std::tuple<char, int, std::int64_t>;
    std::vector<std::vector<ToldAction>> stages;
    for (const auto& words : told["actions"]) {
      auto& actions = stages.emplace_back();
      for (const auto& word : words) actions.push_back(read_action(word));
    }
    std::map<What, double> ends;
    std::vector<std::size_t> next(stages.size(), 0);
    std::vector<double> clock(stages.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t i = 0; i < stages.size(); ++i) {
        for (; next[i] < stages[i].size(); ++next[i], moved = true) {
          const auto& [kind, c, b] = stages[i][next[i]];
          std::vector<What> needs;
          if (kind == "F" && c > 0) needs.push_back({'F', c - 1, b});
          if (kind[0] == 'B') needs.push_back({'F', c, b});
          if (kind[0] == 'B' && c + 1 < chunks) needs.push_back({'B', c + 1, b});
          if (kind == "W") needs.push_back({'B', c, b});
          double begin = clock[i];
          bool ready = true;
          for (const What& need : needs) {
            const auto found = ends.find(need);
            ready = ready && found != ends.end();
            if (ready) begin = std::max(begin, found->second);
          }
          if (!ready) break;
          clock[i] = begin + static_cast<double>(kind.size());
          for (const char k : kind) ends[{k, c, b}] = clock[i];
        }
      }
    }
    done = ends.size();
    double busy = 0;
    for (const auto& actions : stages) {
      std::map<std::pair<int, std::int64_t>, std::size_t> last;
      for (std::size_t j = 0; j < actions.size(); ++j) {
        last[{actions[j].chunk, actions[j].microbatch}] = j;
        busy += static_cast<double>(actions[j].kind.size());
      }
      std::int64_t now = 0, most = 0;
      for (std::size_t j = 0; j < actions.size(); ++j) {
        if (actions[j].kind == "F") most = std::max(most, ++now);
        if (last[{actions[j].chunk, actions[j].microbatch}] == j) --now;
      }
      alive.push_back(most);
    }
    const double span = *std::max_element(clock.begin(), clock.end());
    bubble = 1 - busy / (span * static_cast<double>(stages.size()));
  }
};

nlohmann::ordered_json json_of(const PipelineReport& report) {
  nlohmann::ordered_json out;
  add_to(out, report);
  return out["pipeline"];
}

TEST(PipelineReport, ActionsReplayToWhatIsSaidOfThem) {
  for (const int p : {2, 4, 8}) {
    for (const int times : {1, 2, 4, 8}) {
      const std::int64_t m = p * times;
      struct Row {
        const char* schedule;
        int chunks;
        double times_microbatches;  // bubble = (p-1) / (that x m + p-1)
      };
      for (const Row& row : {Row{"gpipe", 1, 1}, Row{"1f1b", 1, 1}, Row{"interleaved", 2, 2},
                             Row{"interleaved", 3, 3}, Row{"zb-h1", 1, 3}, Row{"zb-v", 2, 6}}) {
        const std::string name = row.schedule;
        SCOPED_TRACE(text(name, " p=", p, " v=", row.chunks, " m=", m));
        const Pipeline pipeline(make_schedule(name, {p, row.chunks, m}));
        const nlohmann::json told = json_of(report_of(name, pipeline));
        EXPECT_EQ(told["schedule"], name);
        EXPECT_EQ(told["stages"], p);
        EXPECT_EQ(told["micro_batches"], m);
        const Replay replay(told, p * row.chunks);
        EXPECT_EQ(replay.done, at(3 * p * row.chunks * m));
        EXPECT_NEAR(told["bubble_ideal"].get<double>(), replay.bubble, 1e-12);
        EXPECT_EQ(told["bubble"], told["bubble_ideal"]) << "nothing is priced";
        EXPECT_EQ(told["in_flight"], replay.alive);
        if (name != "zb-v" || m >= 2 * p) {
          EXPECT_NEAR(replay.bubble,
                      (p - 1) / (row.times_microbatches * static_cast<double>(m) + p - 1), 1e-12);
        }
        for (int i = 0; i < p; ++i) {
          const std::int64_t most = name == "gpipe"         ? m
                                    : name == "1f1b"        ? std::min<std::int64_t>(m, p - i)
                                    : name == "interleaved" ? row.chunks * m
                                    : name == "zb-h1"       ? std::min<std::int64_t>(m, p)
                                                            : 2 * p;
          EXPECT_LE(replay.alive[at(i)], most) << "stage " << i;
        }
      }
    }
  }
}

Pipeline one_f_one_b() { return Pipeline(make_schedule("1f1b", {2, 1, 3})); }

/// The second stage takes twice as long, and a message half a unit.
TEST(PipelineReport, BubblesCanBePriced) {
  PipelineFacts facts;
  facts.prices.cost = [](const Action& action) {
    return (action.region == RegionKind::Forward ? 1.0 : 2.0) * (1 + action.chunk);
  };
  facts.prices.send = 0.5;
  const PipelineReport report = report_of("1f1b", one_f_one_b(), facts);
  // F0 takes 1, and a message; three times 6; a message, and the last backward of stage 0.
  EXPECT_NEAR(report.makespan, 1.5 + 18 + 2.5, 1e-12);
  EXPECT_NEAR(report.bubble, 1 - (9 + 18) / (2 * 22.0), 1e-12);
  EXPECT_NEAR(report.bubble_ideal, 1.0 / 4, 1e-12);
}

TEST(PipelineReport, TellsBlocksAndMemoryWhereTheyAreKnown) {
  PipelineFacts facts;
  facts.cut = {{"embed", 0},    {"layers.0", 0}, {"layers.1", 0}, {"layers.2", 0},
               {"layers.3", 1}, {"layers.4", 1}, {"norm", 1},     {"head", 1}};
  facts.stages.resize(2);
  facts.stages[0].rank = {3 << 20, 3 << 19, 2e6, {{"pp", 100}}};
  facts.stages[1].rank = {5 << 19, 5 << 18, 3e6, {{"pp", 100}, {"tp", 7}}};
  facts.stages[1].state_bytes = 640;
  facts.stages[1].memory.activations = 320;
  facts.prices.send = 1;
  const PipelineReport report = report_of("1f1b", one_f_one_b(), facts);
  EXPECT_EQ(to_text(report),
            "pipeline              1f1b: 2 stages, 1 chunk on each, 3 micro-batches\n"
            "  stage  in flight  planned peak   chunks\n"
            "      0          2      3.00 MiB   0: embed, layers.0 ... layers.2\n"
            "      1          1      2.50 MiB   1: layers.3, layers.4, norm, head\n"
            "  bubble                      43.8 %   of a step, as priced\n"
            "  bubble, ideal               25.0 %   if F, B and W of a chunk took the same time, "
            "sends none\n");
  const nlohmann::json json = json_of(report);
  EXPECT_EQ(json["planned_peak_bytes"], (std::vector<std::int64_t>{3 << 20, 5 << 19}));
  EXPECT_EQ(json["lower_bound_bytes"].dump(), "[1572864,1310720]");
  EXPECT_EQ(json["state_bytes"].dump(), "[0,640]");
  EXPECT_EQ(json["memory"][1]["activations"], 320);
  EXPECT_EQ(json["sent_bytes_per_step"].dump(), R"([{"pp":100},{"pp":100,"tp":7}])");
  EXPECT_EQ(json["flops_per_step"][1], 3e6);
  EXPECT_EQ(json["chunks"][1].dump(),
            R"({"blocks":["layers.3","layers.4","norm","head"],"chunk":1,"stage":1})");
  EXPECT_EQ(json["actions"][1].dump(), R"(["F1.0","BW1.0","F1.1","BW1.1","F1.2","BW1.2"])");

  const PipelineReport bare = report_of("zb-v", Pipeline(make_schedule("zb-v", {2, 2, 1})));
  EXPECT_EQ(to_text(bare),
            "pipeline              zb-v: 2 stages, 2 chunks on each, 1 micro-batch\n"
            "  stage  in flight   chunks\n"
            "      0          2   0; 3\n"
            "      1          2   1; 2\n"
            "  bubble, ideal               33.3 %   if F, B and W of a chunk took the same time, "
            "sends none\n"
            "  fewer micro-batches than stages: some always wait; lower --micro-batch-size\n");
  EXPECT_FALSE(json_of(bare).contains("planned_peak_bytes"));
}

struct DrawnBox {
  std::string kind, what;
  double x, y, width;
};

std::vector<DrawnBox> boxes_of(const std::string& svg) {
  std::vector<DrawnBox> out;
  static const std::regex kBox(
      R"re(class="box ([a-z]+)" x="([0-9.]+)" y="([0-9.]+)" width="([0-9.]+)"[^>]*><title>([^:]+):)re");
  for (std::sregex_iterator box(svg.begin(), svg.end(), kBox), end; box != end; ++box)
    out.push_back(
        {(*box)[1], (*box)[5], std::stod((*box)[2]), std::stod((*box)[3]), std::stod((*box)[4])});
  return out;
}

TEST(ScheduleSvg, HasABoxForEveryActionWhereItIsPlayed) {
  for (const std::string& name : schedule_names()) {
    SCOPED_TRACE(name);
    const Schedule schedule = make_schedule(name, {3, find_schedule(name).least_chunks, 7});
    const Pipeline pipeline(schedule);
    const std::string svg = schedule_svg(name, pipeline);
    EXPECT_FALSE(elements_of(svg).empty()) << "well-formed";
    const std::vector<DrawnBox> boxes = boxes_of(svg);
    const std::vector<Spans> played = pipeline.play();
    std::size_t n = 0;
    double left = 0, scale = 0, y = 0;
    for (std::size_t i = 0; i < played.size(); ++i) {
      for (std::size_t j = 0; j < played[i].size(); ++j, ++n) {
        ASSERT_LT(n, boxes.size());
        const Span& span = played[i][j];
        if (n == 0) left = boxes[n].x, scale = boxes[n].width / span.end;
        EXPECT_EQ(boxes[n].what, to_text(schedule.stages[i][j], schedule));
        EXPECT_NEAR(boxes[n].x, left + scale * span.begin, 0.5);
        EXPECT_NEAR(boxes[n].width, scale * (span.end - span.begin), 0.02);
        EXPECT_GE(boxes[n].y, y) << "a row for each stage";
        y = boxes[n].y;
        const char kind = boxes[n].what[0];
        EXPECT_EQ(boxes[n].kind, kind == 'F' ? "forward" : kind == 'B' ? "backward" : "weights");
      }
    }
    EXPECT_EQ(n, boxes.size());
    EXPECT_EQ(svg.find("backward: weights") != std::string::npos, schedule.splits);
    EXPECT_EQ(svg.find("first chunk of a stage") != std::string::npos,
              find_schedule(name).least_chunks > 1);
    EXPECT_EQ(svg.find("http", svg.find("2000/svg")), std::string::npos) << "nothing is fetched";
  }
}

TEST(ScheduleSvg, TimeHasAUnit) {
  const auto drawn = [](double seconds) {
    PlayOptions prices;
    prices.cost = [=](const Action&) { return seconds; };
    return schedule_svg("1f1b", one_f_one_b(), prices, TimeUnit::Seconds);
  };
  // Four forwards and four backwards, one behind the other.
  EXPECT_NE(drawn(0.5).find(">BW0.2: 3.5 to 4 s<"), std::string::npos) << drawn(0.5);
  EXPECT_NE(drawn(5e-3).find(">BW0.2: 35 to 40 ms<"), std::string::npos);
  EXPECT_NE(drawn(5e-7).find(">BW0.2: 3.5 to 4 us<"), std::string::npos);
  EXPECT_NE(drawn(0.5).find(">1f1b: 2 stages, 3 micro-batches, bubble 25.0 %<"), std::string::npos);
  EXPECT_NE(schedule_svg("1f1b", one_f_one_b()).find(">units of time<"), std::string::npos);
  EXPECT_FALSE(elements_of(schedule_svg("<&\">", one_f_one_b())).empty()) << "names are escaped";
  EXPECT_FALSE(elements_of(drawn(0)).empty());
}

/// Of many micro-batches the picture grows to a bound, and boxes lose their numbers.
TEST(ScheduleSvg, NumbersAreWrittenWhereTheyFit) {
  const auto numbers = [](std::int64_t microbatches) {
    const std::string svg =
        schedule_svg("1f1b", Pipeline(make_schedule("1f1b", {4, 1, microbatches})));
    const std::regex number("class=\"number\"");
    return std::distance(std::sregex_iterator(svg.begin(), svg.end(), number),
                         std::sregex_iterator());
  };
  EXPECT_EQ(numbers(8), 2 * 4 * 8);
  EXPECT_EQ(numbers(4000), 0);
}

}  // namespace
}  // namespace tessera
