#include <algorithm>
#include <atomic>
#include <charconv>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "tessera/apps/bench_peers.h"
#include "tessera/apps/bench_text.h"
#include "tessera/apps/command.h"
#include "tessera/apps/flags.h"
#include "tessera/apps/instruction_set.h"
#include "tessera/apps/launch.h"
#include "tessera/apps/measured_turn.h"
#include "tessera/apps/ranks.h"
#include "tessera/apps/stop_signal.h"
#include "tessera/apps/switches.h"
#include "tessera/apps/turn_progress.h"
#include "tessera/base/cores.h"
#include "tessera/base/proc.h"
#include "tessera/base/text.h"
#include "tessera/bench/bench_report.h"
#include "tessera/data/file.h"
#include "tessera/data/packages.h"
#include "tessera/train/fields.h"

namespace tessera {

namespace {

constexpr std::int64_t kTurns = 3, kMost = 1'000'000;
/// Of a run that goes on, is saved, or validates: a measurement does none of it.
constexpr const char* kNotOfABench[] = {"output",       "resume",    "epochs",     "exit-interval",
                                        "save-every",   "keep-best", "eval-every", "eval-at-end",
                                        "sample-every", "profile",   "dump-dir",   "allow-changes"};

/// One of the runs to measure.
struct MeasuredRun {
  std::string name, flags;
  RunConfig config;
};

/// Whoever takes a turn, once in each round of them.
struct Player {
  Contestant contestant;  // its turns so far
  std::function<TurnBody()> turn;
  std::function<std::string(const std::string&)> failure_text = nullptr;  // of its failures
};

struct BenchRequest {
  std::vector<MeasuredRun> runs;
  TurnLength length;
  std::int64_t turns = kTurns;
  bool as_json = false;
  std::string page, results;  // files; empty: none
  std::string python;         // of peers; empty: none
  std::vector<std::string> notices;
};

std::vector<Flag> bench_flags() {
  return {
      {"switches",
       {},
       "LIST",
       "what to measure beside the run that the other flags describe: names with commas between "
       "them, or with + between switches that are on together, like bf16,bf16+zero-1"},
      {"all", {}, "", "measure the switches that matter on so many devices, alone and together"},
      {"turns", {}, "N", text("turns of each; every other one in reverse order [", kTurns, "]")},
      {"warmup",
       {},
       "N",
       text("steps of a turn before those that are timed [", TurnLength().warmup, "]")},
      {"json", {}, "", "print JSON"},
      {"html", {}, "FILE", "also write a page with tables and charts"},
      {"results", {}, "FILE", "also write what --json prints into a file"},
      {"peer",
       {},
       "PYTHON",
       "also measure PyTorch, which this Python has, on the same weights, batches and threads; its "
       "losses are held against ours first"},
  };
}

/// The count that a flag of the command's own gives.
std::int64_t take_count(ParsedFlags& parsed, const std::string& name, std::int64_t standard,
                        std::int64_t least, Problems& problems) {
  if (parsed.find(name) == nullptr) return standard;
  const std::string value = parsed.take_value(name);
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), count);
  const bool whole = error == std::errc() && end == value.data() + value.size();
  if (whole && count >= least && count <= kMost) return count;
  problems.add(text(name, " is '", value, "'; give a whole number from ", least, " to ", kMost));
  return standard;
}

/// Flags that a measurement does not take.
void refuse_unread(const ParsedFlags& parsed, Problems& problems) {
  for (const char* field : kNotOfABench) {
    if (parsed.find(field) != nullptr)
      problems.add(text(field, " is of no use to bench, which trains for some steps and keeps ",
                        "nothing; leave it out"));
  }
}

