#include "tessera/apps/command.h"
#include "tessera/apps/flags.h"
#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/device/device.h"
#include "tessera/train/report.h"

namespace tessera {

namespace {

/// The size of the vocabulary, from the data where the configuration leaves it open.
void find_vocabulary(RunConfig& config, Problems& problems) {
  if (config.model.vocabulary > 0) return;
  if (config.data.empty()) {
    problems.add(
        "vocab-size is 0, as many as the data has, and there is no data; give --data FILE "
        "or --vocab-size N");
    return;
  }
  problems.gather([&] {
    config.model.vocabulary =
        load_dataset(config.data, config.vocabulary, config.held_out).vocabulary.size();
  });
}

}  // namespace

int plan_command(const Arguments& arguments, Console& console) {
  Problems problems;
  std::vector<Flag> flags = field_flags();
  flags.insert(flags.begin(), Flag{"json", {}, "", "print JSON", "", false});
  ParsedFlags parsed = parse_flags(arguments, flags, problems);
  if (parsed.help) {
    console.out
        << "tessera plan --preset NAME [FLAG...]\n\nThe flags are those of tessera train.\n\n"
        << flags_help(flags, console.columns);
    return 0;
  }
  for (const std::string& word : parsed.words)
    problems.add(text("unexpected '", word, "'; flags begin with --"));
  const std::string* json = parsed.find("json");
  const bool as_json = json != nullptr && *json == "true";
  std::erase_if(parsed.settings, [](const Setting& s) { return s.key == "json"; });
  std::vector<std::string> notices;
  RunConfig config = configure(parsed, problems, notices);
  complete(config);
  find_vocabulary(config, problems);
  find_problems(config, problems);
  problems.raise();
  for (const std::string& notice : notices) console.err << "notice: " << notice << "\n";

  const auto device = make_cpu_device({static_cast<int>(config.threads), -1});
  const PlanReport report =
      report_of(compile_programs(config, wanted_programs(config), *device), config);
  console.out << (as_json ? to_json(report) : to_text(report));
  return 0;
}

}  // namespace tessera
