#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "tessera/apps/bench_peers.h"
#include "tessera/apps/bench_request.h"
#include "tessera/apps/bench_text.h"
#include "tessera/apps/command.h"
#include "tessera/apps/commands_here.h"
#include "tessera/apps/flags.h"
#include "tessera/apps/measured_turn.h"
#include "tessera/apps/switches.h"
#include "tessera/apps/turn_progress.h"
#include "tessera/base/cores.h"
#include "tessera/base/proc.h"
#include "tessera/base/text.h"
#include "tessera/bench/bench_report.h"
#include "tessera/config/run_needs.h"
#include "tessera/corpora/packages.h"
#include "tessera/files/file.h"
#include "tessera/launch/launch.h"
#include "tessera/launch/ranks.h"
#include "tessera/launch/stop_signal.h"

namespace tessera {

namespace {

/// 128 + SIGINT: what a shell says of a program that Ctrl-C has ended.
constexpr int kInterrupted = 130;

/// Whoever takes a turn, once in each round of them.
struct Player {
  Contestant contestant;  // its turns so far
  std::function<TurnBody()> turn;
  std::string said = {};  // the file to which a program writes what it says besides
};

/// Of a device of the machine whose peaks are asked for; 0: of none.
double peak_of(const BenchRequest& request, DType floats) {
  return request.peaks ? 1e9 * request.peaks->device.of(floats).gigaflops_per_s : 0;
}

/// The runs to measure, each turn in a folder of its own.
std::vector<Player> players_of(const BenchRequest& request, const std::string& folder,
                               const std::string& data) {
  std::vector<Player> out;
  for (const MeasuredRun& run : request.runs) {
    const std::optional<Precision> narrow = precision_of(run.config);
    const double peak = peak_of(request, narrow ? narrow->compute : DType::F32);
    Player player{{run.name, run.flags, run.config.global_batch_size, run.same_samples, {}, peak},
                  {}};
    RunConfig config = run.config;
    if (config.data.empty()) config.data = {data};
    const std::string output = text(folder, "/run-", out.size(), "-");
    const RunKind kind = request.planned ? RunKind::Planned : RunKind::Trained;
    player.turn = [config = std::move(config), kind, output, number = 0]() mutable {
      config.output = text(output, number++);
      return training(config, kind);
    };
    out.push_back(std::move(player));
  }
  return out;
}

/// Peers learn with the rates of the first player, whose turn comes first.
void add_peers(const BenchRequest& request, const Peers& peers, std::vector<Player>& players) {
  const std::int64_t batch = request.runs.front().config.global_batch_size;
  for (const PeerRun& run : peers.runs()) {
    const double peak = peak_of(request, parse_dtype(run.dtype));
    Player player{{run.name, "", batch, true, {}, peak}, {}, peers.said()};
    player.turn = [&peers, &players, run] {
      return peers.body(run, players.front().contestant.turns.front().rates);
    };
    players.push_back(std::move(player));
  }
}

/// Programs of whom nothing is known but what they tell.
void add_programs(const BenchRequest& request, const std::string& folder,
                  std::vector<Player>& players) {
  const std::int64_t batch = request.runs.front().config.global_batch_size;
  const AddedVariables steps = {{kStepsName, text(request.length.all())}};
  for (const ProgramBeside& beside : request.beside) {
    const std::string said = folder + "/program-said.txt";
    players.push_back({{beside.name, beside.command, batch, false, {}},
                       [=] {
                         return program({"/bin/sh", "-c", beside.command}, said, steps);
                       },
                       said});
  }
}

/// All turns of all players. One that failed is not tried again.
void take_turns(const BenchRequest& request, std::vector<Player>& players, TurnProgress& progress,
                const std::atomic<bool>& stop) {
  for (std::int64_t turn = 0; turn < request.turns; ++turn) {
    for (std::size_t i = 0; i < players.size() && !stop; ++i) {
      const std::size_t at = turn % 2 == 0 ? i : players.size() - 1 - i;
      Player& player = players[at];
      std::vector<Turn>& turns = player.contestant.turns;
      if (!turns.empty() && !turns.back().failure.empty()) continue;
      progress.begin(turn, at);
      Turn taken = measured_turn(
          player.turn(), request.length, [&](std::int64_t steps) { progress.step(steps); }, stop);
      if (stop) {  // what was cut short counts where there is nothing better
        if (turns.empty() && taken.measured()) turns.push_back(std::move(taken));
        return;
      }
      if (!taken.failure.empty() && !player.said.empty())
        taken.failure = failure_text(taken.failure, player.said);
      turns.push_back(std::move(taken));
      progress.end(turns.back());
    }
  }
}

std::string model_text(const RunConfig& config) {
  return config.preset.empty() ? text(config.model.family) : config.preset;
}

TemporaryFolder working_folder() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error)
    fail(Fault::Resource, "TMPDIR, or /tmp, is not a folder: ", error.message(),
         "; set TMPDIR to a writable folder");
  try {
    return TemporaryFolder::beside((folder / "bench").string());
  } catch (const Error& failure) {
    throw failure.with("in the folder for temporary files; TMPDIR names another");
  }
}

