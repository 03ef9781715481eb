/// The report as a page that a browser shows by itself.

#include <cmath>
#include <utility>

#include "tessera/base/format.h"
#include "tessera/base/text.h"
#include "tessera/bench/bench_remarks.h"
#include "tessera/bench/bench_report.h"
#include "tessera/report/bar_chart.h"
#include "tessera/report/loss_chart.h"
#include "tessera/report/page.h"

namespace tessera {

namespace {

std::string speed_chart(const BenchReport& report) {
  std::vector<Bar> all;
  for (const Standing& s : report.results) {
    if (!s.samples_per_s) continue;
    const double batch = *s.samples_per_s * *s.step_seconds;
    all.push_back(
        {s.name,
         text(format("%.4g", *s.samples_per_s), s.ratio ? format("  (%.2f)", *s.ratio) : ""),
         *s.samples_per_s, std::pair(batch / s.step_range.high, batch / s.step_range.low)});
  }
  return bar_chart(
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
  return bar_chart("Memory of a device, at its fullest moment (and divided by that of plain)", all);
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

}  // namespace

std::string to_html(const BenchReport& report) {
  std::string out = page::begin(text("tessera bench: ", report.model));
  for (const std::string& line : heading(report)) out += page::paragraph(line);
  out += page::table(table(report));
  for (const std::string& note : notes(report)) out += page::paragraph(note);
  return out + speed_chart(report) + memory_chart(report) + losses_chart(report) +
         differences_chart(report) + page::end();
}

}  // namespace tessera
