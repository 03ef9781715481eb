#include "tessera/apps/bench_request.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "tessera/apps/bench_text.h"
#include "tessera/apps/result_file.h"
#include "tessera/apps/switches.h"
#include "tessera/base/text.h"
#include "tessera/config/fields.h"
#include "tessera/launch/take_machine.h"
#include "tessera/machines/find_machine.h"
#include "tessera/models/family.h"
#include "tessera/pretrained/pretrained_model.h"
#include "tessera/train/run_source.h"

namespace tessera {

namespace {

constexpr std::int64_t kMost = 1'000'000;
constexpr const char* kPlainName = "plain";
/// Of a run that goes on, is saved, or validates: a measurement does none of it.
constexpr const char* kNotOfABench[] = {
    "output",    "resume",          "epochs",       "exit-interval", "save-every",
    "keep-best", "eval-every",      "eval-at-end",  "sample-every",  "profile",
    "dump-dir",  "tensorboard-dir", "allow-changes"};
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

/// Of names and commands; each name is one that no other row of the table has.
std::vector<ProgramBeside> programs_of(const std::vector<std::string>& given,
                                       const std::vector<SwitchSet>& sets, Problems& problems) {
  std::vector<ProgramBeside> out;
  for (const std::string& word : given) {
    const std::size_t equals = word.find('=');
    const std::string name(trim(word.substr(0, equals)));
    const std::string command = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (name.empty() || trim(command).empty()) {
      problems.add(text("beside is '", word, "'; give a name and a command, like ",
                        "'mine=python3 mine.py'"));
      continue;
    }
    const auto same = [&](const auto& other) { return other.name == name; };
    if (name == kPlainName || std::ranges::any_of(sets, same) || std::ranges::any_of(out, same)) {
      problems.add(text("beside '", name, "' is the name of another row; give each its own"));
      continue;
    }
    out.push_back({name, command});
  }
  return out;
}

/// What is given for all runs: flags, and of a file what no flag gives.
std::vector<Setting> given_for_all(const ParsedFlags& parsed, Problems& problems) {
  std::vector<Setting> out, file;
  for (const Setting& setting : parsed.settings) {
    if (setting.key == "config") {
      file = read_config_file(setting.values.back(), problems);
    } else {
      out.push_back(setting);
    }
  }
  for (Setting& setting : file) {
    const Field* field = find_field(setting.key).field;
    const bool given = std::ranges::any_of(
        out, [&](const Setting& flag) { return find_field(flag.key).field == field; });
    if (!given) out.push_back(std::move(setting));
  }
  return out;
}

/// What a set says overrules what is told of all, as flags do a file. bf16 and fp16 are no two
/// names of one thing to a configuration; here one takes the place of the other.
RunConfig configure_set(const ParsedFlags& own, std::vector<Setting> of_all, Problems& problems,
                        const OwnFamilies& families) {
  static constexpr std::array<std::string_view, 3> kFloats = {"bf16", "fp16", "mixed-precision"};
  const auto floats = [](const std::string& key) {
    const Field* field = find_field(key).field;
    return field != nullptr && std::ranges::find(kFloats, field->name) != kFloats.end();
  };
  if (std::ranges::any_of(own.flags, floats))
    std::erase_if(of_all, [&](const Setting& setting) { return floats(setting.key); });
  std::vector<std::string> overruled;  // as is meant
  return configure(of_all, own.settings, problems, overruled, families);
}

bool same_samples(const RunConfig& a, const RunConfig& b) {
  return a.model.family == b.model.family && a.model.context == b.model.context &&
         a.model.masked_positions == b.model.masked_positions && a.data == b.data &&
         a.vocabulary == b.vocabulary && a.held_out == b.held_out && a.seed == b.seed &&
         a.sample_order == b.sample_order && a.global_batch_size == b.global_batch_size;
}

/// As the run will have it, but for the size of a vocabulary that the data will tell.
RunConfig completed(RunConfig config) {
  if (config.model.vocabulary == 0) config.model.vocabulary = kBenchCharacters;
  complete(config);
  return config;
}

/// What a flag asked for, and no file.
bool given_by_flag(const RunConfig& config, const char* field) {
  const auto asked = config.given.find(field);
  return asked != config.given.end() && starts_with(asked->second, "--");
}

/// The run of a configuration, short and without a trace: what a file says of the others, as the
/// one that a run has written does, is left out.
MeasuredRun run_of(const SwitchSet& switches, RunConfig config, const TurnLength& length,
                   Problems& problems) {
  const RunConfig standard;
  for (const char* name : kNotOfABench) {
    if (given_by_flag(config, name))
      problems.add(text(name, " has no use in bench, which keeps nothing; leave it out"));
    const Field& field = *find_field(name).field;
    copy_field(field, config, standard);
  }
  config.steps = length.all();
  config.eval_at_end = false;
  take_machine(config, nullptr, problems);
  std::vector<std::string> ignored;
  take_init_model(config, problems, ignored);
  // How fast a model is does not depend on its weights, which a folder may lack.
  if (PretrainedModel::is_at(config.init_from)) config.init_from.clear();
  find_problems(completed(config), problems);
  return {switches.name, join(switches.flags, " "), std::move(config)};
}

MeasuredRun run_of_set(const SwitchSet& set, const std::vector<Setting>& of_all,
                       const TurnLength& length, const OwnFamilies& families, Problems& problems) {
  const ParsedFlags own = parse_flags(set.flags, field_flags(families), problems);
  if (own.help) problems.add("help is not a switch");
  for (const char* name : {"steps", "config"}) {
    if (own.find(name) != nullptr)
      problems.add(text(name, " applies to all runs; give --", name, " beside --switches"));
  }
  return run_of(set, configure_set(own, of_all, problems, families), length, problems);
}

/// Families that read pairs of texts have no text of ours.
bool needs_pairs(const RunConfig& config) {
  const Task task = task_of(completed(config).model);
  return task.text && task.text->source > 0;
}

}  // namespace

std::vector<Flag> bench_flags() {
  return {
      {"switches",
       {},
       "LIST",
       "what to measure beside the run of the other flags: names joined by commas, or by + for "
       "switches that are on together, like bf16,bf16+zero-1"},
      {"all", {}, "", "measure a list of switches for this number of devices, alone and with bf16"},
      {"turns",
       {},
       "N",
       text("rounds; each set has one turn per round [", BenchRequest().turns, "]")},
      {"warmup",
       {},
       "N",
       text("untimed steps at the start of each turn [", TurnLength().warmup, "]")},
      {"planned", {}, "", "only plan the memory of each set, without training"},
      {"json", {}, "", "print JSON"},
      {"html", {}, "FILE", "also write a page with tables and charts"},
      {"results", {}, "FILE", "also write the --json output to a file"},
      {"peer",
       {},
       "PYTHON",
       "also measure PyTorch and JAX, if this Python has them, on the same weights, batches and "
       "threads; their losses are held against ours first"},
      {"peak-of",
       {},
       "MACHINE",
       "also print MFU: the model's FLOPs over the peak of this machine's devices (h100-256, or a "
       "machine file)"},
      {"beside",
       {},
       "NAME=COMMAND",
       text("also measure a program of your own: this command of a shell, which makes $",
            kStepsName, " steps and prints {\"seconds\": S} for each; several may be given"),
       {},
       true},
  };
}

BenchRequest read_bench_request(ParsedFlags& parsed, const OwnFamilies& families,
                                Problems& problems) {
  BenchRequest out;
  for (const std::string& word : parsed.words)
    problems.add(text("unexpected '", word, "'; flags begin with --, as in --switches ", word));
  out.as_json = parsed.take_switch("json");
  out.planned = parsed.take_switch("planned");
  const bool all = parsed.take_switch("all");
  out.page = take_result_file(parsed, "html", OwnFile::Page, problems);
  out.results = take_result_file(parsed, "results", OwnFile::BenchResults, problems);
  const bool peer_given = parsed.find("peer") != nullptr;
  out.python = parsed.take_value("peer");
  if (peer_given && out.python.empty()) problems.add("peer is empty; name a Python with PyTorch");
  const std::vector<std::string> beside = parsed.take_values("beside");
  for (const auto& [given, name] : {std::pair(peer_given, "peer"), {!beside.empty(), "beside"}}) {
    if (out.planned && given) problems.add(text("planned and ", name, " are both given; give one"));
  }
  if (parsed.find("peak-of") != nullptr) {
    try {
      out.peaks = find_machine(parsed.take_value("peak-of"));
    } catch (const Error& error) {
      problems.add(error.with("in --peak-of"));
    }
  }
  out.turns = take_count(parsed, "turns", out.turns, 1, problems);
  out.length.warmup = take_count(parsed, "warmup", out.length.warmup, 0, problems);
  const bool switches_given = parsed.find("switches") != nullptr;
  const std::string list = parsed.take_value("switches");
  std::vector<SwitchSet> sets;
  if (switches_given) sets = parse_switches(list, problems);
  if (all && switches_given) problems.add("all and switches are both given; give one");
  Problems of_plain;  // what is wrong with the run of all is told once
  RunConfig asked = configure(parsed, of_plain, out.notices, families);
  if (given_by_flag(asked, "steps")) {
    out.length.steps = asked.steps;
    if (asked.steps < 1) problems.add("steps is 0; bench needs at least 1 timed step");
  }
  out.beside = programs_of(beside, sets, problems);
  out.runs.push_back(run_of({kPlainName, {}}, std::move(asked), out.length, of_plain));
  const RunConfig plain = out.runs.front().config;
  for (const Error& problem : of_plain.list()) problems.add(problem);
  const NamedFile results[] = {{"html", out.page}, {"results", out.results}};
  check_apart(results, files_to_read(plain, parsed), problems);
  if (!of_plain.empty()) return out;
  if (plain.data.empty() && needs_pairs(plain))
    problems.add(text("data is missing: family ", plain.model.family, " trains on pairs of texts, ",
                      "and bench has none; give --data FILE"));
  if (all) sets = all_switches(plain.parallel.devices);
  const std::vector<Setting> of_all = given_for_all(parsed, problems);
  for (const SwitchSet& set : sets) {
    Problems own;
    MeasuredRun run = run_of_set(set, of_all, out.length, families, own);
    run.same_samples = same_samples(run.config, plain);
    if (own.empty()) out.runs.push_back(std::move(run));
    for (const Error& problem : own.list()) {
      if (all) {
        out.left_out.push_back(text(set.name, ": ", problem.what()));
        break;
      }
      problems.add(Error(problem.fault(), text("switches ", set.name, ": ", problem.what())));
    }
  }
  return out;
}

}  // namespace tessera
