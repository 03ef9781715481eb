#include "tessera/report/schedule_svg.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tessera/base/counted.h"
#include "tessera/base/format.h"
#include "tessera/base/index.h"
#include "tessera/base/text.h"
#include "tessera/report/svg.h"

namespace tessera {

namespace {

// Lengths are pixels.
constexpr double kLeft = 70, kTop = 70, kRight = 24, kBottom = 50, kRow = 26, kGap = 6;
constexpr double kLeastWidth = 640, kMostWidth = 4000, kWidthOfShortest = 20, kDigit = 6.5;

constexpr const char* kStyle = R"(
  .number { font-size: 10.5px; text-anchor: middle; pointer-events: none; }
  .stage { text-anchor: end; }
  .row { fill: #eef0f3; }
  .shade { fill: #8a94a3; }
  .forward { fill: #9dc8f2; }
  .backward { fill: #f5c083; }
  .weights { fill: #a3d9a5; }
  .box { stroke: #ffffff; stroke-width: 0.75; }
  @media (prefers-color-scheme: dark) {
    .row { fill: #222831; }
    .forward { fill: #235f9e; }
    .backward { fill: #98591a; }
    .weights { fill: #2f7236; }
    .box { stroke: #14181e; }
  }
)";

/// How times are written: "12.5 ms".
struct Clock {
  double factor = 1;
  const char* name = "";

  Clock(TimeUnit unit, double longest) {
    if (unit == TimeUnit::Units) return;
    name = longest >= 1 ? "s" : longest >= 1e-3 ? "ms" : "us";
    factor = longest >= 1 ? 1 : longest >= 1e-3 ? 1e3 : 1e6;
  }
  std::string operator()(double time) const { return format("%.4g", time * factor); }
};

class Drawing {
 public:
  Drawing(const std::string& schedule, const Pipeline& pipeline, const PlayOptions& prices,
          TimeUnit unit)
      : of_(pipeline), played_(pipeline.play(prices)), name_(schedule) {
    double shortest = 0;
    for (const Spans& spans : played_) {
      for (const Span& span : spans) {
        const double length = span.end - span.begin;
        longest_ = std::max(longest_, span.end);
        if (length > 0 && (shortest == 0 || length < shortest)) shortest = length;
      }
    }
    if (longest_ <= 0) longest_ = shortest = 1;  // nothing takes time
    width_ = std::clamp(longest_ / shortest * kWidthOfShortest, kLeastWidth, kMostWidth);
    clock_ = Clock(unit, longest_);
  }

  std::string run() {
    const double rows = static_cast<double>(played_.size()) * (kRow + kGap) - kGap;
    const double width = kLeft + width_ + kRight, height = kTop + rows + kBottom;
    const auto stages = static_cast<std::int64_t>(played_.size());
    const std::string title = text(name_, ": ", counted(stages, "stage"), ", ", of_.microbatches(),
                                   of_.microbatches() == 1 ? " micro-batch" : " micro-batches",
                                   ", bubble ", format("%.1f %%", 100 * bubble(played_)));
    out_ = svg::begin(width, height, title, kStyle);
    out_ += svg::written(kLeft, 24, "title", title);
    legend();
    for (std::size_t i = 0; i < played_.size(); ++i) row(static_cast<int>(i));
    axis(kTop + rows + 6);
    return std::move(out_) + "</svg>\n";
  }

 private:
  double x(double time) const { return kLeft + time / longest_ * width_; }

  /// Chunks of the stage before this one: 0 is the darkest on white, and the brightest on black.
  double opacity(int chunk) const {
    int before = 0, all = 0;
    for (int c = 0; c < of_.chunks(); ++c) {
      if (of_.stage_of(c) != of_.stage_of(chunk)) continue;
      before += c < chunk;
      ++all;
    }
    return all == 1 ? 1 : 1 - 0.6 * before / (all - 1);
  }

  static const char* kind(RegionKind region) {
    return region == RegionKind::Forward    ? "forward"
           : region == RegionKind::Backward ? "backward"
                                            : "weights";
  }

  void swatch(double& at, const char* kind, double opacity, const std::string& meaning) {
    out_ += format(
        "<rect class=\"%s\" x=\"%.0f\" y=\"39\" width=\"14\" height=\"14\" "
        "fill-opacity=\"%.2f\"/>\n",
        kind, at, opacity);
    out_ += svg::written(at + 20, 51, "meaning", meaning);
    at += 44 + 7 * static_cast<double>(meaning.size());
  }

  void legend() {
    double at = kLeft;
    swatch(at, "forward", 1, "forward");
    const bool splits = of_.schedule().splits;
    swatch(at, "backward", 1, splits ? "backward: inputs" : "backward");
    if (splits) swatch(at, "weights", 1, "backward: weights");
    std::vector<int> chunks;
    for (int c = 0; c < of_.chunks(); ++c) {
      if (of_.stage_of(c) == of_.stage_of(0)) chunks.push_back(c);
    }
    if (chunks.size() < 2) return;
    swatch(at, "shade", opacity(chunks.front()), "first chunk of a stage");
    swatch(at, "shade", opacity(chunks.back()), "last chunk");
  }

  void row(int stage) {
    const double y = kTop + stage * (kRow + kGap);
    out_ += svg::written(kLeft - 10, y + 17.5, "stage", text("stage ", stage));
    out_ += format("<rect class=\"row\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"/>\n",
                   kLeft, y, width_, kRow);
    const Actions& actions = of_.schedule().stages[at(stage)];
    for (std::size_t j = 0; j < actions.size(); ++j) {
      const Span& span = played_[at(stage)][j];
      box(actions[j], span, y);
    }
  }

  void box(const Action& action, const Span& span, double y) {
    const double left = x(span.begin), width = x(span.end) - left;
    out_ += format(
        "<rect class=\"box %s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
        "fill-opacity=\"%.2f\">",
        kind(action.region), left, y, width, kRow, opacity(action.chunk));
    out_ += text("<title>", to_text(action, of_.schedule()), ": ", clock_(span.begin), " to ",
                 clock_(span.end), *clock_.name == 0 ? "" : " ", clock_.name, "</title></rect>\n");
    const std::string number = text(action.microbatch);
    if (kDigit * static_cast<double>(number.size()) + 3 <= width)
      out_ += svg::written(left + width / 2, y + 17, "number", number);
  }

  void axis(double y) {
    out_ += format("<path class=\"axis\" fill=\"none\" d=\"M%.2f %.2fH%.2f", kLeft, y, x(longest_));
    const double step = svg::tick_step(longest_);
    const auto ticks = static_cast<int>(std::floor(longest_ / step * (1 + 1e-9)));
    for (int i = 0; i <= ticks; ++i) out_ += format("M%.2f %.2fv5", x(i * step), y);
    out_ += "\"/>\n";
    for (int i = 0; i <= ticks; ++i)
      out_ += svg::written(x(i * step), y + 19, "tick", clock_(i * step));
    const char* const name = *clock_.name == 0 ? "units of time" : clock_.name;
    out_ += svg::written(kLeft + width_ / 2, y + 37, "tick", name);
  }

  const Pipeline& of_;
  std::vector<Spans> played_;
  std::string name_;
  double longest_ = 0, width_ = 0;  // of the time axis: in time, in pixels
  Clock clock_{TimeUnit::Units, 1};
  std::string out_;
};

}  // namespace

std::string schedule_svg(const std::string& schedule, const Pipeline& pipeline,
                         const PlayOptions& prices, TimeUnit unit) {
  return Drawing(schedule, pipeline, prices, unit).run();
}

}  // namespace tessera
