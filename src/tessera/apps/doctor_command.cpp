#include <algorithm>
#include <cstdlib>

#include "tessera/apps/calibrate.h"
#include "tessera/apps/command.h"
#include "tessera/apps/doctor.h"
#include "tessera/apps/flags.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/launch/environment.h"

namespace tessera {

namespace {

std::vector<Flag> doctor_flags() {
  std::vector<Flag> out = {
      {"json", {}, "", "print JSON"},
      {"no-measure", {}, "", "skip measuring product and memory rates, which takes a second"},
      {"calibrate",
       {},
       "FILE",
       "only measure this machine, on all --devices at once, and write a machine file"}};
  out.push_back(secret_file_flag());
  for (const Flag& flag : field_flags()) {
    if (flag.name == "devices" || flag.name == "threads") out.push_back(flag);
  }
  return out;
}

}  // namespace

int doctor_command(const Arguments& arguments, Console& console, const OwnFamilies&) {
  const std::vector<Flag> flags = doctor_flags();
  Problems problems;
  ParsedFlags parsed = parse_flags(arguments, flags, problems);
  if (parsed.help) {
    console.out << "tessera doctor [FOLDER] [--json] [--no-measure]\n"
                   "tessera doctor --calibrate FILE [--devices N] [--threads N]\n\n"
                   "Prints what this machine and environment offer, and any problems; the exit "
                   "code is 0 if there are\nnone. FOLDER is where runs will be written [.]. The "
                   "second form writes a machine file for --machine,\nmeasured on one thread per "
                   "core unless --devices is given, or on launched ranks.\n\n"
                << flags_help(flags, console.columns);
    return 0;
  }
  const bool calibrates = parsed.find("calibrate") != nullptr;
  const std::string file = parsed.take_value("calibrate");
  const std::string secret_file = parsed.take_value("secret-file");
  const bool devices_given = parsed.find("devices") != nullptr;
  if (!calibrates && (devices_given || parsed.find("threads") != nullptr))
    problems.add("--devices and --threads do nothing without --calibrate FILE; leave them out");
  const bool measures = !parsed.take_switch("no-measure");
  const bool as_json = parsed.take_switch("json");
  if (!calibrates && parsed.words.size() > 1)
    problems.add(text("doctor takes one folder, not ", join(parsed.words)));
  if (calibrates) {
    const auto unread = [&](const std::string& what) {
      problems.add(text(what, " does nothing with --calibrate; leave it out"));
    };
    for (const std::string& folder : parsed.words) unread(text("the folder '", folder, "'"));
    if (as_json) unread("--json");
    if (!measures) unread("--no-measure");
    std::vector<std::string> notices;
    RanksCommand command{.name = "doctor", .config = {}, .problems = {}};
    command.config = configure(parsed, problems, notices);
    command.problems = problems;
    command.devices_given = devices_given;
    command.secret_file = secret_file;
    return calibrate_command(command, file, console);
  }
  problems.raise();
  DoctorFacts facts =
      doctor_facts(parsed.words.empty() ? "." : parsed.words.front(), process_environment());
  if (measures) measure(facts);
  const std::vector<DoctorLine> lines = examine(facts);
  console.out << (as_json ? to_json(lines, facts) : printable(to_text(lines)));
  const bool wrong =
      std::ranges::any_of(lines, [](const DoctorLine& line) { return !line.problem.empty(); });
  return wrong ? static_cast<int>(Fault::Resource) : 0;
}

}  // namespace tessera
