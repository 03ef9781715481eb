#include <algorithm>
#include <cstdlib>

#include "tessera/apps/command.h"
#include "tessera/apps/doctor.h"
#include "tessera/apps/environment.h"
#include "tessera/apps/flags.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"

namespace tessera {

int doctor_command(const Arguments& arguments, Console& console, const OwnFamilies&) {
  const std::vector<Flag> flags = {
      {"json", {}, "", "print JSON"},
      {"no-measure", {}, "", "leave out the rates of products and memory, which take a second"}};
  Problems problems;
  ParsedFlags parsed = parse_flags(arguments, flags, problems);
  if (parsed.help) {
    console.out
        << "tessera doctor [FOLDER] [--json] [--no-measure]\n\n"
           "Prints what this machine and environment offer, and what is wrong with it; the "
           "exit code is 0 where\nnothing is. FOLDER is where runs are to be written [.].\n\n"
        << flags_help(flags, console.columns);
    return 0;
  }
  const bool measures = !parsed.take_switch("no-measure");
  const bool as_json = parsed.take_switch("json");
  if (parsed.words.size() > 1)
    problems.add(text("doctor takes one folder, and has ", join(parsed.words)));
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
