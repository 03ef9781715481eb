/// metrics.jsonl of a run that goes on, and of one that is reported.

#include "tessera/train/metrics.h"
#include "fuzz/target.h"
#include "tessera/report/metric_series.h"

namespace tessera::fuzz {

namespace {

constexpr std::int64_t kStep = 100;

void run(std::string_view input) {
  const KeptMetrics kept = keep_metrics(input, kStep);
  then([&] {
    const KeptMetrics again = keep_metrics(kept.lines, kStep);
    check(again == kept, "lines that were kept are not kept again: ", kept.lines);
    for (const MetricSeries& one : metric_series(input))
      check(!one.points.empty(), "a series without a point: ", one.key);
  });
}

}  // namespace

const Target kTarget = {1 << 20, 512, run};

}  // namespace tessera::fuzz
