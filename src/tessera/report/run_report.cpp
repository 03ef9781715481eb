#include "tessera/report/run_report.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/format.h"
#include "tessera/base/text.h"
#include "tessera/checkpoint/checkpoint_folder.h"
#include "tessera/config/family_fields.h"
#include "tessera/config/fields.h"
#include "tessera/config/output_folder.h"
#include "tessera/files/file.h"
#include "tessera/plan/memory_parts.h"
#include "tessera/train/best_checkpoint.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// The object in a file; an empty one, and a remark, where there is none.
Json object_in(const std::string& path, const std::string& lacking, RunReport& report) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) {
    report.remarks.push_back(lacking);
    return Json::object();
  }
  Json out = Json::parse(read_file(path, Fault::Resource), nullptr, /*allow_exceptions=*/false);
  if (out.is_object()) return out;
  report.remarks.push_back(text("'", path, "' is damaged: it is not a JSON object"));
  return Json::object();
}

/// A member, which is not copied: it may be nested deeper than a stack. None: an empty one.
const Json& member(const Json& object, const char* key) {
  static const Json kNone;
  const auto found = object.find(key);
  return found == object.end() ? kNone : *found;
}

std::optional<double> number(const Json& object, const char* key) {
  const Json& found = member(object, key);
  return found.is_number() ? std::optional(found.get<double>()) : std::nullopt;
}

std::string string_of(const Json& object, const char* key) {
  const Json& found = member(object, key);
  return found.is_string() ? found.get<std::string>() : "";
}

/// The last value of a series; none: there is none.
std::optional<LossPoints::value_type> last_of(const RunReport& report, std::string_view kind,
                                              std::string_view key) {
  for (const MetricSeries& one : report.series) {
    if (one.kind == kind && one.key == key && !one.points.empty()) return one.points.back();
  }
  return std::nullopt;
}

void add_progress(const std::optional<RunConfig>& config, RunReport& report) {
  if (const auto last = last_of(report, "train", "loss")) {
    const std::string wanted = !config ? ""
                               : config->epochs > 0
                                   ? text(", of ", counted(config->epochs, "epoch"))
                                   : text(" of ", config->steps);
    report.facts.emplace_back("steps", text(last->first, wanted));
    report.facts.emplace_back("training loss in the last step", loss_text(last->second));
  }
  if (const auto last = last_of(report, "valid", "loss"))
    report.facts.emplace_back("validation loss at the end", loss_text(last->second));
  for (const MetricSeries& one : report.series) {
    if (one.kind == "test" && !one.points.empty())
      report.facts.emplace_back(text("test ", one.key), loss_text(one.points.back().second));
  }
}

void add_summary(const Json& summary, RunReport& report) {
  const auto add = [&](const char* name, const char* key, const auto& to_words) {
    if (const std::optional<double> value = number(summary, key); value && *value > 0)
      report.facts.emplace_back(name, to_words(*value));
  };
  const auto plain = [](double value) { return format("%.4g", value); };
  const auto whole = [](double value) { return grouped(static_cast<std::int64_t>(value)); };
  const auto bytes = [](double value) { return bytes_text(static_cast<std::int64_t>(value)); };
  add("parameters", "parameters", whole);
  add("tokens per second", "tokens_per_s", whole);
  // Null or, in earlier versions, above 1: what it was compared with was measured too low.
  const std::optional<double> mfu = number(summary, "mfu");
  if (mfu.value_or(0) > 1 || (!mfu && summary.contains("mfu")))
    report.facts.emplace_back("MFU", "-");
  else
    add("MFU", "mfu", [](double value) { return format("%.1f %%", value * 100); });
  add("seconds, of the last invocation", "seconds", plain);
  add("skipped steps", "skipped_steps", whole);
  add("planned peak of a device", "planned_peak_bytes", bytes);
  add("measured peak of a device", "measured_peak_bytes", bytes);
  add("planned on the host", "planned_host_bytes", bytes);
  add("planned in a file", "planned_file_bytes", bytes);
  add("most memory of the process", "peak_rss_bytes", bytes);
  if (const std::string mesh = string_of(summary, "mesh"); !mesh.empty())
    report.facts.emplace_back("mesh", mesh);
  if (const std::string isa = string_of(summary, "isa"); !isa.empty())
    report.facts.emplace_back("instruction set", isa);
  if (const std::string products = string_of(summary, "f32_products"); !products.empty())
    report.facts.emplace_back("f32 products", products);
  const Json& memory = member(summary, "memory");
  for (const MemoryPart& part : kMemoryParts) {
    if (const std::optional<double> size = number(memory, part.key); size && *size > 0)
      report.memory.emplace_back(part.name, static_cast<std::int64_t>(*size));
  }
  for (const Json& notice : member(summary, "notices")) {
    if (notice.is_string()) report.notices.push_back(notice.get<std::string>());
  }
}

