#include "tessera/bench/bench_remarks.h"

#include <algorithm>

#include "tessera/base/format.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

constexpr const char* kNothing = "-";
constexpr double kBusy = 0.05;  // of the cores: what others take of them

/// Four digits that matter, or all before the point.
std::string digits(double value) { return format(value >= 1000 ? "%.0f" : "%.4g", value); }

std::string mib(std::int64_t bytes) {
  return bytes == 0 ? kNothing : format("%.0f", static_cast<double>(bytes) / (1 << 20));
}

std::string between(const std::string& middle, const std::string& low, const std::string& high) {
  return text(middle, " (", low, " to ", high, ")");
}

std::string ratio_text(const Standing& s) {
  if (!s.ratio_range) return kNothing;
  const std::string low = format("%.2f", s.ratio_range->low),
                    high = format("%.2f", s.ratio_range->high);
  if (s.ratio && s.turns == 1) return format("%.2f", *s.ratio);  // a range of one says nothing
  return s.ratio ? between(format("%.2f", *s.ratio), low, high)
                 : text("disagree (", low, " to ", high, ")");
}

std::vector<std::string> row(const Standing& s, bool several, bool peaks) {
  std::vector<std::string> out = {
      s.name,
      s.step_seconds
          ? between(digits(*s.step_seconds), digits(s.step_range.low), digits(s.step_range.high))
          : kNothing,
      s.samples_per_s ? digits(*s.samples_per_s) : kNothing,
      s.tokens_per_s ? digits(*s.tokens_per_s) : kNothing};
  if (peaks) out.push_back(s.mfu ? format("%.1f %%", 100 * *s.mfu) : kNothing);
  if (several) out.push_back(ratio_text(s));
  out.push_back(mib(s.peak_bytes));
  out.push_back(mib(s.planned_bytes));
  if (several) {
    out.push_back(s.memory_ratio ? format("%.3f", *s.memory_ratio) : kNothing);
    out.push_back(s.distance ? text(format("%.2g", s.distance->mean), ", ",
                                    format("%.2g", s.distance->largest), ", ",
                                    format("%.2g", s.distance->relative))
                             : kNothing);
  }
  out.push_back(s.losses.empty() ? kNothing
                                 : text(format("%.4f", s.losses.front()), " to ",
                                        format("%.4f", s.losses.back())));
  return out;
}

}  // namespace

std::vector<std::string> heading(const BenchReport& report) {
  const Standing& plain = report.results.front();
  const auto several = [](std::int64_t count, const char* what) {
    return text(grouped(count), " ", what, count == 1 ? "" : "s");
  };
  const bool reversed = report.turns > 1 && report.results.size() > 1;
  return {text(report.model, ": ", several(plain.parameters, "parameter"), ", ",
               several(plain.devices, "device")),
          text(report.processor.empty() ? "a processor without a name" : report.processor, ", ",
               several(report.cores, "core"), ", instruction set ", report.isa, "; load ",
               format("%.2f before and %.2f after", report.load_before, report.load_after)),
          text("plain: tessera bench ", report.flags),
          text(several(report.turns, "turn"), " of ", several(report.length.steps, "timed step"),
               " after ", report.length.warmup, " that warm up, each in a process of its own",
               reversed ? ", every other turn in reverse order" : "", "; ",
               format("%.0f", report.seconds), " s in all")};
}

std::vector<std::vector<std::string>> table(const BenchReport& report) {
  const bool several = report.results.size() > 1, peaks = !report.peaks.empty();
  std::vector<std::string> head = {"switches", "seconds a step", "samples/s", "tokens/s"};
  if (peaks) head.emplace_back("MFU");
  if (several) head.emplace_back("speed / plain");
  head.insert(head.end(), {"MiB a device", "MiB planned"});
  if (several)
    head.insert(head.end(), {"memory / plain", "loss distance: mean, largest, relative"});
  head.emplace_back("loss");
  std::vector<std::vector<std::string>> out = {std::move(head)};
  for (const Standing& s : report.results) out.push_back(row(s, several, peaks));
  return out;
}

std::vector<std::string> notes(const BenchReport& report) {
  std::vector<std::string> out;
  if (report.stopped)
    out.push_back(text("stopped on request: not all of the ", grouped(report.turns),
                       " turns ran, and some may be cut short"));
  for (const std::string& what : report.left_out) out.push_back("left out: " + what);
  if (report.turns == 1 && report.results.size() > 1)
    out.push_back("there was one round, so agreement of turns is unknown and ratios are rough");
  for (const std::string& problem : report.peer_problems)
    out.push_back("a peer was not measured: " + problem);
  if (!report.peaks.empty())
    out.push_back(text("MFU: the model's FLOPs, without recomputing, over the peak of devices of ",
                       report.peaks, " in the row's floats"));
  double others = 0;
  for (const Standing& s : report.results) {
    others = std::max(others, s.others);
    if (!s.failure.empty())
      out.push_back(
          text(s.name, s.planned_only ? ": planned only" : ": failed",
               s.turns > 0 ? text(" after ", s.turns, " turns, of which its numbers are") : "",
               ": ", s.failure));
    if (s.skipped > 0)
      out.push_back(text(s.name, ": ", s.skipped, " of ", s.losses.size(),
                         " steps were skipped, so its losses are of other weights"));
    if (s.disagrees)
      out.push_back(text(s.name, ": turns disagree by more than ",
                         format("%.0f", 100 * kMostDisagreement),
                         "%, so there is no ratio; measure on an idle machine, with more steps"));
  }
  const auto kernels = [](const Standing& s) { return join(s.kernels); };
  for (std::size_t i = 0; i < report.results.size(); ++i) {
    const Standing& s = report.results[i];
    const bool said =
        std::any_of(report.results.begin(), report.results.begin() + static_cast<std::ptrdiff_t>(i),
                    [&](const Standing& before) { return before.kernels == s.kernels; });
    if (!said && !s.kernels.empty()) out.push_back(text("kernels of ", s.name, ": ", kernels(s)));
  }
  if (others > kBusy)
    out.push_back(text("other programs used up to ", format("%.0f", 100 * others),
                       "% of the cores during a turn, so times are too long"));
  return out;
}

}  // namespace tessera
