#include "tessera/apps/progress.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "tessera/base/format.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/train/product_rate.h"

namespace tessera {

namespace {

constexpr std::size_t kLine = 100;  // columns of a plain line

/// A number of a step, which may be none: "nan" without a sign.
std::string number(const char* how, double value) {
  return std::isnan(value) ? "nan" : format(how, value);
}

std::string measured_text(const EvalRecord& record) {
  std::string out = text("  loss ", number("%.4f", record.loss));
  for (const auto& [name, score] : record.scores)
    out += text("  ", name, " ", number("%.4f", score));
  return out;
}

/// What a step takes at least, where nobody would wait for the first without a word.
std::string slow_text(const RunStart& start) {
  constexpr double kLong = 10;  // seconds
  if (start.product_flops_per_s <= 0) return "";
  const double step =
      start.flops_per_step / (start.product_flops_per_s * static_cast<double>(start.devices));
  if (step < kLong) return "";
  const auto left = static_cast<double>(start.steps - start.first_step);
  return text("a step takes ", clock_text(step), " or more, all of them ", clock_text(step * left),
              ", from its FLOP at the best product rate");
}

std::string predictions_text(const EvalRecord& record) {
  return record.predictions.empty() ? "" : text("  predictions in ", record.predictions);
}

}  // namespace

std::string clock_text(double seconds) {
  const auto s = static_cast<long long>(std::llround(seconds));
  return s >= 3600 ? format("%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60)
                   : format("%lld:%02lld", s / 60, s % 60);
}

void Progress::on_start(const RunStart& start) {
  start_ = start;
  if (every_ == 0) every_ = steps_between_lines(start.steps - start.first_step);
  for (const std::string& about : start.about) line(printable(about));
  const std::string copy =
      start.save_copy_bytes == 0
          ? ""
          : text("and ", bytes_text(start.save_copy_bytes), " for a copy to save from, ");
  const std::string common =
      start.base_bytes == 0 ? "" : text(bytes_text(start.base_bytes), " of it in common, ");
  const auto also = [](std::int64_t bytes, const char* where) {
    return bytes == 0 ? "" : text("and ", bytes_text(bytes), where);
  };
  const std::string host =
      also(start.host.memory, " on the host, ") + also(start.host.file, " in a file, ");
  line(text(grouped(start.parameters), " parameters, ", bytes_text(start.peak_bytes),
            " of memory, ", common, host, copy, format("%.3g", start.flops_per_step * 1e-9),
            " GFLOP and ", grouped(start.tokens_per_step), " tokens a step; compiled in ",
            format("%.2f", start.compile_seconds), " s"));
  if (const std::string slow = slow_text(start); !slow.empty()) line(slow);
  if (start.first_step > 0) line(text("resuming after step ", start.first_step));
  if (start.first_step >= start.steps) line("nothing to do: all steps are complete");
}

std::int64_t steps_between_lines(std::int64_t steps) {
  constexpr std::int64_t kMostLines = 40, kEnds = 2;  // the first step and the last
  std::int64_t out = 10;
  while (steps > out * (kMostLines - kEnds)) out *= 2;
  return out;
}

void Progress::on_memory(const RunMemory& memory) {
  line(memory.arena_bytes == 0
           ? text("memory of this process, beside the devices': ", to_text(memory.outside))
           : text("memory: ", bytes_text(memory.huge_page_bytes), " of ",
                  bytes_text(memory.arena_bytes), " on huge pages; outside it ",
                  to_text(memory.outside)));
  if (start_.product_flops_per_s > 0)
    line(text("best product rate ", format("%.3g", start_.product_flops_per_s * 1e-9), " GFLOP/s",
              start_.devices > 1 ? text(" on each of ", start_.devices, " devices") : "",
              ": 100% of MFU"));
}

void Progress::on_step(const StepRecord& record) {
  using namespace std::chrono_literals;
  constexpr double kForget = 0.1;  // share of the newest step in the average
  // The first step warms up what later ones find warm.
  seconds_ = ++steps_ <= 2 ? record.seconds : seconds_ + kForget * (record.seconds - seconds_);
  const bool end = record.step == start_.first_step + 1 || record.step == start_.steps;
  if (!console_.terminal) {
    if (end || record.step % every_ == 0) line("step " + numbers(record, "  ", kLine - 5));
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (!end && now - last_ < 100ms) return;
  last_ = now;
  const auto room = static_cast<std::size_t>(console_.columns - 1);
  constexpr std::size_t kShortBar = 12, kManyColumns = 60;
  std::string shown = numbers(record, " ", room > kManyColumns ? room - kShortBar : room);
  shown.insert(0, bar(record.step, console_.columns - 1 - static_cast<int>(shown.size())));
  shown.resize(std::min(shown.size(), room));
  console_.out << "\r\x1b[K" << shown << std::flush;
  drawn_ = true;
}

/// At most `room` columns: what matters least goes first.
std::string Progress::numbers(const StepRecord& r, std::string_view gap, std::size_t room) const {
  struct Part {
    std::string shown;
    int weight;  // parts of the least go first
  };
  const auto per_second = static_cast<double>(start_.tokens_per_step) / seconds_;
  const double left = static_cast<double>(start_.steps - r.step) * seconds_;
  std::vector<Part> parts = {
      {text(r.step, "/", start_.steps), 9},
      {text("loss ", number("%.4f", r.loss)), 8},
      {text("grad norm ", number("%.3g", r.grad_norm)), 3},
      {text(grouped(std::llround(per_second)), " tokens/s"), 6},
      {text(format(seconds_ < 0.1 ? "%.3g" : "%.0f", seconds_ * 1e3), " ms/step"), 2}};
  if (start_.product_flops_per_s > 0) {
    const double model_flops = start_.flops_per_step - start_.recomputed_flops_per_step;
    const double best = start_.product_flops_per_s * static_cast<double>(start_.devices);
    const std::optional<double> share = utilization(model_flops, seconds_, best);
    parts.push_back({share ? format("MFU %.0f%%", 100 * *share) : "MFU -", 4});
  }
  parts.push_back({text(clock_text(left), " left"), 7});
  const auto joined = [&] {
    std::vector<std::string> shown;
    for (const Part& part : parts) shown.push_back(part.shown);
    return join(shown, gap);
  };
  while (joined().size() > room && parts.size() > 2) {
    parts.erase(std::min_element(parts.begin(), parts.end(),
                                 [](const Part& a, const Part& b) { return a.weight < b.weight; }));
  }
  return joined();
}

/// The bar and a blank, in at most `room` columns; nothing where it would be too short to read.
std::string Progress::bar(std::int64_t step, std::int64_t room) const {
  const std::int64_t width = std::min<std::int64_t>(room - 3, 30);
  if (width < 5) return "";
  const std::int64_t full =
      start_.steps == 0 ? width : std::min(step, start_.steps) * width / start_.steps;
  return text("[", std::string(static_cast<std::size_t>(full), '='),
              std::string(static_cast<std::size_t>(width - full), ' '), "] ");
}

void Progress::on_valid(std::int64_t step, double loss, const NamedMeans& means) {
  std::string others;
  for (const auto& [name, mean] : means) others += text("  ", name, " ", number("%.4f", mean));
  line(text("step ", step, "  validation loss ", number("%.4f", loss), others));
}

void Progress::on_eval(const EvalRecord& record) {
  line(text("epoch ", record.epoch, measured_text(record), predictions_text(record)));
}

void Progress::on_test(const TestRecord& record) {
  line(text("test of the ", record.best ? "best" : "last", " weights, step ", record.measured.step,
            record.labelled ? measured_text(record.measured) : "  no labels, so no scores",
            predictions_text(record.measured)));
}

void Progress::on_sample(std::int64_t step, const std::string& sample) {
  line(text("step ", step, "  sample:"));
  for (const std::string& row : split(sample, '\n')) line("    " + row);
}

void Progress::on_save(std::int64_t step, const std::string& path) {
  line(text("step ", step, "  saved ", path));
}

void Progress::on_profile(const std::string& path, const std::string& table) {
  line(table + "wrote the trace " + path);
}

void Progress::on_notice(const std::string& notice) { line("notice: " + printable(notice)); }

void Progress::finish() {
  if (drawn_) console_.out << "\n";
  drawn_ = false;
  console_.out.flush();
}

void Progress::line(const std::string& text) {
  finish();
  console_.out << text << "\n" << std::flush;
}

}  // namespace tessera
