#include <algorithm>
#include <functional>

#include "tessera/apps/auto_plan.h"
#include "tessera/apps/buffer_layout.h"
#include "tessera/apps/check_flag.h"
#include "tessera/apps/command.h"
#include "tessera/apps/commands_here.h"
#include "tessera/apps/flags.h"
#include "tessera/apps/instruction_set.h"
#include "tessera/apps/plan_summary.h"
#include "tessera/apps/planning.h"
#include "tessera/apps/result_file.h"
#include "tessera/apps/search_text.h"
#include "tessera/base/cores.h"
#include "tessera/base/text.h"
#include "tessera/config/fields.h"
#include "tessera/config/memory_cap.h"
#include "tessera/data/dataset.h"
#include "tessera/device/device.h"
#include "tessera/files/file.h"
#include "tessera/launch/ranks.h"
#include "tessera/launch/take_machine.h"
#include "tessera/models/family.h"
#include "tessera/planner/answer.h"
#include "tessera/planner/answer_page.h"
#include "tessera/planner/plan_file.h"
#include "tessera/report/planned_pipeline.h"
#include "tessera/report/report.h"
#include "tessera/sources/dialogue_data.h"
#include "tessera/sources/row_data.h"
#include "tessera/train/run_data.h"
#include "tessera/train/run_source.h"
#include "tessera/train/task_start.h"