/// The run of these settings, short and without a trace.
MeasuredRun run_of(const SwitchSet& switches, const ParsedFlags& base, const TurnLength& length,
                   const OwnFamilies& families, Problems& problems) {
  ParsedFlags parsed = parse_flags(switches.flags, field_flags(families), problems);
  refuse_unread(parsed, problems);
  std::vector<Setting> settings;  // a switch overrules what is told of all
  for (std::size_t i = 0; i < base.settings.size(); ++i) {
    if (std::ranges::find(parsed.flags, base.flags[i]) == parsed.flags.end())
      settings.push_back(base.settings[i]);
  }
  parsed.settings.insert(parsed.settings.begin(), settings.begin(), settings.end());
  MeasuredRun out{switches.name, join(switches.flags, " "), {}};
  std::vector<std::string> notices;
  out.config = configure(parsed, problems, notices, families);
  RunConfig& config = out.config;
  config.steps = length.all();
  config.eval_every = config.sample_every = config.save_every = 0;
  config.eval_at_end = config.keep_best = false;
  RunConfig whole = config;
  if (whole.model.vocabulary == 0) whole.model.vocabulary = kBenchCharacters;
  complete(whole);
  find_problems(whole, problems);
  return out;
}

BenchRequest read_bench_request(ParsedFlags& parsed, const OwnFamilies& families,
                                Problems& problems) {
  BenchRequest out;
  for (const std::string& word : parsed.words)
    problems.add(text("unexpected '", word, "'; flags begin with --, as in --switches ", word));
  out.as_json = parsed.take_switch("json");
  const bool all = parsed.take_switch("all");
  const auto take_file = [&](const char* name, const char* wanted) {
    const bool told = parsed.find(name) != nullptr;
    std::string file = parsed.take_value(name);
    if (told && file.empty()) problems.add(text(name, " is empty; name ", wanted));
    return file;
  };
  out.page = take_file("html", "a file to write");
  out.results = take_file("results", "a file to write");
  out.python = take_file("peer", "a Python with PyTorch");
  out.turns = take_count(parsed, "turns", kTurns, 1, problems);
  out.length.warmup = take_count(parsed, "warmup", out.length.warmup, 0, problems);
  const bool told_switches = parsed.find("switches") != nullptr;
  const std::string list = parsed.take_value("switches");
  std::vector<SwitchSet> sets;
  if (told_switches) sets = parse_switches(list, problems);
  if (all && told_switches) problems.add("all and switches are both given; give one of them");
  refuse_unread(parsed, problems);
  const bool told_steps = parsed.find("steps") != nullptr;
  if (told_steps) {
    Problems told_later;
    out.length.steps = configure(parsed, told_later, out.notices, families).steps;
    if (out.length.steps < 1) problems.add("steps is 0; bench needs at least 1 that is timed");
    out.notices.clear();
  }
  Problems of_plain;  // what is wrong with the run of all is told once
  out.runs.push_back(run_of({"plain", {}}, parsed, out.length, families, of_plain));
  for (const Error& problem : of_plain.list()) problems.add(problem);
  if (!of_plain.empty()) return out;
  if (all) sets = all_switches(out.runs.front().config.parallel.devices);
  for (const SwitchSet& set : sets) {
    Problems own;
    out.runs.push_back(run_of(set, parsed, out.length, families, own));
    for (const Error& problem : own.list())
      problems.add(Error(problem.fault(), text("switches ", set.name, ": ", problem.what())));
  }
  return out;
}

/// The runs to measure, each turn in a folder of its own.
std::vector<Player> players_of(const BenchRequest& request, const std::string& folder,
                               const std::string& data) {
  std::vector<Player> out;
  for (const MeasuredRun& run : request.runs) {
    Player player{{run.name, run.flags, run.config.global_batch_size, {}}, nullptr};
    RunConfig config = run.config;
    if (config.data.empty()) config.data = {data};
    const std::string output = text(folder, "/run-", out.size(), "-");
    player.turn = [config = std::move(config), output, number = 0]() mutable {
      config.output = text(output, number++);
      return training(config);
    };
    out.push_back(std::move(player));
  }
  return out;
}