/// What is known before anything is measured.
BenchReport begun_report(const BenchRequest& request, const Arguments& arguments) {
  const RunConfig& plain = request.runs.front().config;
  BenchReport out;
  out.model = model_text(plain);
  out.flags = shell_text(arguments);
  out.version = kVersion;
  out.processor = processor_name();
  out.isa = to_text(choices_of(plain, machine_choices()).isa);
  out.cores = num_usable_cores();
  out.length = request.length;
  out.turns = request.turns;
  out.left_out = request.left_out;
  if (request.peaks) out.peaks = request.peaks->name;
  out.load_before = load_average();
  return out;
}

/// The code of the first failure that is none of memory; 0: all were measured, or are too large.
int first_failure(const std::vector<Player>& players) {
  for (const Player& player : players) {
    for (const Turn& turn : player.contestant.turns) {
      if (!turn.failure.empty() && !turn.planned_only)
        return turn.code != 0 ? turn.code : static_cast<int>(Fault::Resource);
    }
  }
  return 0;
}

struct EndedBench {
  BenchReport report;
  int code = 0;  // of the first failure
};

/// None: it was stopped before anything was measured.
std::optional<EndedBench> measure(const BenchRequest& request, const Arguments& arguments,
                                  Console& console, const std::atomic<bool>& stop) {
  const RunConfig& plain = request.runs.front().config;
  const TemporaryFolder folder = working_folder();
  const std::string data = folder.path() + "/text.txt";
  if (plain.data.empty()) write_bench_text(data);
  BenchReport report = begun_report(request, arguments);
  std::vector<Player> players = players_of(request, folder.path(), data);
  std::optional<Peers> peers;
  if (!request.python.empty()) {
    RunConfig whole = plain;
    if (whole.data.empty()) whole.data = {data};
    console.err << "comparing the peer's losses with ours" << std::endl;
    peers.emplace(request.python, whole, request.length, folder.path(), stop);
    report.peer_problems = peers->problems();
    add_peers(request, *peers, players);
  }
  add_programs(request, folder.path(), players);
  std::vector<std::string> names;
  for (const Player& player : players) names.push_back(player.contestant.name);
  TurnProgress progress(console, names, request.turns, request.length);
  take_turns(request, players, progress, stop);
  report.seconds = progress.finish();
  report.stopped = stop;
  const bool measured = std::ranges::any_of(players, [](const Player& player) {
    return std::ranges::any_of(player.contestant.turns, &Turn::measured);
  });
  if (report.stopped && !measured) return std::nullopt;
  report.load_after = load_average();
  const int code = first_failure(players);
  std::vector<Contestant> contestants;
  for (Player& player : players) contestants.push_back(std::move(player.contestant));
  report.results = standings(contestants);
  return EndedBench{std::move(report), code};
}

void write_files(const BenchRequest& request, const BenchReport& report) {
  if (!request.page.empty()) write_atomically(request.page, to_html(report));
  if (!request.results.empty()) write_atomically(request.results, to_json(report));
}

ParsedFlags parse_bench(const Arguments& arguments, const OwnFamilies& families,
                        Problems& problems) {
  return parse_flags(arguments, bench_command_flags(families), problems);
}

/// Errors: all that is wrong with it.
BenchRequest asked_bench(ParsedFlags& parsed, Problems& problems, Console& console,
                         const OwnFamilies& families) {
  BenchRequest out = read_bench_request(parsed, families, problems);
  if (launched_as(0).how != Launched::Alone)
    problems.add("bench starts its runs itself; start it without a launcher, and give --devices N");
  problems.raise();
  for (const std::string& notice : out.notices) console.err << "notice: " << notice << "\n";
  return out;
}

}  // namespace

std::vector<Flag> bench_command_flags(const OwnFamilies& families) {
  std::vector<Flag> out = field_flags(families);
  for (Flag& flag : bench_flags()) out.push_back(std::move(flag));
  return out;
}

BenchReport bench_here(const Arguments& arguments, Console& console, const std::atomic<bool>& stop,
                       const OwnFamilies& families) {
  Problems problems;
  ParsedFlags parsed = parse_bench(arguments, families, problems);
  refuse_help(parsed.help);
  const BenchRequest request = asked_bench(parsed, problems, console, families);
  std::optional<EndedBench> measured = measure(request, arguments, console, stop);
  require(measured.has_value(), "stopped on request before anything was measured");
  write_files(request, measured->report);
  return std::move(measured->report);
}

int bench_command(const Arguments& arguments, Console& console, const OwnFamilies& families) {
  Problems problems;
  ParsedFlags parsed = parse_bench(arguments, families, problems);
  if (parsed.help) {
    console.out << "tessera bench --preset NAME [--switches LIST | --all] [FLAG...]\n\n"
                   "Measures the effect of switches on speed, memory and losses. Switches have "
                   "short names; "
                   "any other\nflag of tessera train, without its dashes, is measured too:\n\n"
                << short_switches_text() << "\n"
                << flags_help(bench_flags(), console.columns)
                << "\nTakes the flags of tessera train; --steps N is the number of timed steps ["
                << TurnLength().steps << "].\n";
    return 0;
  }
  const BenchRequest request = asked_bench(parsed, problems, console, families);
  const std::optional<EndedBench> measured =
      measure(request, arguments, console, catch_stop_signals());
  if (!measured) {
    console.err << "stopped on request before anything was measured\n";
    return kInterrupted;
  }
  const BenchReport& report = measured->report;
  console.out << (request.as_json ? to_json(report) : to_text(report)) << std::flush;
  write_files(request, report);
  return report.stopped ? kInterrupted : measured->code;
}

}  // namespace tessera
