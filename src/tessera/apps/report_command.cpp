#include <filesystem>
#include <optional>
#include <system_error>

#include "tessera/apps/file_of_runs.h"
#include "tessera/apps/flags.h"
#include "tessera/config/output_folder.h"
#include "tessera/report/run_report.h"

namespace tessera {

namespace {

/// The report of a run. A config.toml that this version cannot read is a remark in it.
RunReport read_report(const std::string& run, const OwnFamilies& families) {
  const std::string path = in_folder(run, kConfigFile);
  std::error_code ignored;
  std::optional<RunConfig> config;
  Problems unreadable;
  if (std::filesystem::is_regular_file(path, ignored)) {
    unreadable.gather([&] {
      std::vector<std::string> notices;
      config = configure(read_config_file(path, unreadable), {}, unreadable, notices, families);
    });
  }
  if (!unreadable.empty()) config.reset();
  RunReport out = read_run(run, config);
  for (const Error& problem : unreadable.list()) out.remarks.emplace_back(problem.what());
  return out;
}

}  // namespace

int report_command(const Arguments& arguments, Console& console, const OwnFamilies& families) {
  const auto make = [&](const std::vector<std::string>& names, Problems& problems) {
    std::vector<RunReport> runs;
    for (const std::string& run : names)
      problems.gather([&] { runs.push_back(read_report(run, families)); });
    return problems.empty() ? to_html(runs) : "";
  };
  return write_file_of_runs(
      {"report", "report.html", "page", "the report",
       "Writes an HTML page: curves, memory, configuration, mesh, slowest "
       "kernels, notices and\ncheckpoints of runs, side by side. RUN is the folder of a run, "
       "its --output.",
       OwnFile::Page, make},
      arguments, console);
}

}  // namespace tessera