/// Peers learn with the rates of the first player, whose turn comes first.
void add_peers(const Peers& peers, std::int64_t batch, std::vector<Player>& players) {
  for (const PeerRun& run : peers.runs()) {
    Player player{{run.name, "", batch, {}}, nullptr};
    player.turn = [&peers, &players, run] {
      return peers.body(run, players.front().contestant.turns.front().rates);
    };
    player.failure_text = [&peers](const std::string& failure) {
      return peers.failure_text(failure);
    };
    players.push_back(std::move(player));
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
      if (!taken.failure.empty() && player.failure_text)
        taken.failure = player.failure_text(taken.failure);
      turns.push_back(std::move(taken));
      progress.end(turns.back());
    }
  }
}

std::string model_text(const RunConfig& config) {
  return config.preset.empty() ? text(config.model.family) : config.preset;
}

}  // namespace

int bench_command(const Arguments& arguments, Console& console, const OwnFamilies& families) {
  std::vector<Flag> flags = field_flags(families);
  for (Flag& flag : bench_flags()) flags.push_back(std::move(flag));
  Problems problems;
  ParsedFlags parsed = parse_flags(arguments, flags, problems);
  if (parsed.help) {
    console.out << "tessera bench --preset NAME [--switches LIST | --all] [FLAG...]\n\n"
                   "Measures what switches bring: speed, memory, and whether losses stay the same. "
                   "Short names of\nswitches; any other flag of tessera train is one too, without "
                   "its dashes:\n\n"
                << short_switches_text() << "\n"
                << flags_help(bench_flags(), console.columns)
                << "\nTakes the flags of tessera train; --steps N is the number of timed steps ["
                << TurnLength().steps << "].\n";
    return 0;
  }
  const BenchRequest request = read_bench_request(parsed, families, problems);
  if (launched_as(0).how != Launched::Alone)
    problems.add("bench starts its runs itself; start it without a launcher, and give --devices N");
  problems.raise();
  const std::atomic<bool>& stop = catch_stop_signals();
  const RunConfig& plain = request.runs.front().config;
  const TemporaryFolder folder =
      TemporaryFolder::beside((std::filesystem::temp_directory_path() / "bench").string());
  const std::string data = folder.path() + "/text.txt";
  if (plain.data.empty()) write_bench_text(data);

  BenchReport report;
  report.model = model_text(plain);
  report.flags = shell_text(arguments);
  report.version = kVersion;
  report.processor = processor_name();
  report.isa = to_text(choices_of(plain, machine_choices()).isa);
  report.cores = num_usable_cores();
  report.length = request.length;
  report.turns = request.turns;
  report.load_before = load_average();
  std::vector<Player> players = players_of(request, folder.path(), data);
  std::optional<Peers> peers;
  if (!request.python.empty()) {
    RunConfig whole = plain;
    if (whole.data.empty()) whole.data = {data};
    console.err << "comparing the losses of the peer with ours" << std::endl;
    peers.emplace(request.python, whole, request.length, folder.path(), stop);
    report.peer_problem = peers->problem();
    add_peers(*peers, plain.global_batch_size, players);
  }
  std::vector<std::string> names;
  for (const Player& player : players) names.push_back(player.contestant.name);
  TurnProgress progress(console, names, request.turns, request.length);
  take_turns(request, players, progress, stop);
  report.seconds = progress.finish();
  if (stop) return kExitStopped;
  report.load_after = load_average();
  std::vector<Contestant> contestants;
  for (Player& player : players) contestants.push_back(std::move(player.contestant));
  report.results = standings(contestants);
  if (!request.page.empty()) write_atomically(request.page, to_html(report));
  if (!request.results.empty()) write_atomically(request.results, to_json(report));
  console.out << (request.as_json ? to_json(report) : to_text(report));
  const bool failed = std::ranges::any_of(
      report.results, [](const Standing& s) { return !s.failure.empty() && !s.too_large; });
  return failed ? static_cast<int>(Fault::Resource) : 0;
}

}  // namespace tessera
