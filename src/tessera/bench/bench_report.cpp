#include "tessera/bench/bench_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tessera/base/format.h"
#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/bench/bench_remarks.h"

namespace tessera {

namespace {

using Json = nlohmann::ordered_json;

/// What JSON lacks, inf and nan, is written as null.
Json number(const std::optional<double>& value) { return value ? Json(*value) : Json(); }
Json pair(const Range& range) { return {range.low, range.high}; }

Json json_of(const Standing& s) {
  Json out;
  out["name"] = s.name;
  out["flags"] = s.flags;
  out["step_seconds"] = number(s.step_seconds);
  out["samples_per_s"] = number(s.samples_per_s);
  out["tokens_per_s"] = number(s.tokens_per_s);
  out["spread"] = s.step_seconds ? pair(s.step_range) : Json();
  out["ratio"] = number(s.ratio);
  out["ratio_spread"] = s.ratio_range ? pair(*s.ratio_range) : Json();
  out["turns_disagree"] = s.disagrees;
  out["mfu"] = number(s.mfu);
  out["devices"] = s.devices;
  out["parameters"] = s.parameters;
  out["turns"] = s.turns;
  out["peak_bytes"] = s.peak_bytes > 0 ? Json(s.peak_bytes) : Json();
  out["planned_peak_bytes"] = s.planned_bytes > 0 ? Json(s.planned_bytes) : Json();
  out["planned_host_bytes"] = s.planned_host_bytes;
  out["planned_file_bytes"] = s.planned_file_bytes;
  out["memory_ratio"] = number(s.memory_ratio);
  out["losses"] = s.losses;
  out["skipped_steps"] = s.skipped;
  out["loss_distance"] = Json();
  if (s.distance)
    out["loss_distance"] = {{"mean", s.distance->mean},
                            {"largest", s.distance->largest},
                            {"relative", s.distance->relative},
                            {"last_tenth", s.distance->last}};
  out["others"] = s.others;
  out["kernels"] = s.kernels;
  out["planned_only"] = s.planned_only;
  out["failure"] = s.failure.empty() ? Json() : Json(s.failure);
  return out;
}

}  // namespace

std::string to_text(const BenchReport& report) {
  std::string out;
  for (const std::string& line : heading(report)) out += line + "\n";
  out += "\n";
  const std::vector<std::vector<std::string>> rows = table(report);
  std::vector<std::int64_t> widths(rows[0].size());
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c)
      widths[c] = std::max(widths[c], count_characters(row[c]));
  }
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string pad(static_cast<std::size_t>(widths[c] - count_characters(row[c])), ' ');
      line +=
          c == 0 ? row[c] + pad : "  " + pad + row[c];  // names to the left, numbers to the right
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  const std::vector<std::string> below = notes(report);
  if (!below.empty()) out += "\n";
  for (const std::string& note : below) out += note + "\n";
  return out;
}

std::string to_json(const BenchReport& report) {
  Json out;
  out["model"] = report.model;
  out["flags"] = report.flags;
  out["version"] = report.version;
  out["processor"] = report.processor;
  out["isa"] = report.isa;
  out["cores"] = report.cores;
  out["load_before"] = report.load_before;
  out["load_after"] = report.load_after;
  out["turns"] = report.turns;
  out["warmup"] = report.length.warmup;
  out["steps"] = report.length.steps;
  out["peaks"] = report.peaks.empty() ? Json() : Json(report.peaks);
  out["stopped"] = report.stopped;
  out["seconds"] = report.seconds;
  out["left_out"] = report.left_out;
  out["peer_problems"] = report.peer_problems;
  out["results"] = Json::array();
  for (const Standing& s : report.results) out["results"].push_back(json_of(s));
  return out.dump(1) + "\n";
}

}  // namespace tessera
