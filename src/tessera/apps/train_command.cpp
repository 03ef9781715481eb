#include <cstdio>

#include "tessera/apps/command.h"
#include "tessera/apps/flags.h"
#include "tessera/apps/instruction_set.h"
#include "tessera/apps/progress.h"
#include "tessera/apps/ranks.h"
#include "tessera/apps/stop_signal.h"
#include "tessera/base/text.h"
#include "tessera/train/output_folder.h"
#include "tessera/train/trainer.h"

namespace tessera {

namespace {

void print_end(const TrainResult& result, const RunConfig& config, Console& console) {
  const Summary& s = result.summary;
  const auto loss = [](const std::optional<double>& value) {
    return value ? json_number(*value) : std::string("not known");
  };
  const char* ending = result.ending == Ending::Finished   ? "done"
                       : result.ending == Ending::Interval ? "stopped after --exit-interval"
                                                           : "stopped on request";
  // Where the screen is gone, whoever reads the errors still learns what became of the run.
  std::ostream& out = console.out.flush() ? console.out : console.err;
  out << ending << ": step " << s.steps << " of " << config.steps << ", training loss "
      << loss(s.train_loss) << ", validation loss " << loss(s.val_loss) << ", "
      << json_number(s.seconds) << " s; all of it is in " << config.output << "\n";
  if (result.ending != Ending::Finished)
    out << "go on with " << flags_to_go_on(config.output) << "\n";
}

/// Until the arena is there, a run has nothing to save.
struct Starting : TrainCallback {
  NothingToSave nothing;
  void on_memory(const RunMemory&) override { nothing.end(); }
};

int train_on(Communicator* launched, const Arguments& arguments, Console& console) {
  Problems problems;
  const std::vector<Flag> flags = field_flags();
  const ParsedFlags parsed = parse_flags(arguments, flags, problems);
  if (parsed.help) {
    console.out << "tessera train --preset NAME --data FILE --output FOLDER [FLAG...]\n\n"
                << flags_help(flags, console.columns);
    return 0;
  }
  for (const std::string& word : parsed.words)
    problems.add(text("unexpected '", word, "'; flags begin with --, as in --data ", word));
  const std::atomic<bool>& stop = catch_stop_signals();
  Starting starting;
  if (launched != nullptr) starting.nothing.end();  // its peers would see a death
  std::vector<std::string> notices;
  RunConfig config = configure(parsed, problems, notices);
  take_launched_devices(config, launched, problems);
  take_choices(config, launched, problems);
  std::optional<PreparedRun> run = prepare_run(config, problems);
  problems.raise();
  run->notices.insert(run->notices.begin(), notices.begin(), notices.end());
  // All have looked at the output folder before rank 0 writes there.
  if (launched != nullptr) launched->run(Collective::barrier("prepared"), nullptr, nullptr);

  const RunConfig complete = run->config;
  Progress progress(console, config.log_every);
  TrainResult result;
  const auto lead = [&](Communicator* world, Device& device) {
    TrainOptions options{{&progress, &starting}, &stop};
    options.world = world;
    options.executor = kFast;
    result = train(std::move(*run), device, options);
  };
  const bool leads = launched == nullptr || launched->rank() == 0;
  try {
    on_ranks(complete, launched, [&](Communicator* world, Device& device) {
      if (world == nullptr || world->rank() == 0) return lead(world, device);
      follow(complete, device, *world, kFast);
    });
    progress.finish();
    if (!leads) return 0;
    print_end(result, config, console);
    return result.ending == Ending::Stopped ? kExitStopped : 0;
  } catch (...) {
    progress.finish();  // the message begins a line of its own
    throw;
  }
}

}  // namespace

int train_command(const Arguments& arguments, Console& console) {
  return on_launched_ranks(console, [&](Communicator* launched, Console& mine) {
    return train_on(launched, arguments, mine);
  });
}

}  // namespace tessera
