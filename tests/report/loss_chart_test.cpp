#include "tessera/report/loss_chart.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/train/metrics.h"
#include "train/elements_of.h"

namespace tessera {
namespace {

/// The points of the n-th curve, in pixels.
std::vector<std::pair<double, double>> points_of(const std::string& svg, std::size_t n) {
  std::size_t at = 0;
  for (std::size_t i = 0; i <= n; ++i) at = svg.find("class=\"curve\"", at + 1);
  at = svg.find(" d=\"", at) + 5;
  std::string path = svg.substr(at, svg.find('"', at) - at);
  std::ranges::replace(path, 'M', ' ');
  std::ranges::replace(path, 'L', ' ');
  std::istringstream in(path);
  std::vector<std::pair<double, double>> out;
  double x = 0, y = 0;
  while (in >> x >> y) out.emplace_back(x, y);
  return out;
}

TEST(LossChart, DrawsEveryLossAtItsStep) {
  const std::string svg = loss_chart({{"a<&b", {{1, 4.0}, {2, 3.0}, {4, 2.0}}, {{4, 2.5}}}});
  EXPECT_FALSE(elements_of(svg).empty()) << "well-formed";
  const auto points = points_of(svg, 0);
  ASSERT_EQ(points.size(), 3u);
  EXPECT_NEAR(points[2].first - points[1].first, 2 * (points[1].first - points[0].first), 0.02);
  EXPECT_NEAR(points[1].second - points[0].second, points[2].second - points[1].second, 0.02);
  EXPECT_LT(points[0].second, points[2].second) << "the higher loss is higher on the page";
  EXPECT_EQ(points_of(svg, 1).size(), 1u) << "validation";
  EXPECT_NE(svg.find("a&lt;&amp;b: training 2 in the last step, validation (dots) 2.5 at the end"),
            std::string::npos);
}

TEST(LossChart, ALongRunIsDrawnByMeansOfNeighbours) {
  LossPoints points;
  for (int i = 1; i <= 100'000; ++i) points.emplace_back(i, i % 2 == 0 ? 1.0 : 3.0);
  const std::string svg = loss_chart({{"long", points, {}}, {"steep", {{1, 0.0}, {2, 4.0}}, {}}});
  EXPECT_LT(svg.size(), 30'000u);
  const auto drawn = points_of(svg, 0);
  ASSERT_GT(drawn.size(), 500u);
  for (const auto& [x, y] : drawn) EXPECT_NEAR(y, drawn[0].second, 2) << "all means are about 2";
  EXPECT_NE(svg.find("long: training 1 in the last step"), std::string::npos) << "and no mean";
}

TEST(LossChart, LossesThatAreAllAlikeAreDrawn) {
  const std::string svg = loss_chart({{"flat", {{1, 2.0}, {2, 2.0}}, {}}});
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(LossChart, OneStepIsADot) {
  const std::string svg = loss_chart({{"one", {{1, 2.0}}, {}}});
  EXPECT_NE(svg.find("<circle cx=\"790.00\" cy=\"230.00\""), std::string::npos) << svg;
}

/// What XML may not hold, and bytes that are no text.
TEST(LossChart, NamesOfAnyBytes) {
  const std::string svg = loss_chart({{"a\x01\x7f\xff\u00e9", {{1, 2.0}}, {}}});
  EXPECT_FALSE(elements_of(svg).empty()) << "well-formed";
  EXPECT_NE(svg.find(">a\uFFFD\uFFFD\uFFFD\u00e9: training 2"), std::string::npos) << svg;
}

TEST(LossChart, ReadsTheMetricsOfARun) {
  const std::string folder = testing::TempDir() + "chart";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/metrics.jsonl")
      << R"({"kind":"train","step":1,"loss":2.5,"lr":1})"
      << "\n"
      << R"({"kind":"train","step":2,"loss":null,"skipped":true})"
      << "\n"
      << R"({"kind":"valid","step":2,"loss":2.25})"
      << "\n"
      << R"({"kind":"train","step":3,"loss":-1e101})"
      << "\n{\"kind\":\"tr";
  const LossCurve curve = read_losses(folder);
  EXPECT_EQ(curve.train, (LossPoints{{1, 2.5}}));
  EXPECT_EQ(curve.valid, (LossPoints{{2, 2.25}}));
  std::filesystem::remove_all(folder);
  try {
    read_losses(folder);
    FAIL() << "read";
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), "'" + folder +
                                "' has no metrics.jsonl; give the folder of a run, the --output of "
                                "tessera train");
  }
}

}  // namespace
}  // namespace tessera
