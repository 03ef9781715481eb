#include "tessera/report/bar_chart.h"

#include <algorithm>

#include "tessera/base/format.h"
#include "tessera/report/svg.h"

namespace tessera {

namespace {

// Lengths are pixels.
constexpr double kNames = 240, kBars = 460, kNumbers = 200, kBar = 18, kBarRow = 28, kFirstBar = 48;

constexpr const char* kBarStyle = R"(
  .bar { fill: #2a78c8; }
  .first { fill: #8a94a3; }
  .reach { stroke: #1d2530; stroke-width: 1.4; }
  .who { text-anchor: end; }
  .shown { font-size: 10.5px; text-anchor: start; }
  @media (prefers-color-scheme: dark) { .reach { stroke: #e8ecf1; } })";

}  // namespace

std::string bar_chart(const std::string& title, const std::vector<Bar>& all) {
  double most = 0;
  for (const Bar& bar : all)
    most = std::max({most, bar.value, bar.range ? bar.range->second : 0.0});
  if (most <= 0) return "";
  const auto x = [&](double value) { return kNames + 12 + value / most * kBars; };
  std::string out = svg::begin(kNames + kBars + kNumbers,
                               kFirstBar + kBarRow * std::ssize(all) + 12.0, title, kBarStyle);
  out += svg::written(24, 28, "title", title);
  double y = kFirstBar;
  for (const Bar& bar : all) {
    out += svg::written(kNames, y + 14, "who", bar.name);
    out += format("<rect class=\"%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.0f\"/>\n",
                  &bar == all.data() ? "first" : "bar", x(0), y, x(bar.value) - x(0), kBar);
    if (bar.range)
      out += format("<path class=\"reach\" d=\"M%.2f %.2fh%.2f\"/>\n", x(bar.range->first),
                    y + kBar / 2, x(bar.range->second) - x(bar.range->first));
    const double end = std::max(x(bar.value), bar.range ? x(bar.range->second) : 0.0);
    out += svg::written(end + 8, y + 14, "shown", bar.shown);
    y += kBarRow;
  }
  return out + "</svg>\n";
}

}  // namespace tessera
