#include "tessera/report/loss_chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>

#include "tessera/base/error.h"
#include "tessera/base/format.h"
#include "tessera/base/text.h"
#include "tessera/config/output_folder.h"
#include "tessera/files/file.h"
#include "tessera/report/svg.h"
#include "tessera/train/metrics.h"

namespace tessera {

namespace {

// Lengths are pixels.
constexpr double kPageLeft = 70, kPageTop = 50, kPageRight = 30, kPageBottom = 50, kLine = 20;
constexpr double kWidth = 720, kHeight = 360;
constexpr std::size_t kMostPoints = 720;  // of a line
constexpr double kLargestLoss = 1e100;    // sums and differences of such are finite

constexpr const char* kChartStyle = R"(
  .curve { fill: none; stroke-linejoin: round; }
  .grid { stroke: #8a94a3; stroke-opacity: 0.25; }
  .loss { text-anchor: end; fill: #5a6676; font-size: 12px; }
)";
// Curves that lie on each other are all seen: those below are wider.
constexpr double kCurveWidth = 1.6, kWider = 1.4, kWidest = 6;
constexpr std::array<const char*, 6> kColours = {"#2a78c8", "#e0861f", "#3b9b42",
                                                 "#c43d4b", "#8a5fc0", "#12939a"};

/// At most so many points: means of neighbours.
LossPoints thinned(const LossPoints& points) {
  if (points.size() <= kMostPoints) return points;
  LossPoints out;
  for (std::size_t i = 0; i < kMostPoints; ++i) {
    const std::size_t begin = i * points.size() / kMostPoints,
                      end = (i + 1) * points.size() / kMostPoints;
    double sum = 0;
    for (std::size_t j = begin; j < end; ++j) sum += points[j].second;
    out.emplace_back(points[(begin + end) / 2].first, sum / static_cast<double>(end - begin));
  }
  return out;
}

std::string last_text(const LossPoints& points) { return loss_text(points.back().second); }

class Chart {
 public:
  Chart(const std::vector<LossCurve>& curves, const std::string& title, const CurveWords& words)
      : title_(title), words_(words), given_(curves) {
    for (const LossCurve& curve : given_)
      curves_.push_back({curve.name, thinned(curve.train), curve.valid});
    for (const LossCurve& curve : curves_) {
      for (const LossPoints* points : {&curve.train, &curve.valid}) {
        for (const auto& [step, loss] : *points) {
          last_ = std::max(last_, static_cast<double>(step));
          low_ = std::min(low_, loss), high_ = std::max(high_, loss);
        }
      }
    }
    // Losses that are all alike lie in the middle.
    if (high_ - low_ < 1e-6 * std::max(1.0, std::abs(high_))) low_ -= 0.5, high_ += 0.5;
    const double step = svg::tick_step(high_ - low_);
    low_ = std::floor(low_ / step) * step, high_ = std::ceil(high_ / step) * step;
  }

  std::string run() {
    const auto lines = static_cast<double>(curves_.size());
    out_ = svg::begin(kPageLeft + kWidth + kPageRight,
                      kPageTop + kHeight + kPageBottom + lines * kLine, title_, kChartStyle);
    out_ += svg::written(kPageLeft, 28, "title", title_);
    axes();
    for (std::size_t i = 0; i < curves_.size(); ++i) curve(i);
    return std::move(out_) + "</svg>\n";
  }

 private:
  double x(double step) const { return kPageLeft + step / last_ * kWidth; }
  double width(std::size_t i) const {
    const auto above = static_cast<double>(curves_.size() - 1 - i);
    return std::min(kCurveWidth + kWider * above, kWidest);
  }
  double y(double loss) const { return kPageTop + (high_ - loss) / (high_ - low_) * kHeight; }

  void axes() {
    const double loss_step = svg::tick_step(high_ - low_), step_step = svg::tick_step(last_);
    const auto ticks = std::lround((high_ - low_) / loss_step);
    for (long i = 0; i <= ticks; ++i) {
      const double loss = low_ + static_cast<double>(i) * loss_step;
      out_ += format("<path class=\"grid\" d=\"M%.2f %.2fh%.2f\"/>\n", kPageLeft, y(loss), kWidth);
      out_ += svg::written(kPageLeft - 8, y(loss) + 4, "loss", format("%.6g", loss));
    }
    const double bottom = kPageTop + kHeight;
    std::string path = format("M%.2f %.2fh%.2f", kPageLeft, bottom, kWidth);
    for (double step = 0; step <= last_ * (1 + 1e-9); step += step_step) {
      path += format("M%.2f %.2fv5", x(step), bottom);
      out_ += svg::written(x(step), bottom + 20, "tick", format("%.6g", step));
    }
    out_ += text("<path class=\"axis\" fill=\"none\" d=\"", path, "\"/>\n");
  }

  void curve(std::size_t i) {
    const LossCurve& curve = curves_[i];
    const char* colour = kColours[i % kColours.size()];
    const double legend = kPageTop + kHeight + 46 + static_cast<double>(i) * kLine;
    std::string name = curve.name;
    const bool empty = curve.train.empty() && curve.valid.empty();
    if (!curve.train.empty()) {
      line(curve.train, colour, format(" stroke-width=\"%.1f\"", width(i)));
      if (curve.train.size() == 1) dot(curve.train[0], colour);  // a line of one point is not seen
      name += text(": ", words_.line, last_text(given_[i].train), " in the last step");
    }
    if (!curve.valid.empty()) {
      line(curve.valid, colour,
           format(" stroke-width=\"%.1f\" stroke-dasharray=\"5 3\"", kCurveWidth));
      for (const auto& point : curve.valid) dot(point, colour);
      name += text(curve.train.empty() ? ": " : ", ", words_.dots, last_text(curve.valid),
                   " at the end");
    }
    out_ +=
        format("<path class=\"curve\" stroke=\"%s\" stroke-width=\"%.1f\" d=\"M%.2f %.2fh24\"/>\n",
               colour, width(i), kPageLeft, legend - 4);
    out_ += svg::written(kPageLeft + 32, legend, "name", empty ? name + ": none" : name);
  }

  void dot(const LossPoints::value_type& point, const char* colour) {
    out_ += format("<circle cx=\"%.2f\" cy=\"%.2f\" r=\"3\" fill=\"%s\"/>\n",
                   x(static_cast<double>(point.first)), y(point.second), colour);
  }

  void line(const LossPoints& points, const char* colour, const std::string& stroke) {
    std::string path;
    for (const auto& [step, loss] : points)
      path +=
          format("%s%.2f %.2f", path.empty() ? "M" : "L", x(static_cast<double>(step)), y(loss));
    out_ += text("<path class=\"curve\" stroke=\"", colour, "\"", stroke, " d=\"", path, "\"/>\n");
  }

  const std::string title_;
  const CurveWords words_;
  const std::vector<LossCurve>& given_;
  std::vector<LossCurve> curves_;  // as they are drawn
  double last_ = 1;
  double low_ = std::numeric_limits<double>::infinity(), high_ = -low_;
  std::string out_;
};

}  // namespace

std::string loss_text(double loss) { return format("%.5g", loss); }

LossCurve read_losses(const std::string& run) {
  const std::string path = in_folder(run, kMetricsFile);
  require(std::filesystem::is_regular_file(path), "'", run, "' has no ", kMetricsFile,
          "; give the folder of a run, the --output of tessera train");
  LossCurve out{run, {}, {}};
  const std::string bytes = read_file(path, Fault::Resource);
  const std::vector<LossLine> lines = loss_lines(bytes);
  for (const LossLine& line : lines) {
    if (!(std::abs(line.loss) <= kLargestLoss)) continue;
    LossPoints& points = line.valid ? out.valid : out.train;
    points.emplace_back(line.step, line.loss);
  }
  if (!out.train.empty() || !out.valid.empty()) return out;
  require(lines.empty(), "'", path, "' has no loss that can be drawn: each of its ", lines.size(),
          " is inf, nan, beyond ", format("%g", kLargestLoss), " or of a skipped step",
          "; lower --lr, and train in a new folder");
  require(
      trim(bytes).empty(), "'", path,
      "' has no line of a step; give the folder of a run, where tessera train writes its steps");
  fail(Fault::Usage, "'", path, "' has no loss yet; train at least one step");
}

std::string loss_chart(const std::vector<LossCurve>& curves, const std::string& title,
                       const CurveWords& words) {
  return Chart(curves, title, words).run();
}

}  // namespace tessera
