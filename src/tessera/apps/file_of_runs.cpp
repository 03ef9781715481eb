#include "tessera/apps/file_of_runs.h"

#include <filesystem>
#include <system_error>

#include "tessera/apps/flags.h"
#include "tessera/apps/result_file.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/files/file.h"

namespace tessera {

namespace {

void find_doubles(const std::vector<std::string>& runs, Problems& problems) {
  std::error_code unknown;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (runs[i] == runs[j])
        return problems.add(text("'", runs[i], "' is given twice; give each run once"));
      if (std::filesystem::equivalent(runs[i], runs[j], unknown))
        return problems.add(
            text("'", runs[j], "' and '", runs[i], "' are the same folder; give each run once"));
    }
  }
}

}  // namespace

int write_file_of_runs(const FileOfRuns& file, const Arguments& arguments, Console& console) {
  const std::vector<Flag> flags = {{"output",
                                    {},
                                    "FILE",
                                    text("file for the ", file.what, "; an earlier ", file.what,
                                         " of tessera is replaced [", file.output, "]")}};
  Problems problems;
  ParsedFlags parsed = parse_flags(arguments, flags, problems);
  if (parsed.help) {
    console.out << "tessera " << file.command << " RUN... [--output FILE]\n\n"
                << file.help << "\n\n"
                << flags_help(flags, console.columns);
    return 0;
  }
  std::string output = parsed.take_value("output");
  if (output.empty()) output = file.output;
  const std::string ending = file.output.substr(file.output.rfind('.'));
  if (!output.ends_with(ending))
    problems.add(text("--output is '", output, "'; it must end in ", ending));
  if (parsed.words.empty())
    problems.add(text(file.command, " takes the folders of one or more runs; give one"));
  find_doubles(parsed.words, problems);
  const std::string bytes = file.make(parsed.words, problems);
  check_result_file("output", output, file.kind, problems);
  problems.raise();
  write_atomically(output, bytes);
  console.out << printable(
                     text("wrote ", file.holds, " of ", join(parsed.words), " to '", output, "'"))
              << "\n";
  return 0;
}

}  // namespace tessera