/// Fields that a reader of the report sees elsewhere in it, or that no number depends on.
bool is_told_elsewhere(const Field& field) {
  return field.name == "output" || field.name == "resume";
}

void add_changed(const RunConfig& config, RunReport& report) {
  RunConfig standard;
  standard.model = published(config.model.family);
  standard.model.vocabulary = 0;
  for (const Field& field : fields()) {
    if (is_told_elsewhere(field) || !is_read(field, config)) continue;
    const auto one_line = [](std::string value) {
      std::ranges::replace(value, '\n', ' ');
      return value;
    };
    const std::string value = get_text(field, config), usual = get_text(field, standard);
    if (value != usual)
      report.changed.push_back({std::string(field.name), one_line(value), one_line(usual)});
  }
}

std::int64_t bytes_in(const std::string& folder) {
  std::int64_t out = 0;
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(folder, ignored)) {
    if (entry.is_regular_file(ignored)) out += static_cast<std::int64_t>(entry.file_size(ignored));
  }
  return out;
}

void add_checkpoints(const std::string& run, RunReport& report) {
  std::error_code ignored;
  for (const std::string& path : checkpoints_of_run(run)) {
    const fs::path name = fs::path(path).filename();
    const fs::path best = fs::read_symlink(fs::path(path).parent_path() / kBestLink, ignored);
    report.checkpoints.push_back({name.string(), bytes_in(path), name == best.filename()});
  }
  if (report.checkpoints.empty()) report.remarks.push_back("there is no checkpoint");
}

void add_profile(const std::string& path, RunReport& report) {
  const Json trace = object_in(
      path, text("the profile '", path, "' does not exist; report from the folder of the run"),
      report);
  const Json& profile = member(trace, "profile");
  const double step = number(profile, "step_seconds").value_or(0);
  for (const Json& row : member(profile, "kernels")) {
    if (!row.is_object()) continue;
    const double seconds = number(row, "seconds").value_or(0);
    report.kernels.push_back(
        {string_of(row, "kernel"), string_of(row, "op"), string_of(row, "block"),
         static_cast<std::int64_t>(number(row, "calls").value_or(0)), seconds,
         step > 0 ? seconds / step : 0, number(row, "floor_seconds").value_or(0)});
  }
}

}  // namespace

RunReport read_run(const std::string& run, const std::optional<RunConfig>& config) {
  RunReport out;
  out.name = run;
  read_losses(run);  // it is the folder of a run that did a step
  out.series = metric_series(read_file(in_folder(run, kMetricsFile), Fault::Resource));
  std::error_code ignored;
  if (fs::exists(in_folder(run, "lock"), ignored))
    out.remarks.push_back("the run is running, or was killed: its lock exists");
  add_progress(config, out);
  add_summary(object_in(in_folder(run, kSummaryFile),
                        text("there is no ", kSummaryFile,
                             ": speed, memory and notices are known only after a run ends"),
                        out),
              out);
  out.configured = config.has_value();
  if (config) {
    add_changed(*config, out);
    if (!config->profile.empty()) add_profile(config->profile, out);
  } else if (!fs::exists(in_folder(run, kConfigFile), ignored)) {
    out.remarks.push_back(text("there is no ", kConfigFile));
  }
  add_checkpoints(run, out);
  return out;
}

}  // namespace tessera
