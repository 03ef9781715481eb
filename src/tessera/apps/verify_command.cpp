#include "tessera/apps/command.h"
#include "tessera/apps/flags.h"
#include "tessera/apps/instruction_set.h"
#include "tessera/apps/ranks.h"
#include "tessera/base/text.h"
#include "tessera/train/verify.h"

namespace tessera {

namespace {

constexpr std::int64_t kSteps = 3, kVocabulary = 256;  // where nothing says how many

int verify_on(Communicator* launched, const Arguments& arguments, Console& console) {
  Problems problems;
  std::vector<Flag> flags = field_flags();
  flags.insert(flags.begin(), Flag{"json", {}, "", "print JSON", "", false});
  ParsedFlags parsed = parse_flags(arguments, flags, problems);
  if (parsed.help) {
    console.out << "tessera verify --preset NAME --devices N [FLAG...]\n\n"
                   "Runs a few training steps (--steps, or 3) on random tokens, on one device and "
                   "on the mesh,\nand compares loss, gradients and updated parameters. Takes the "
                   "flags of tessera train.\n";
    return 0;
  }
  for (const std::string& word : parsed.words)
    problems.add(text("unexpected '", word, "'; flags begin with --"));
  const bool as_json = parsed.take_switch("json");
  const bool told_steps = parsed.find("steps") != nullptr;
  std::vector<std::string> notices;
  RunConfig config = configure(parsed, problems, notices);
  if (!told_steps) config.steps = kSteps;
  if (config.steps < 1) problems.add("steps is 0; verify needs at least 1");
  take_launched_devices(config, launched, problems);
  take_choices(config, launched, problems);
  if (config.model.vocabulary == 0) config.model.vocabulary = kVocabulary;
  complete(config);
  find_problems(config, problems);
  problems.raise();
  for (const std::string& notice : notices) console.err << "notice: " << notice << "\n";

  std::vector<StepTrace> mesh, one;
  on_ranks(config, launched, [&](Communicator* world, Device& device) {
    std::vector<StepTrace> trace = trace_steps(config, config.steps, device, world);
    if (world == nullptr || world->rank() == 0) mesh = std::move(trace);
  });
  if (launched != nullptr && launched->rank() > 0) return 0;
  RunConfig alone = config;
  alone.parallel = {};
  alone.micro_batch_size = alone.global_batch_size;
  on_ranks(alone, nullptr, [&](Communicator*, Device& device) {
    one = trace_steps(alone, alone.steps, device, nullptr);
  });
  VerifyReport report = compare_traces(one, mesh);
  report.devices = config.parallel.devices;
  report.mesh = to_text(strategy_of(config.parallel).mesh);
  console.out << (as_json ? to_json(report) : to_text(report));
  return report.ok() ? 0 : static_cast<int>(Fault::Numerics);
}

}  // namespace

int verify_command(const Arguments& arguments, Console& console) {
  return on_launched_ranks(console, [&](Communicator* launched, Console& mine) {
    return verify_on(launched, arguments, mine);
  });
}

}  // namespace tessera
