#include <nlohmann/json.hpp>

#include "tessera/apps/command.h"
#include "tessera/apps/commands_here.h"
#include "tessera/apps/flags.h"
#include "tessera/apps/model_names.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/checkpoint/checkpoint.h"
#include "tessera/config/recorded.h"
#include "tessera/report/inspect.h"

namespace tessera {

namespace {

void print_inspect_help(Console& console) {
  console.out << "tessera inspect PATH [--digest] [--verify] [--json]\n\n"
                 "PATH is the folder of a run, a checkpoint, a folder of Hugging Face, a "
                 "safetensors file, or a graph written by --dump-dir.\n\n"
              << flags_help(inspect_flags({}), console.columns);
}

Inspected inspect_as_asked(ParsedFlags& parsed, Problems& problems, Console& console,
                           const OwnFamilies& families) {
  if (parsed.words.size() != 1)
    problems.add(text("inspect takes one PATH, not ", parsed.words.size(),
                      "; give the folder of a run or a checkpoint"));
  problems.raise();
  const std::string path = model_folder(parsed.words.front());
  Inspected out;
  const CheckpointJudge judge = recorded_run_judge(families, RecordedUse::Weights);
  if (parsed.take_switch("verify")) {
    std::vector<std::string> gone;
    const std::vector<std::string> damage = verify_checkpoints(path, judge, &gone);
    for (const std::string& folder : gone)
      console.err << "notice: '" << folder
                  << "' was removed while it was read, as a run removes its older checkpoints\n";
    if (!damage.empty()) fail(Fault::Checkpoint, join(damage, "\n  "));
    out.intact = true;
  }
  if (parsed.take_switch("digest")) {
    out.digest = naming_intact(path, "tessera inspect --digest", judge,
                               [&] { return digest(Checkpoint::open(path)); });
  } else if (!out.intact) {
    out.found = naming_intact(path, "tessera inspect", judge, [&] { return inspect(path, judge); });
  }
  return out;
}

}  // namespace

std::vector<Flag> inspect_flags(const OwnFamilies&) {
  return {
      {"digest",
       {},
       "",
       "print one hash over all tensors, independent of the files they are in",
       "",
       false},
      {"verify", {}, "", "read every byte and compare it with its hash", "", false},
      {"json", {}, "", "print JSON", "", false},
  };
}

std::string to_json(const Inspected& inspected) {
  if (inspected.found) return inspected.found->json;
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  if (inspected.intact) out["intact"] = true;
  if (!inspected.digest.empty()) out["digest"] = inspected.digest;
  return out.dump();
}

Inspected inspect_here(const Arguments& arguments, Console& console, const OwnFamilies& families) {
  Problems problems;
  ParsedFlags parsed = parse_flags(arguments, inspect_flags({}), problems);
  refuse_help(parsed.help);
  return inspect_as_asked(parsed, problems, console, families);
}

int inspect_command(const Arguments& arguments, Console& console, const OwnFamilies& families) {
  Problems problems;
  ParsedFlags parsed = parse_flags(arguments, inspect_flags({}), problems);
  if (parsed.help) return print_inspect_help(console), 0;
  const bool as_json = parsed.take_switch("json");
  const Inspected out = inspect_as_asked(parsed, problems, console, families);
  if (as_json) {
    console.out << to_json(out) << "\n";
    return 0;
  }
  if (out.intact)
    console.out << "intact: every byte of " << parsed.words.front() << " is as it was saved\n";
  if (!out.digest.empty()) console.out << out.digest << "\n";
  if (out.found) console.out << printable(out.found->text);
  return 0;
}

}  // namespace tessera
