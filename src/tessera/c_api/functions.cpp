#include "tessera/c_api/functions.h"

#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <vector>

#include "tessera/apps/commands_here.h"
#include "tessera/apps/planning.h"
#include "tessera/apps/training.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/c_api/program.h"
#include "tessera/c_api/rapidformer_flags.h"
#include "tessera/c_api/step_request.h"
#include "tessera/launch/exit_code.h"
#include "tessera/train/metrics.h"
#include "tessera/user_code/own_evaluation.h"

namespace tessera {

namespace {

using ResultJson = nlohmann::ordered_json;

FunctionResult train_function(const FunctionCall& call);
FunctionResult plan_function(const FunctionCall& call);
FunctionResult verify_function(const FunctionCall& call);
FunctionResult bench_function(const FunctionCall& call);
FunctionResult inspect_function(const FunctionCall& call);
FunctionResult merge_adapter_function(const FunctionCall& call);
FunctionResult export_function(const FunctionCall& call);
FunctionResult evaluate_function(const FunctionCall& call);
FunctionResult predict_function(const FunctionCall& call);
FunctionResult compile_function(const FunctionCall& call);
template <FlagsOf whose>
FunctionResult rapidformer_flags(const FunctionCall& call);
/// Of a command whose result is what it prints.
template <Command run>
FunctionResult printed(const FunctionCall& call);
FunctionResult train_program(const FunctionCall& call);
FunctionResult rapidformer_program(const FunctionCall& call);
FunctionResult evaluate_program(const FunctionCall& call);

struct NamedFunction {
  const char* command;
  Function function;
  std::vector<Flag> (*flags)(const OwnFamilies& families) = nullptr;  // none: help alone says them
};
constexpr NamedFunction kFunctions[] = {
    {"train", train_function, train_flags},
    {"plan", plan_function, plan_flags},
    {"verify", verify_function, verify_flags},
    {"bench", bench_function, bench_command_flags},
    {"inspect", inspect_function, inspect_flags},
    {"export", export_function, export_flags},
    {"merge_adapter", merge_adapter_function, export_flags},
    {"evaluate", evaluate_function, evaluate_flags},
    {"predict", predict_function, predict_flags},
    {"rapidformer_flags", rapidformer_flags<FlagsOf::Program>},
    {"rapidformer_flags_of_own_data", rapidformer_flags<FlagsOf::OwnData>},
    {"prepare", printed<prepare_command>},
    {"preprocess_data", printed<preprocess_command>},
    {"score", printed<score_command>},
    {"report", printed<report_command>},
    {"chart", printed<chart_command>},
    {"doctor", printed<doctor_command>},
    {"compile", compile_function, step_flags},
};
constexpr NamedFunction kProgramFunctions[] = {
    {"train", train_program},
    {"rapidformer", rapidformer_program},
    {"evaluate", evaluate_program},
};

/// Errors: there is none.
const NamedFunction& find_function(std::string_view command,
                                   std::span<const NamedFunction> functions) {
  std::vector<std::string> names;
  for (const NamedFunction& each : functions) {
    if (command == each.command) return each;
    names.emplace_back(each.command);
  }
  fail(Fault::Usage, "no function '", command, "'; there are ", join(names));
}

std::string dumped(const ResultJson& json) {
  return json.dump(-1, ' ', false, ResultJson::error_handler_t::replace);
}

const char* ending_name(Ending ending) {
  switch (ending) {
    case Ending::Finished: return "finished";
    case Ending::Interval: return "interval";
    case Ending::Stopped: return "stopped";
  }
  return "finished";
}

FunctionResult trained(const AskedTraining& asked, const FunctionCall& call) {
  const TrainedRun run = train_here(asked, call.console, {&call.listener}, call.stop);
  return {dumped({{"ending", ending_name(run.result.ending)},
                  {"output", run.config.output},
                  {"rank", run.rank},
                  {"summary", ResultJson::parse(run.summary)}}),
          run.result.ending == Ending::Stopped ? kExitStopped : 0};
}

FunctionResult train_function(const FunctionCall& call) {
  AskedTraining asked = read_training_flags(call.arguments);
  asked.save = &call.save;
  asked.lr = &call.lr;
  return trained(asked, call);
}

FunctionResult trained_program(AskedTraining asked, const FunctionCall& call) {
  asked.problems.raise();
  std::atomic<bool> failed = false;
  const OwnRun run(asked.config, functions_of(*call.program, ProgramUse::Train, failed));
  asked.config = run.config();
  asked.save = &call.save;
  asked.lr = &call.lr;
  asked.failed = &failed;
  return trained(asked, call);
}

FunctionResult train_program(const FunctionCall& call) {
  return trained_program(read_training_flags(call.arguments), call);
}

FunctionResult rapidformer_program(const FunctionCall& call) {
  AskedTraining asked = read_training_flags(call.arguments);
  show_as_rapidformer(asked);
  return trained_program(std::move(asked), call);
}

FunctionResult evaluate_program(const FunctionCall& call) {
  const AskedTraining asked = read_training_flags(call.arguments);
  std::atomic<bool> failed = false;
  const OwnEvaluated found = evaluate_own(
      asked, call.console, functions_of(*call.program, ProgramUse::Evaluate, failed), call.stop);
  ResultJson scores = ResultJson::object();
  for (const auto& [name, score] : found.scores) scores[name] = score;
  return {dumped({{"ending", ending_name(found.stopped ? Ending::Stopped : Ending::Finished)},
                  {"samples", found.samples},
                  {"loss", found.loss},
                  {"scores", scores}}),
          found.stopped ? kExitStopped : 0};
}

/// What the command prints, for people and by --json.
FunctionResult both_forms(const std::string& text, const std::string& json) {
  return {dumped({{"text", text}, {"report", ResultJson::parse(json)}})};
}

FunctionResult plan_function(const FunctionCall& call) {
  const ShownPlan plan = plan_here(call.arguments, call.console);
  return both_forms(plan.text, plan.json);
}

FunctionResult verify_function(const FunctionCall& call) {
  const VerifyReport report = verify_here(call.arguments, call.console);
  return both_forms(to_text(report), to_json(report));
}

FunctionResult bench_function(const FunctionCall& call) {
  const BenchReport report = bench_here(call.arguments, call.console, call.stop);
  return both_forms(to_text(report), to_json(report));
}

FunctionResult inspect_function(const FunctionCall& call) {
  const Inspected inspected = inspect_here(call.arguments, call.console);
  return both_forms(inspected.found ? inspected.found->text : "", to_json(inspected));
}

FunctionResult exported(const ExportedTo& written) {
  const auto& [folder, model] = written;
  return {dumped({{"folder", folder},
                  {"family", model.family},
                  {"step", model.step},
                  {"left_out", model.left_out},
                  {"unwritten_tokens", model.unwritten_tokens}})};
}

FunctionResult export_function(const FunctionCall& call) {
  return exported(export_here(call.arguments, call.console));
}

FunctionResult merge_adapter_function(const FunctionCall& call) {
  return exported(merge_adapter_here(call.arguments, call.console));
}

FunctionResult evaluate_function(const FunctionCall& call) {
  const auto [model, data, scored] = evaluate_here(call.arguments, call.console);
  ResultJson scores = ResultJson::object();
  for (const auto& [name, score] : scored.scores) scores[name] = score;
  return {dumped({{"model", model},
                  {"data", data},
                  {"samples", scored.samples},
                  {"loss", scored.loss},
                  {"scores", scores}})};
}

FunctionResult compile_function(const FunctionCall&) {
  fail(Fault::Usage, "compile takes graphs; call tessera_step_compile");
}

FunctionResult predict_function(const FunctionCall& call) {
  const PredictionTable table = predict_here(call.arguments, call.console);
  return {dumped({{"columns", table.columns}, {"rows", table.rows}})};
}

template <FlagsOf whose>
FunctionResult rapidformer_flags(const FunctionCall& call) {
  return {rapidformer_flags_json(call.arguments, whose)};
}

template <Command run>
FunctionResult printed(const FunctionCall& call) {
  for (const std::string& argument : call.arguments) refuse_help(argument == "--help");
  std::ostringstream out;
  Console console{out, call.console.err};
  const int code = run(call.arguments, console, {});
  return {dumped({{"text", out.str()}}), code};
}

}  // namespace

Function function_of(std::string_view command) {
  return find_function(command, kFunctions).function;
}

Function program_function_of(std::string_view command) {
  return find_function(command, kProgramFunctions).function;
}

std::string flags_json(std::string_view command) {
  ResultJson out = ResultJson::array();
  const NamedFunction& function = find_function(command, kFunctions);
  require(function.flags != nullptr, "flags of ", command, " are not listed; see tessera ", command,
          " --help");
  for (const Flag& flag : function.flags({})) {
    if (!flag.elsewhere.empty()) continue;
    out.push_back({{"name", flag.name},
                   {"also", flag.also},
                   {"value", flag.value},
                   {"many", flag.many},
                   {"group", flag.group},
                   {"help", flag.help}});
  }
  return dumped(out);
}

}  // namespace tessera
