/// tessera predict and tessera evaluate: a trained model on other data.

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "tessera/apps/command.h"
#include "tessera/apps/commands_here.h"
#include "tessera/apps/data_names.h"
#include "tessera/apps/flags.h"
#include "tessera/apps/found_run.h"
#include "tessera/apps/glue_table.h"
#include "tessera/apps/model_names.h"
#include "tessera/apps/result_file.h"
#include "tessera/apps/sample_request.h"
#include "tessera/base/counted.h"
#include "tessera/base/text.h"
#include "tessera/config/fields.h"
#include "tessera/config/recorded.h"
#include "tessera/files/file.h"
#include "tessera/launch/ranks.h"
#include "tessera/train/evaluation.h"
#include "tessera/train/metrics.h"
#include "tessera/train/programs.h"
#include "tessera/train/validation.h"

namespace tessera {

namespace {

/// What `tessera predict` or `tessera evaluate` was asked to do.
struct EvaluationAsked {
  RanksCommand command;
  bool predicts = false, help = false, as_json = false, as_glue = false;
  std::string path, output;  // output empty: the screen
  std::int64_t batch = 32;
  std::vector<std::string> notices;
};

constexpr const char *kTsv = "tsv", *kGlue = "glue";  // of --format

std::vector<Flag> evaluation_flags(bool predicts, const OwnFamilies& families) {
  std::vector<Flag> out = {
      {"data", {"test-data"}, "FILE", "data to predict, of the kind the model was trained on"},
      {"batch-size",
       {"per-device-eval-batch-size"},
       "N",
       "samples computed at a time, on all devices together [32]"}};
  if (predicts) {
    out.push_back(
        {"output", {}, "FILE", "file to write the table to; - or without: standard output"});
    out.push_back({"overwrite", {}, "", "replace the file of --output if it exists"});
    out.push_back(
        {"format", {}, "FORMAT", "tsv, a table of all columns, or glue, what GLUE takes [tsv]"});
  } else {
    out.front().help = "data to evaluate on, of the kind the model was trained on";
    out.push_back({"json", {}, "", "print JSON"});
  }
  out.push_back(secret_file_flag());
  const std::vector<std::string_view> read = evaluation_fields();
  for (Flag& flag : field_flags(families)) {
    const bool device = std::ranges::find(kDeviceFields, flag.name) != std::end(kDeviceFields);
    if (!device && std::ranges::find(read, flag.name) == read.end()) continue;
    if (flag.name == "devices") flag.help = "devices, each a rank with its own threads [1]";
    out.push_back(std::move(flag));
  }
  return out;
}

/// Where the table goes; empty: to standard output.
std::string take_output(ParsedFlags& parsed, const std::string& path, const std::string& data,
                        Problems& problems) {
  const bool overwrite = parsed.take_switch("overwrite");
  if (const std::string* given = parsed.find("output"); given != nullptr && *given == "-") {
    parsed.take_value("output");
    return "";
  }
  std::string out = take_result_file(parsed, "output", {}, problems);
  if (out.empty()) return out;
  const NamedFile result[] = {{"output", out}}, read[] = {{"PATH", path}, {"data", data}};
  check_apart(result, read, problems);
  std::error_code ignored;
  if (!overwrite && out != data && std::filesystem::exists(out, ignored))
    problems.add(
        text("--output '", out, "' exists; give another file, or --overwrite to replace it"));
  return out;
}

EvaluationAsked read_evaluation(const Arguments& arguments, bool predicts,
                                const OwnFamilies& families) {
  EvaluationAsked out{
      .command = {.name = predicts ? "predict" : "evaluate", .config = {}, .problems = {}},
      .predicts = predicts,
      .path = {},
      .output = {},
      .notices = {}};
  Problems& problems = out.command.problems;
  ParsedFlags parsed = parse_flags(arguments, evaluation_flags(predicts, families), problems);
  out.help = parsed.help;
  if (out.help) return out;
  const std::string data = parsed.take_value("data"), batch = parsed.take_value("batch-size");
  if (data.empty()) problems.add("data is missing; give a file, like --data texts.tsv");
  if (!batch.empty() && !problems.gather([&] { read_number("--batch-size", batch, &out.batch); })) {
    problems.refuse("batch-size");
  } else if (out.batch < 1 || out.batch > 1'000'000) {
    problems.add(text("--batch-size is ", out.batch, "; it must be from 1 to 1000000"));
  }
  if (const std::string format = parsed.take_value("format"); predicts && !format.empty()) {
    if (format != kTsv && format != kGlue)
      problems.add(text("format is '", format, "'; it can be ", kTsv, ", ", kGlue));
    out.as_glue = format == kGlue;
  }
  if (!predicts) out.as_json = parsed.take_switch("json");
  if (parsed.words.size() == 1) {
    problems.gather([&] { out.path = model_folder(parsed.words.front()); });
  } else {
    problems.add(text(out.command.name, " takes one PATH, not ", parsed.words.size(),
                      "; give a run, a checkpoint or a folder of Hugging Face, like tessera ",
                      out.command.name, " runs/first --data ", data.empty() ? "FILE" : data));
  }
  if (predicts) out.output = take_output(parsed, out.path, data, problems);
  out.command.secret_file = parsed.take_value("secret-file");
  out.command.devices_given = parsed.find("devices") != nullptr;
  out.command.config = configure(parsed, problems, out.notices, families);
  out.command.config.test_data = {data};
  problems.gather([&] { out.command.config.test_data = data_paths({data}); });
  if (out.as_glue && out.command.config.skip_bad_rows)
    problems.add("--format glue has a line for each row, so --skip-bad-rows cannot leave some out");
  return out;
}

/// What all ranks compile.
struct EvaluationPrograms {
  RunConfig config;
  std::int64_t texts = 0;  // that are written at a time; 0: none, labels are predicted
};

/// Rank 0 finds it, and has the model and the data.
EvaluationPrograms find_programs(Communicator* launched, const EvaluationAsked& asked,
                                 std::optional<Evaluation>& evaluation) {
  const FoundRun found =
      find_run(launched, asked.command, [&](RunConfig& config, const Problems& problems) {
        problems.raise();
        evaluation.emplace(prepare_evaluation(asked.path, config, asked.batch, asked.predicts));
        config = evaluation->config;
        return std::min(std::ssize(evaluation->sources), asked.batch);
      });
  EvaluationPrograms out{on_devices_of(found.recorded, found.asked, asked.batch), found.texts};
  share_cores(out.config, launched);
  return out;
}

void print_evaluated(const Evaluated& evaluated, const EvaluationAsked& asked, Console& console) {
  const std::string& data = asked.command.config.test_data.front();
  if (asked.as_json) {
    console.out << to_json(EvaluatedModel{asked.path, data, evaluated}) << "\n";
    return;
  }
  const auto line = [&](std::string name, double value) {
    name.resize(std::max<std::size_t>(name.size() + 2, 16), ' ');
    console.out << name << json_number(value) << "\n";
  };
  console.out << asked.path << " on " << counted(evaluated.samples, "sample") << " of '" << data
              << "'\n";
  line("loss", evaluated.loss);
  for (const auto& [name, score] : evaluated.scores) line(name, score);
}

void print_predicted(const PredictionTable& table, const EvaluationAsked& asked, Console& console) {
  if (asked.output.empty()) {
    console.out << to_tsv(table);
    return;
  }
  write_atomically(asked.output, to_tsv(table));
  console.out << "wrote predictions of " << counted(std::ssize(table.rows), "row") << " to '"
              << asked.output << "'\n";
}

void print_evaluation_help(const EvaluationAsked& asked, Console& console,
                           const OwnFamilies& families) {
  console.out << "tessera " << asked.command.name << " PATH --data FILE [FLAG...]\n\n"
              << "PATH is the folder of a run (its newest checkpoint), a checkpoint, or a folder "
                 "of Hugging Face.\n"
              << (asked.predicts ? "Writes a table separated by tabs: the columns of each row "
                                   "that are not texts, the prediction, and\nprobabilities.\n\n"
                                 : "Prints the loss and the scores of the model's task.\n\n")
              << flags_help(evaluation_flags(asked.predicts, families), console.columns);
}

/// Errors: those of glue_table, before anything is computed.
void require_glue(const Evaluation& evaluation) {
  PredictionTable none{{"prediction"}, {}};
  const Task task = task_of(evaluation.config.model);
  if (evaluation.data && task.judge) {
    const std::unique_ptr<Judge> judge = task.judge(*evaluation.data);
    judge->keep_probabilities();
    none = judge->table();
  }
  glue_table(none, evaluation.config.model);
}

/// What the rank that leads finds.
struct Found {
  Evaluated evaluated;
  PredictionTable predicted = {};
};
Found evaluate_on(Communicator* launched, const EvaluationAsked& asked, Console& console) {
  std::optional<Evaluation> evaluation;
  const EvaluationPrograms programs = find_programs(launched, asked, evaluation);
  const RunConfig& config = programs.config;
  if (evaluation) {
    std::vector<std::string> notices = asked.notices;
    notices.insert(notices.end(), evaluation->notices.begin(), evaluation->notices.end());
    for (const std::string& notice : notices) console.err << "notice: " << notice << "\n";
    evaluation->config = config;
    if (asked.as_glue) require_glue(*evaluation);
  }
  const WantedPrograms wanted{
      .train = false, .evaluate = programs.texts == 0, .texts = programs.texts};
  const RunSetup setup(config);
  Found out;
  on_ranks(config, launched, console, [&](Communicator* world, const Backend& backend) {
    const int rank = world == nullptr ? 0 : world->rank();
    RankGroup group(compile_programs(setup, wanted, backend, rank).plan, backend, world, kFast);
    if (rank > 0) return group.follow();
    load_weights(group, *evaluation);
    if (asked.predicts) {
      out.predicted = predict(group, setup, *evaluation);
      if (asked.as_glue) out.predicted = glue_table(out.predicted, evaluation->config.model);
    } else {
      out.evaluated = evaluate(group, setup, *evaluation);
    }
    group.stop();
  });
  return out;
}

int evaluate_as_asked(const Arguments& arguments, Console& console, const OwnFamilies& families,
                      bool predicts) {
  const EvaluationAsked asked = read_evaluation(arguments, predicts, families);
  return on_launched_ranks(asked.command, console, [&](Communicator* launched, Console& mine) {
    if (asked.help) return print_evaluation_help(asked, mine, families), 0;
    const Found found = evaluate_on(launched, asked, mine);
    if (launched != nullptr && launched->rank() > 0) return 0;
    if (predicts) {
      print_predicted(found.predicted, asked, mine);
    } else {
      print_evaluated(found.evaluated, asked, mine);
    }
    return 0;
  });
}

}  // namespace

std::vector<Flag> evaluate_flags(const OwnFamilies& families) {
  return evaluation_flags(/*predicts=*/false, families);
}

std::vector<Flag> predict_flags(const OwnFamilies& families) {
  return evaluation_flags(/*predicts=*/true, families);
}

EvaluatedModel evaluate_here(const Arguments& arguments, Console& console,
                             const OwnFamilies& families) {
  const EvaluationAsked asked = read_evaluation(arguments, /*predicts=*/false, families);
  refuse_help(asked.help);
  require_alone(asked.command);
  return {asked.path, asked.command.config.test_data.front(),
          evaluate_on(nullptr, asked, console).evaluated};
}

PredictionTable predict_here(const Arguments& arguments, Console& console,
                             const OwnFamilies& families) {
  const EvaluationAsked asked = read_evaluation(arguments, /*predicts=*/true, families);
  refuse_help(asked.help);
  require_alone(asked.command);
  PredictionTable out = evaluate_on(nullptr, asked, console).predicted;
  if (!asked.output.empty()) write_atomically(asked.output, to_tsv(out));
  return out;
}

std::string to_json(const EvaluatedModel& evaluated) {
  nlohmann::ordered_json out = {{"model", evaluated.model},
                                {"data", evaluated.data},
                                {"samples", evaluated.scored.samples},
                                {"loss", evaluated.scored.loss}};
  for (const auto& [name, score] : evaluated.scored.scores) out[name] = score;
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

int predict_command(const Arguments& arguments, Console& console, const OwnFamilies& families) {
  return evaluate_as_asked(arguments, console, families, /*predicts=*/true);
}

int evaluate_command(const Arguments& arguments, Console& console, const OwnFamilies& families) {
  return evaluate_as_asked(arguments, console, families, /*predicts=*/false);
}

}  // namespace tessera
