#include <array>
#include <chrono>
#include <cstdio>
#include <thread>

#include "tessera/apps/command.h"
#include "tessera/apps/flags.h"
#include "tessera/apps/progress.h"
#include "tessera/apps/stop_signal.h"
#include "tessera/base/text.h"
#include "tessera/comm/local.h"
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
  console.out << ending << ": step " << s.steps << " of " << config.steps << ", training loss "
              << loss(s.train_loss) << ", validation loss " << loss(s.val_loss) << ", "
              << json_number(s.seconds) << " s; all of it is in " << config.output << "\n";
  if (result.ending != Ending::Finished)
    console.out << "go on with " << flags_to_go_on(config.output) << "\n";
}

/// Cores are shared out; with as many threads as cores or fewer, each keeps to its own.
CpuOptions cpu_of(const RunConfig& config, int rank) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  const int devices = static_cast<int>(config.parallel.devices);
  CpuOptions out;
  out.threads = static_cast<int>(config.threads);
  if (devices == 1) return out;
  if (out.threads == 0) out.threads = std::max(1, cores / devices);
  if (out.threads * devices <= cores) out.first_core = rank * out.threads;
  return out;
}

/// Longer than anything that one rank does alone: writing a checkpoint, for example.
constexpr std::chrono::minutes kRankDeadline{30};

TrainResult on_devices(PreparedRun run, TrainOptions options) {
  const RunConfig config = run.config;
  const int devices = static_cast<int>(config.parallel.devices);
  if (devices == 1) {
    const auto device = make_cpu_device(cpu_of(config, 0));
    return train(std::move(run), *device, options);
  }
  TrainResult result;
  LocalOptions local;
  local.deadline = kRankDeadline;
  run_ranks(
      devices,
      [&](Communicator& world) {
        const auto device = make_cpu_device(cpu_of(config, world.rank()));
        if (world.rank() > 0) return follow(config, *device, world);
        options.world = &world;
        result = train(std::move(run), *device, options);
      },
      local);
  return result;
}

}  // namespace

int train_command(const Arguments& arguments, Console& console) {
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
  std::vector<std::string> notices;
  const RunConfig config = configure(parsed, problems, notices);
  std::optional<PreparedRun> run = prepare_run(config, problems);
  problems.raise();
  run->notices.insert(run->notices.begin(), notices.begin(), notices.end());

  const std::atomic<bool>& stop = catch_stop_signals();
  Progress progress(console, config.log_every);
  try {
    const TrainResult result = on_devices(std::move(*run), {{&progress}, &stop});
    progress.finish();
    print_end(result, config, console);
    return result.ending == Ending::Stopped ? kExitStopped : 0;
  } catch (...) {
    progress.finish();  // the message begins a line of its own
    throw;
  }
}

}  // namespace tessera
