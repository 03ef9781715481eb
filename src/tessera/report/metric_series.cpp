#include "tessera/report/metric_series.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tessera/base/text.h"

namespace tessera {

namespace {

constexpr double kLargest = 1e100;  // sums and differences of such are finite

/// Where a line stands along the run; nullptr: nowhere.
const nlohmann::ordered_json* place_of(const nlohmann::ordered_json& line) {
  for (const char* key : {"step", "epoch"}) {
    const auto found = line.find(key);
    if (found != line.end() && found->is_number_integer()) return &*found;
  }
  return nullptr;
}

LossPoints& series_of(std::vector<MetricSeries>& all, const std::string& kind,
                      const std::string& key) {
  const auto found = std::ranges::find_if(
      all, [&](const MetricSeries& one) { return one.kind == kind && one.key == key; });
  if (found != all.end()) return found->points;
  all.push_back({kind, key, {}});
  return all.back().points;
}

}  // namespace

std::vector<MetricSeries> metric_series(std::string_view lines) {
  std::vector<MetricSeries> out;
  for (const std::string& line : split(lines, '\n')) {
    const auto json = nlohmann::ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || !json.contains("kind") || !json["kind"].is_string()) continue;
    const nlohmann::ordered_json* const place = place_of(json);
    if (place == nullptr) continue;
    for (const auto& [key, value] : json.items()) {
      if (!value.is_number() || key == "step" || key == "epoch") continue;
      if (key == "loss" && json.contains("skipped")) continue;  // it taught the model nothing
      const double number = value.get<double>();
      if (std::abs(number) <= kLargest)
        series_of(out, json["kind"], key).emplace_back(place->get<std::int64_t>(), number);
    }
  }
  return out;
}

}  // namespace tessera
