#include "tessera/apps/command.h"
#include "tessera/apps/flags.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/checkpoint/checkpoint.h"
#include "tessera/config/recorded.h"
#include "tessera/report/inspect.h"

namespace tessera {

int inspect_command(const Arguments& arguments, Console& console, const OwnFamilies& families) {
  const std::vector<Flag> flags = {
      {"digest",
       {},
       "",
       "print one hash over all tensors, independent of the files they are in",
       "",
       false},
      {"verify", {}, "", "read every byte and compare it with its hash", "", false},
  };
  Problems problems;
  ParsedFlags parsed = parse_flags(arguments, flags, problems);
  if (parsed.help) {
    console.out << "tessera inspect PATH [--digest] [--verify]\n\n"
                   "PATH is the folder of a run, a checkpoint, a folder of Hugging Face, a "
                   "safetensors file, or a graph written by --dump-dir.\n\n"
                << flags_help(flags, console.columns);
    return 0;
  }
  if (parsed.words.size() != 1)
    problems.add(text("inspect takes one PATH, not ", parsed.words.size(),
                      "; give the folder of a run or a checkpoint"));
  problems.raise();
  const std::string& path = parsed.words.front();
  const CheckpointJudge judge = recorded_run_judge(families, RecordedUse::Weights);
  const bool verify = parsed.take_switch("verify");
  if (verify) {
    std::vector<std::string> gone;
    const std::vector<std::string> damage = verify_checkpoints(path, judge, &gone);
    for (const std::string& folder : gone)
      console.err << "notice: '" << folder
                  << "' was removed while it was read, as a run removes its older checkpoints\n";
    if (!damage.empty()) fail(Fault::Checkpoint, join(damage, "\n  "));
    console.out << "intact: every byte of " << path << " is as it was saved\n";
  }
  const bool wants_digest = parsed.take_switch("digest");
  const auto inspected = [&] {
    return wants_digest ? digest(Checkpoint::open(path)) + "\n" : printable(describe(path, judge));
  };
  if (wants_digest || !verify)
    console.out << naming_intact(
        path, wants_digest ? "tessera inspect --digest" : "tessera inspect", judge, inspected);
  return 0;
}

}  // namespace tessera
