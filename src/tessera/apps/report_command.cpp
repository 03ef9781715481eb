#include <filesystem>
#include <optional>
#include <system_error>

#include "tessera/apps/command.h"
#include "tessera/apps/flags.h"
#include "tessera/apps/run_words.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/data/file.h"
#include "tessera/train/output_folder.h"
#include "tessera/train/run_report.h"

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
  const std::vector<Flag> flags = {
      {"output", {}, "FILE", "where the page goes, which is replaced [report.html]"}};
  Problems problems;
  ParsedFlags parsed = parse_flags(arguments, flags, problems);
  if (parsed.help) {
    console.out << "tessera report RUN... [--output FILE]\n\n"
                   "Writes a page that any browser shows: curves, memory, configuration, mesh, "
                   "slowest kernels, notices and\ncheckpoints of runs, beside each other. RUN is "
                   "the folder of a run, its --output.\n\n"
                << flags_help(flags, console.columns);
    return 0;
  }
  std::string output = parsed.take_value("output");
  if (output.empty()) output = "report.html";
  if (!output.ends_with(".html"))
    problems.add(text("--output is '", output, "'; it must end in .html"));
  if (parsed.words.empty()) problems.add("report takes the folders of one or more runs; give one");
  find_doubles(parsed.words, problems);
  std::vector<RunReport> runs;
  for (const std::string& run : parsed.words) {
    problems.gather([&] { runs.push_back(read_report(run, families)); });
  }
  problems.raise();
  write_atomically(output, to_html(runs));
  console.out << printable(text("wrote the report of ", join(parsed.words), " to '", output, "'"))
              << "\n";
  return 0;
}

}  // namespace tessera
