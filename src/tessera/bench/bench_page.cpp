/// The report as a page that a browser shows by itself.

#include <algorithm>
#include <cmath>

#include "tessera/base/format.h"
#include "tessera/base/text.h"
#include "tessera/bench/bench_report.h"
#include "tessera/bench/notes.h"
#include "tessera/train/loss_chart.h"
#include "tessera/train/svg.h"

namespace tessera {

namespace {

// Lengths are pixels.
constexpr double kNames = 240, kBars = 460, kNumbers = 200, kBar = 18, kRow = 28, kTop = 48;

constexpr const char* kBarStyle = R"(
  .bar { fill: #2a78c8; }
  .first { fill: #8a94a3; }
  .reach { stroke: #1d2530; stroke-width: 1.4; }
  .who { text-anchor: end; }
  @media (prefers-color-scheme: dark) { .reach { stroke: #e8ecf1; } })";

constexpr const char* kPageStyle = R"(
  body { font-family: system-ui, "DejaVu Sans", sans-serif; margin: 2em auto; max-width: 70em;
         padding: 0 1em; background: #ffffff; color: #1d2530; }
  p { margin: 0.3em 0; }
  .wide { overflow-x: auto; }
  table { border-collapse: collapse; font-size: 14px; }
  th, td { padding: 0.35em 0.8em; text-align: right; border-bottom: 1px solid #8a94a355; }
  th:first-child, td:first-child { text-align: left; }
  svg { display: block; margin: 1.5em 0; max-width: 100%; height: auto; }
  @media (prefers-color-scheme: dark) { body { background: #14181e; color: #e8ecf1; } })";

/// A length with a name, and the range that it was in, if there is one.
struct Bar {
  std::string name, told;
  double value = 0;
  std::optional<Range> range;
};

/// Bars below each other; the first has another colour.
std::string bars(const std::string& title, const std::vector<Bar>& all) {
  double most = 0;
  for (const Bar& bar : all) most = std::max({most, bar.value, bar.range ? bar.range->high : 0.0});
  if (most <= 0) return "";
  const auto x = [&](double value) { return kNames + 12 + value / most * kBars; };
  std::string out =
      svg::begin(kNames + kBars + kNumbers, kTop + kRow * std::ssize(all) + 12.0, title, kBarStyle);
  out += svg::written(24, 28, "title", title);
  double y = kTop;
  for (const Bar& bar : all) {
    out += svg::written(kNames, y + 14, "who", bar.name);
    out += format("<rect class=\"%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.0f\"/>\n",
                  &bar == all.data() ? "first" : "bar", x(0), y, x(bar.value) - x(0), kBar);
    if (bar.range)
      out += format("<path class=\"reach\" d=\"M%.2f %.2fh%.2f\"/>\n", x(bar.range->low),
                    y + kBar / 2, x(bar.range->high) - x(bar.range->low));
    const double end = std::max(x(bar.value), bar.range ? x(bar.range->high) : 0.0);
    out += svg::written(end + 8, y + 14, "number", bar.told);
    y += kRow;
  }
  return out + "</svg>\n";
}

std::string speed_chart(const BenchReport& report) {
  std::vector<Bar> all;
  for (const Standing& s : report.results) {
    if (!s.samples_per_s) continue;
    const double batch = *s.samples_per_s * *s.step_seconds;
    all.push_back(
        {s.name,
         text(format("%.4g", *s.samples_per_s), s.ratio ? format("  (%.2f)", *s.ratio) : ""),
         *s.samples_per_s, Range{batch / s.step_range.high, batch / s.step_range.low}});
  }
  return bars(
      "Samples per second: median of all steps, and their range (and divided by that of plain)",
      all);
}

std::string memory_chart(const BenchReport& report) {
  std::vector<Bar> all;
  for (const Standing& s : report.results) {
    const std::int64_t bytes = s.peak_bytes > 0 ? s.peak_bytes : s.planned_bytes;
    if (bytes == 0) continue;
    all.push_back({s.name,
                   text(bytes_text(bytes), s.peak_bytes > 0 ? "" : " planned",
                        s.memory_ratio ? format("  (%.2f)", *s.memory_ratio) : ""),
                   static_cast<double>(bytes),
                   {}});
  }
  return bars("Memory of a device, at its fullest moment (and divided by that of plain)", all);
}

/// A curve for each result that has losses, of value(standing, step).
template <typename Value>
std::string curves_chart(const std::vector<Standing>& results, const std::string& title,
                         const Value& value) {
  std::vector<LossCurve> curves;
  for (const Standing& s : results) {
    LossCurve curve{s.name, {}, {}};
    for (std::size_t i = 0; i < s.losses.size(); ++i) {
      const double loss = value(s, i);
      if (std::abs(loss) <= 1e100) curve.train.emplace_back(static_cast<std::int64_t>(i) + 1, loss);
    }
    if (!curve.train.empty()) curves.push_back(std::move(curve));
  }
  return curves.empty() ? "" : loss_chart(curves, title);
}

std::string losses_chart(const BenchReport& report) {
  return curves_chart(report.results, "Loss against steps",
                      [](const Standing& s, std::size_t i) { return s.losses[i]; });
}

/// Where curves lie upon each other, what is between them.
std::string differences_chart(const BenchReport& report) {
  const std::vector<double>& plain = report.results.front().losses;
  std::vector<Standing> others;
  for (std::size_t r = 1; r < report.results.size(); ++r) {
    if (report.results[r].distance) others.push_back(report.results[r]);
  }
  return curves_chart(others, "Loss minus that of plain, against steps",
                      [&](const Standing& s, std::size_t i) { return s.losses[i] - plain[i]; });
}

std::string html_table(const BenchReport& report) {
  std::string out = "<div class=\"wide\"><table>\n";
  bool head = true;
  for (const std::vector<std::string>& row : table(report)) {
    const char* cell = head ? "th" : "td";
    out += "<tr>";
    for (const std::string& what : row)
      out += text("<", cell, ">", svg::escaped(what), "</", cell, ">");
    out += "</tr>\n";
    head = false;
  }
  return out + "</table></div>\n";
}

}  // namespace

std::string to_html(const BenchReport& report) {
  const std::string title = text("tessera bench: ", report.model);
  std::string out = text("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
                         "<meta name=\"viewport\" content=\"width=device-width\">\n<title>",
                         svg::escaped(title), "</title>\n<style>", kPageStyle,
                         "</style>\n</head>\n<body>\n<h1>", svg::escaped(title), "</h1>\n");
  for (const std::string& line : heading(report)) out += text("<p>", svg::escaped(line), "</p>\n");
  out += html_table(report);
  for (const std::string& note : notes(report)) out += text("<p>", svg::escaped(note), "</p>\n");
  return out + speed_chart(report) + memory_chart(report) + losses_chart(report) +
         differences_chart(report) + "</body>\n</html>\n";
}

}  // namespace tessera