namespace tessera {

namespace {

/// What follows from the data, if there is some: the size of the vocabulary, where the
/// configuration leaves it open, and what rows tell. Data that training would refuse is refused.
void take_data(RunConfig& config, const InitModel& init, Problems& problems) {
  if (config.data.empty()) {
    if (config.model.vocabulary == 0)
      problems.add(
          "vocab-size is 0, which takes it from the data, and no data is given; give --data FILE "
          "or --vocab-size N");
    return;
  }
  const KnownModel known{.vocabulary = init.vocabulary ? &*init.vocabulary : nullptr,
                         .checkpoint = init.checkpoint,
                         .labels = init.labels};
  if (init.vocabulary) check_tokenizer(config, *init.vocabulary, init.checkpoint, problems);
  std::optional<Dataset> data = load_data(config, known, problems);
  if (!data) return;
  const bool was_open = complete_model(config, *data);
  const FieldProblems of_model = tessera::problems(config.model);
  if (was_open) problems.add(of_model);
  if (!of_model.empty()) return;
  PreparedRun run{.config = config,
                  .given = config,
                  .task = task_of(config.model),
                  .data = std::make_shared<const Dataset>(std::move(*data)),
                  .notices = {},
                  .output_held = {}};
  check_data(run, problems, DrawSamples::UnlessIndexed);
  if (problems.empty()) check_ids_and_take_test(run, problems, DrawSamples::UnlessIndexed);
}

/// Those on which the report depends.
std::vector<Flag> flags_that_matter(const std::vector<Flag>& flags) {
  std::vector<Flag> out;
  for (const Flag& flag : flags) {
    const Field* field = find_field(flag.name).field;  // none: the command's own, or --config
    if (field == nullptr || field->in_plan) out.push_back(flag);
  }
  return out;
}

/// What is asked beside the run.
struct PlanRequest {
  bool json = false, verbose = false, placements = false, check = false, automatic = false,
       precision = false;
  double memory_margin = 0;
  std::string plan_file, page, search_mode, picture, gpu;  // empty: none
};

PlanRequest take_request(ParsedFlags& parsed, Problems& problems) {
  PlanRequest out;
  out.json = parsed.take_switch("json");
  out.verbose = parsed.take_switch("verbose");
  out.placements = parsed.take_switch("placements");
  out.check = parsed.take_switch("check");
  out.automatic = parsed.take_switch("auto");
  out.precision = parsed.take_switch("auto-precision");
  out.memory_margin = take_memory_margin(parsed, out.automatic, problems);
  out.plan_file = take_result_file(parsed, "write-plan", OwnFile::Plan, problems);
  out.page = take_result_file(parsed, "html", OwnFile::Page, problems);
  out.picture = take_result_file(parsed, "schedule-svg", OwnFile::Picture, problems);
  out.gpu = parsed.take_value("gpu");
  if (parsed.find("search-mode") != nullptr) {
    out.search_mode = parsed.take_value("search-mode");
    problems.gather([&] { search_mode_of(out.search_mode); });
  }
  if (!out.automatic && (out.precision || !out.plan_file.empty() || !out.page.empty()))
    problems.add("--auto-precision, --write-plan and --html need --auto; give it too");
  const std::pair<bool, const char*> of_one_plan[] = {{out.verbose, "--verbose"},
                                                      {out.placements, "--placements"},
                                                      {out.check, "--check"},
                                                      {!out.picture.empty(), "--schedule-svg"}};
  for (const auto& [given, flag] : of_one_plan)
    if (given && out.automatic)
      problems.add(text(flag,
                        " does nothing with --auto; leave it out, and give it later with the flags "
                        "that --auto finds"));
  if (out.automatic && !out.search_mode.empty())
    problems.add(text("--auto plans whole runs, but --search-mode ", out.search_mode,
                      " places single ops; give one"));
  return out;
}

std::string unexpected_word(const std::string& word) {
  return text("unexpected '", word, "'; flags begin with --");
}

/// A search shares out devices itself, and says what it finds in one way.
void refuse_beside_search(const ParsedFlags& parsed, const PlanRequest& request,
                          Problems& problems) {
  const auto refuse = [&](std::string_view flag) {
    problems.add(
        text(flag, " does nothing with --search-mode ", request.search_mode, "; leave it out"));
  };
  if (request.json) refuse("--json");
  if (request.verbose) refuse("--verbose");
  if (request.placements) refuse("--placements");
  if (request.check) refuse("--check");
  if (!request.picture.empty()) refuse("--schedule-svg");
  if (!request.gpu.empty()) refuse("--gpu");
  for (const Setting& setting : parsed.settings) {
    const Field* field = find_field(setting.key).field;
    if (field == nullptr) continue;
    constexpr std::string_view kRead[] = {"devices", "machine", "memory-cap"};
    const bool shares_out =
        field->group == FieldGroup::Parallel || field->name == "micro-batch-size";
    if (shares_out && std::ranges::find(kRead, field->name) == std::end(kRead))
      refuse(setting.source);
  }
}

/// The run that is asked about, complete. Errors: all that is wrong with it.
RunConfig asked_run(ParsedFlags& parsed, const PlanRequest& request, Problems& problems,
                    Console& console, const OwnFamilies& families) {
  if (!request.search_mode.empty()) refuse_beside_search(parsed, request, problems);
  std::vector<std::string> notices;
  RunConfig config = configure(parsed, problems, notices, families);
  if (config.resume != "none" && config.resume != "auto")
    problems.add(text("--resume ", config.resume, " is a checkpoint for train, and plan ",
                      "reads none; plan the same run with its --config OUTPUT/config.toml, ",
                      "or its model with --init-from ", config.resume));
  take_machine(config, nullptr, problems);
  agree_on_choices(config, nullptr, problems);
  const InitModel init = take_init_model(config, problems, notices);
  if (!config.data.empty()) leave_open_to_rows(config, false);
  find_dialogues(config);
  complete(config);
  problems.gather([&] { find_columns(config); });
  // The planner and searches share out devices in ways of their own.
  const bool as_given = !request.automatic && request.search_mode.empty();
  if (as_given) note_idle_parallelism(config, notices);
  RunConfig judged = as_given ? config : with_one_device(config);
  complete(judged);
  find_problems(judged, problems);  // before the data is read, as train does
  take_data(config, init, problems);
  if (!request.search_mode.empty()) problems.gather([&] { require_devices(config); }, {"devices"});
  const NamedFile results[] = {
      {"write-plan", request.plan_file}, {"html", request.page}, {"schedule-svg", request.picture}};
  check_apart(results, files_to_read(config, parsed), problems);
  if (!request.picture.empty() && request.search_mode.empty() && config.parallel.pipeline == 1)
    problems.add(text("--schedule-svg ", request.picture,
                      " draws pipeline stages, but pipeline-model-parallel-size is 1; ",
                      "raise it, or leave --schedule-svg out"));
  if (!request.gpu.empty() && plugin_of(config).empty())
    problems.add(text("--gpu ", request.gpu, " is for --device pjrt:cuda, and device is ",
                      config.device, "; give both, or leave --gpu out"));
  problems.raise();
  for (const std::string& notice : notices) console.err << "notice: " << notice << "\n";
  return config;
}

/// By the compiler of the plugin, for the GPU of --gpu; `most`: bytes of a device, where they are
/// not those of --memory-cap.
CompiledBytes compile_for_gpu(const RunConfig& config, const PlanRequest& request,
                              const Compiled& compiled, std::optional<std::int64_t> most = {}) {
  AcceleratorOptions options = accelerator_options(config);
  if (most) options.most_bytes = most;
  return compile_for_gpu(options, request.gpu, plans_of(compiled), kTrainProgram);
}

/// Hears what a plan says before files are written, so that it is there, whatever becomes of these.
using PlanListener = std::function<void(const ShownPlan& plan)>;

void plan_automatically(const RunConfig& config, const PlanRequest& request, Console& console,
                        const PlanListener& hear) {
  PlanQuestion question = question_of(config, request.precision);
  question.margin = request.memory_margin;
  question.on_progress = search_progress(console);
  if (!request.gpu.empty()) {
    question.ask_compiler = [&](const RunConfig& of, const Compiled& compiled) {
      console.err << "compiling the best plan for " << request.gpu << "\n";
      return compile_for_gpu(of, request, compiled, question.room());
    };
  }
  const PlanAnswer answer = plan_for(question);
  hear({to_text(answer, question), to_json(answer, question)});
  if (!request.plan_file.empty())
    write_atomically(request.plan_file,
                     plan_file_text(config, answer.best().considered.choice, num_usable_cores()));
  if (!request.page.empty()) write_atomically(request.page, to_html(answer, question));
}

void plan_as_given(RunConfig config, const PlanRequest& request, Console& console,
                   const PlanListener& hear) {
  share_cores(config);
  const std::string fitted = fit_to_cap(config, nullptr, console);
  if (!fitted.empty()) console.err << "notice: " << fitted << "\n";
  const std::unique_ptr<Device> device = planned_device(config);
  const RunSetup setup(config);
  WantedPrograms wanted = wanted_programs(setup);
  wanted.placed = request.placements;
  wanted.stages = true;
  wanted.local = !request.gpu.empty();
  const Compiled compiled = request.check ? compile_checked(setup, wanted, *device, console)
                                          : compile_programs(setup, wanted, *device);
  PlanReport report = report_of(compiled, setup);
  if (!request.gpu.empty()) report.compiled = compile_for_gpu(config, request, compiled);
  if (!request.picture.empty())
    write_atomically(request.picture, planned_pipeline(compiled, setup)->svg());
  hear({text(plan_summary(report, config), request.verbose ? details_text(report) : "",
             placements_text(report.mesh)),
        to_json(report)});
}

void make_plan(const RunConfig& config, const PlanRequest& request, Console& console,
               const PlanListener& hear) {
  if (request.automatic) return plan_automatically(config, request, console, hear);
  plan_as_given(config, request, console, hear);
}

}  // namespace

std::vector<Flag> plan_flags(const OwnFamilies& families) {
  const auto command_switch = [](const char* name, const char* help) {
    return Flag{name, {}, "", help, "", false};
  };
  const auto with_value = [](const char* name, const char* value, const char* help) {
    return Flag{name, {}, value, help, "", false};
  };
  std::vector<Flag> out = field_flags(families);
  out.insert(
      out.begin(),
      {command_switch("json", "print JSON, with everything --verbose prints"),
       command_switch("verbose",
                      "print the whole plan: memory, stages, workspaces, collectives, kernels, "
                      "blocks, compile time"),
       check_flag(),
       command_switch("auto", "choose the fastest plan that fits; flags you give are kept"),
       command_switch("auto-precision", "with --auto: choose the precision too"),
       memory_margin_flag(),
       with_value("write-plan", "FILE", "with --auto: write the plan to a file, for train --plan"),
       with_value("html", "FILE", "with --auto: write the answer as an HTML page"),
       with_value(
           "search-mode", "MODE",
           "instead of a plan: print placements of single ops, found by dynamic_programming, "
           "recursive_programming or sharding_propagation"),
       with_value("gpu", "NAME",
                  "with --device pjrt:cuda: compile the step for this GPU, which need not be here, "
                  "and print the memory it takes; as \"NVIDIA H100 80GB HBM3\"; with --auto: find "
                  "a plan that fits as compiled"),
       command_switch("placements", "print the placement of each value on the mesh"),
       with_value("schedule-svg", "FILE",
                  "draw the timeline of each pipeline stage, as an SVG picture"),
       with_value("minimalloc", "FILE",
                  "instead of a plan: lay out the buffers of a CSV file in MiniMalloc's format, "
                  "within --memory-cap, or as small as possible")});
  return out;
}

ShownPlan plan_here(const Arguments& arguments, Console& console, const OwnFamilies& families) {
  Problems problems;
  ParsedFlags parsed = parse_flags(arguments, plan_flags(families), problems);
  for (const char* flag : {"search-mode", "minimalloc"})
    if (parsed.find(flag) != nullptr)
      problems.add(text("--", flag, " tells no plan; leave it to the command tessera plan"));
  if (parsed.help) problems.add("--help is for the command; leave it out");
  for (const std::string& word : parsed.words) problems.add(unexpected_word(word));
  const PlanRequest request = take_request(parsed, problems);
  ShownPlan out;
  make_plan(asked_run(parsed, request, problems, console, families), request, console,
            [&](const ShownPlan& plan) { out = plan; });
  return out;
}

int plan_command(const Arguments& arguments, Console& console, const OwnFamilies& families) {
  Problems problems;
  const std::vector<Flag> flags = plan_flags(families);
  ParsedFlags parsed = parse_flags(arguments, flags, problems);
  if (parsed.help) {
    console.out
        << "tessera plan --preset NAME [FLAG...]\n\nTakes every flag of tessera train. These "
           "matter:\n\n"
        << flags_help(flags_that_matter(flags), console.columns);
    return 0;
  }
  for (const std::string& word : parsed.words) problems.add(unexpected_word(word));
  if (asks_for_buffer_layout(parsed)) return lay_out_buffer_file(parsed, problems, console);
  const PlanRequest request = take_request(parsed, problems);
  const RunConfig config = asked_run(parsed, request, problems, console, families);
  if (!request.search_mode.empty()) {
    const std::optional<std::int64_t> cap = parse_memory_cap(config.memory_cap);
    console.out << search_text(config, search_mode_of(request.search_mode),
                               cap ? static_cast<double>(*cap) : kNever);
  } else {
    make_plan(config, request, console, [&](const ShownPlan& plan) {
      console.out << (request.json ? plan.json : plan.text);
      if (request.automatic) console.out.flush();  // files follow
    });
  }
  return 0;
}

}  // namespace tessera
