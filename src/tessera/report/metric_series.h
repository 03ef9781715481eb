#pragma once
/// The numbers of metrics.jsonl, by key.

#include <string>
#include <string_view>
#include <vector>

#include "tessera/report/loss_chart.h"

namespace tessera {

struct MetricSeries {
  std::string kind, key;  // "train", "lr"
  LossPoints points;      // by step; a line without one, as of an epoch, by its epoch
};

/// In the order in which they first occur. Numbers that are not finite or beyond 1e100 are left
/// out, and so are losses of steps that were skipped and lines that are torn or not ours.
std::vector<MetricSeries> metric_series(std::string_view lines);

}  // namespace tessera
