#include <cmath>
#include <cstdio>

#include "tessera/apps/auto_plan.h"
#include "tessera/apps/check_flag.h"
#include "tessera/apps/command.h"
#include "tessera/apps/commands_here.h"
#include "tessera/apps/flags.h"
#include "tessera/apps/instruction_set.h"
#include "tessera/apps/patient_callback.h"
#include "tessera/apps/progress.h"
#include "tessera/apps/slow_start.h"
#include "tessera/apps/training.h"
#include "tessera/base/cores.h"
#include "tessera/base/counted.h"
#include "tessera/base/text.h"
#include "tessera/config/fields.h"
#include "tessera/config/output_folder.h"
#include "tessera/files/file.h"
#include "tessera/launch/agreement.h"
#include "tessera/launch/ranks.h"
#include "tessera/launch/stop_signal.h"
#include "tessera/launch/take_machine.h"
#include "tessera/planner/answer.h"
#include "tessera/planner/choice.h"
#include "tessera/train/memory_choice.h"
#include "tessera/train/trainer.h"

namespace tessera {

namespace {

void print_end(const TrainResult& result, const RunConfig& config, Console& console) {
  const Summary& s = result.summary;
  const auto loss = [](const std::optional<double>& value) {
    if (!value) return std::string("not known");
    return std::isfinite(*value) ? json_number(*value) : std::string("not finite");
  };
  const char* ending = result.ending == Ending::Finished   ? "done"
                       : result.ending == Ending::Interval ? "stopped after --exit-interval"
                                                           : "stopped on request";
  // Where the screen is gone, whoever reads the errors still learns what became of the run.
  std::ostream& out = console.out.flush() ? console.out : console.err;
  // A run that goes on from a later step than it asks for has nothing to do.
  out << ending << ": step " << s.steps << (s.steps > config.steps ? ", beyond " : " of ")
      << config.steps << ", training loss " << loss(s.train_loss) << ", validation loss "
      << loss(s.val_loss) << ", " << json_number(s.seconds) << " s; all files are in "
      << config.output << "\n";
  if (result.ending != Ending::Finished)
    out << "resume with " << flags_to_go_on(config.output) << "\n";
}

/// Parameters that give no finite loss are a failure, also where every step was of a finite one.
std::optional<Error> unusable_end(const TrainedRun& run) {
  const std::optional<double> loss = run.result.summary.val_loss;
  if (run.result.ending == Ending::Stopped || !loss || std::isfinite(*loss)) return std::nullopt;
  return Error(Fault::Numerics,
               text("the last validation loss is ", *loss, ": the parameters after step ",
                    run.result.summary.steps, " are unusable; lower --lr or --clip-grad, or ",
                    "lengthen --lr-warmup-steps, and start again, or resume from an earlier ",
                    "checkpoint of '", run.config.output, "'"));
}

/// Until the arena is there, a run has nothing to save.
struct Starting : TrainCallback {
  NothingToSave nothing;
  void on_lock(const std::string& path) override { nothing.removes(path); }
  void on_memory(const RunMemory&) override { nothing.end(); }
};

/// What was asked for, with what a program adds.
struct TrainRequest {
  RanksCommand command{.name = "train", .config = {}, .problems = {}, .stops = true};
  AskedTraining asked;
  std::vector<TrainCallback*> callbacks;  // of a program
  bool shown = true;                      // on the console
  std::atomic<bool>* stop = nullptr;      // asks for it; none: signals do
  bool saves = true;
};

std::unique_ptr<RunDisplay> display_of(const TrainRequest& request, const RunConfig& config,
                                       Console& console) {
  if (request.asked.display) return request.asked.display(config, console);
  return std::make_unique<Progress>(console, config.log_every);
}

/// What the memory cap chooses is told as if it had been asked for: the run goes on with it.
void fit_run_to_cap(PreparedRun& run, const Communicator* launched, Console& console) {
  const std::string fitted = fit_to_cap(run.config, launched, console);
  if (fitted.empty()) return;
  run.notices.push_back(fitted);
  set_memory_choice(run.given, memory_choice_of(run.config));
}

/// What the planner chooses is told as if it had been asked for, too. Launched ranks are as many as
/// they are.
void plan_run(PreparedRun& run, bool launched, double memory_margin, Console& console) {
  PlanQuestion question = question_of(run.config, false);
  question.margin = memory_margin;
  question.what_if = false;
  question.on_progress = search_progress(console);
  if (launched) {
    question.devices = run.config.parallel.devices;
    question.base.given["devices"] = text("--devices ", question.devices);
  }
  const PlanAnswer answer = plan_for(question);
  console.out << to_text(answer, question);
  const PlanChoice& choice = answer.best().considered.choice;
  run.config = with(run.config, choice);
  run.given = with(run.given, choice);
}

/// All that rank 0 finds before anything is written. The others need of it only the configuration:
/// rank 0 reads the text, and draws the batches of all.
RunConfig prepare(Communicator* launched, const TrainRequest& request, Console& console,
                  std::optional<PreparedRun>& run) {
  RunConfig asked = request.command.config;
  Problems problems = request.command.problems;
  agree_on_choices(asked, launched, problems);
  take_machine(asked, launched, problems);
  const auto found = from_leader(launched, [&] {
    RunConfig config = asked;
    take_launched_devices(config, request.command.devices_given, launched, problems);
    if (request.asked.automatic) {
      if (!problems.gather([&] { require_kernels(config); }, {"machine"})) problems.raise();
      if (launched == nullptr) config.parallel.devices = devices_to_plan(config);
    }
    const bool automatic = request.asked.automatic;
    std::optional<PreparedRun> prepared = prepare_run(automatic ? with_one_device(config) : config,
                                                      problems, request.asked.other_run);
    if (!prepared && request.asked.plan && is_of_another_model(*request.asked.plan, config))
      problems.add(text("the plan '", request.asked.plan_path, "' was made for ",
                        request.asked.plan->made_for.model));
    problems.raise();
    run.emplace(std::move(*prepared));
    const std::vector<std::string>& notices = request.asked.notices;
    run->notices.insert(run->notices.begin(), notices.begin(), notices.end());
    if (request.asked.plan)
      require_made_for(*request.asked.plan, run->config,
                       launched != nullptr ? launched->cores_of_host() : num_usable_cores(),
                       request.asked.plan_path);
    if (automatic) {
      take_devices(run->config, config);
      take_devices(run->given, config);
      plan_run(*run, launched != nullptr, request.asked.memory_margin, console);
    }
    fit_run_to_cap(*run, launched, console);
    if (request.asked.check) {
      const RunSetup setup(run->config, run->task);
      compile_checked(setup, wanted_programs(setup), *planned_device(run->config), console);
    }
    return record_of(run->config);
  });
  if (run) return run->config;
  RunConfig config = config_over(asked, found, "the configuration of rank 0");
  config.choices = choices_of(config, *config.choices);  // as a checkpoint may say
  complete(config);
  return config;
}

/// `first_here`: this rank was launched, is the first of its process, and speaks for it. The result
/// is that of the rank that leads.
TrainedRun train_on(Communicator* launched, bool first_here, const TrainRequest& request,
                    Console& console) {
  const std::atomic<bool>& stop = request.stop != nullptr ? *request.stop : catch_stop_signals();
  Starting starting;
  // Its peers would see a death; a program goes on; and a measurement never has anything to save.
  if (launched != nullptr || request.stop != nullptr || !request.saves) starting.nothing.end();
  std::optional<PreparedRun> run;
  TrainedRun out;
  out.config = prepare(launched, request, console, run);
  const RunConfig& config = out.config;
  const std::unique_ptr<RunDisplay> display = display_of(request, config, console);
  std::optional<SlowStart> slow;
  if (request.shown && launched == nullptr && config.parallel.devices > 1)
    slow.emplace(text("starting ", config.parallel.devices, " ranks on ",
                      counted(num_usable_cores(), "core")),
                 console);
  const auto lead = [&](Communicator* world, const Backend& backend) {
    TrainOptions options{request.callbacks, &stop};
    PatientCallbacks patient(request.callbacks, world);
    if (request.stop != nullptr) options.callbacks = patient.all();  // of a program, any work
    if (slow) options.callbacks.push_back(&*slow);                   // before the run's first line
    if (request.shown) options.callbacks.push_back(display.get());
    options.callbacks.push_back(&starting);
    options.world = world;
    options.tells_ranks = (!request.shown || request.stop != nullptr) && launched != nullptr;
    options.engine = kFast;
    options.saves = request.saves;
    options.save = request.asked.save;
    options.lr = request.asked.lr;
    options.failed = request.asked.failed;
    out.result = train(std::move(*run), backend, options);
  };
  try {
    on_ranks(config, launched, console, [&](Communicator* world, const Backend& backend) {
      if (world == nullptr || world->rank() == 0) return lead(world, backend);
      TrainOptions following;
      PatientCallbacks patient(request.callbacks, world);
      if (first_here)
        following.callbacks = request.stop != nullptr ? patient.all() : request.callbacks;
      following.engine = kFast;
      follow(config, backend, *world, following);
    });
  } catch (...) {
    display->finish();  // the message begins a line of its own
    throw;
  }
  display->finish();
  return out;
}

void show_end(const TrainedRun& run, const TrainRequest& request, Console& console) {
  if (!request.shown) return;
  (request.asked.at_end ? request.asked.at_end : print_end)(run.result, run.config, console);
}

/// What rank 0 knows of the end, on every rank. Returns why that is a failure; empty: it is none.
std::string tell_ranks_the_end(Communicator* launched, TrainedRun& run) {
  const std::string ending = "ending", summary = "summary", unusable = "unusable";
  const std::map<std::string, std::string> shared = from_leader(launched, [&] {
    const std::optional<Error> failure = unusable_end(run);
    return std::map<std::string, std::string>{{ending, text(static_cast<int>(run.result.ending))},
                                              {summary, to_json(run.result.summary)},
                                              {unusable, failure ? failure->what() : ""}};
  });
  std::int64_t number = 0;
  read_number(ending, shared.at(ending), &number);
  run.result.ending = static_cast<Ending>(number);
  run.summary = shared.at(summary);
  run.rank = launched == nullptr ? 0 : launched->rank();
  return shared.at(unusable);
}

/// The exit code of this rank.
int run_on(Communicator* launched, bool first_here, const TrainRequest& request, Console& console) {
  if (request.asked.help) {
    console.out << "tessera train --preset NAME --data FILE --output FOLDER [FLAG...]\n\n"
                << flags_help(train_flags(request.command.config.families), console.columns);
    return 0;
  }
  const TrainedRun run = train_on(launched, first_here, request, console);
  if (launched != nullptr && launched->rank() != 0) return 0;
  show_end(run, request, console);
  if (run.result.ending == Ending::Stopped) return kExitStopped;
  const std::optional<Error> unusable = unusable_end(run);
  return unusable ? report_failure(std::make_exception_ptr(*unusable), console) : 0;
}

int train_as_asked(const TrainRequest& request, Console& console) {
  const Launched how = launched_as(request.command);
  return on_launched_ranks(how, request.command, console, [&](Communicator* world, Console& mine) {
    const bool first_here = world != nullptr && (how.here == 1 || world->rank() == how.rank);
    return run_on(world, first_here, request, mine);
  });
}

TrainRequest request_of(const AskedTraining& asked, const std::vector<TrainCallback*>& callbacks) {
  TrainRequest out;
  out.command.config = asked.config;
  out.command.problems = asked.problems;
  out.command.devices_given = asked.devices_given;
  out.command.secret_file = asked.secret_file;
  const auto word = [](bool on) { return std::string(on ? "true" : "false"); };
  out.command.own = {{"--check", word(asked.check)},
                     {"--auto", word(asked.automatic)},
                     {"--overwrite", word(asked.other_run == OtherRun::Replace)}};
  out.asked = asked;
  out.callbacks = callbacks;
  out.shown = callbacks.empty();
  return out;
}

/// What tells that a plan's bytes and seconds are not those of this run; empty: nothing does.
std::string notice_of_changed_plan(const RunConfig& config, const std::vector<Setting>& planned,
                                   const std::string& path) {
  Problems ignored;
  std::vector<std::string> unread, changed;
  const RunConfig of_plan = configure(ParsedFlags{}, ignored, unread, config.families, planned);
  for (const Field& field : fields()) {
    const bool counts = field.in_plan && (field.group == FieldGroup::Parallel ||
                                          field.group == FieldGroup::Machine ||
                                          field.group == FieldGroup::Optimizer);
    if (counts && field.name != "machine" && get_text(field, config) != get_text(field, of_plan))
      changed.emplace_back(field.name);
  }
  if (changed.empty()) return "";
  return text("bytes and seconds of the plan '", path,
              "' do not apply to this run, which differs in ", join(changed));
}

}  // namespace

std::vector<Flag> train_flags(const OwnFamilies& families) {
  std::vector<Flag> out = field_flags(families);
  out.insert(out.begin(),
             {{"auto",
               {},
               "",
               "choose the fastest plan that fits this machine; flags you give are kept; see "
               "tessera plan --auto",
               "",
               false},
              memory_margin_flag(),
              check_flag(),
              {"overwrite", {}, "", "replace the run in --output", "", false},
              {"plan", {}, "FILE", "run a plan written by tessera plan --write-plan", "", false}});
  for (const char* of_plan : {"write-plan", "html"})
    out.push_back({of_plan, {}, "FILE", "", "", false, "tessera plan --auto"});
  out.push_back(secret_file_flag());
  out.push_back({"auto-precision", {}, "", "", "", false, "tessera plan --auto"});
  return out;
}

AskedTraining read_training_flags(const Arguments& arguments, const OwnFamilies& families) {
  AskedTraining out;
  ParsedFlags parsed = parse_flags(arguments, train_flags(families), out.problems);
  out.automatic = parsed.take_switch("auto");
  out.check = parsed.take_switch("check");
  out.memory_margin = take_memory_margin(parsed, out.automatic, out.problems);
  if (parsed.take_switch("overwrite")) out.other_run = OtherRun::Replace;
  out.secret_file = parsed.take_value("secret-file");
  std::vector<Setting> planned;
  if (parsed.find("plan") != nullptr) {
    out.plan_path = parsed.take_value("plan");
    out.problems.gather([&] {
      require(!out.plan_path.empty(), "plan is empty; name a file written by tessera plan ",
              "--write-plan, or leave it out");
      out.plan = parse_plan_file(read_file(out.plan_path, Fault::Usage), out.plan_path);
      planned = parse_config(out.plan->fields, out.plan_path, out.problems);
      for (const Setting& setting : planned) {
        const Field* const field = find_field(setting.key).field;
        require(field == nullptr || may_be_in_plan(*field), setting.source,
                ": a plan does not set it; give it as a flag beside --plan");
      }
    });
    if (out.automatic)
      out.problems.add(
          text("--auto makes a plan, and --plan ", out.plan_path, " is one; give one"));
  }
  out.help = parsed.help;
  for (const std::string& word : parsed.words)
    out.problems.add(text("unexpected '", word, "'; flags begin with --, as in --data ", word));
  out.devices_given = parsed.find("devices") != nullptr;
  out.config = configure(parsed, out.problems, out.notices, families, planned);
  if (out.plan) {
    const std::string changed = notice_of_changed_plan(out.config, planned, out.plan_path);
    if (!changed.empty()) out.notices.push_back(changed);
  }
  return out;
}

int run_training(const RunConfig& config, Console& console,
                 const std::vector<TrainCallback*>& callbacks) {
  return run_training(AskedTraining{config}, console, callbacks);
}

int run_training(const AskedTraining& asked, Console& console,
                 const std::vector<TrainCallback*>& callbacks) {
  return exit_code_of(console,
                      [&] { return train_as_asked(request_of(asked, callbacks), console); });
}

int measure_training(const RunConfig& config, Console& console, TrainCallback& callback,
                     bool saves) {
  return exit_code_of(console, [&] {
    TrainRequest request = request_of(AskedTraining{config}, {&callback});
    request.saves = saves;
    return run_on(nullptr, false, request, console);
  });
}

TrainedRun train_here(const AskedTraining& asked, Console& console,
                      const std::vector<TrainCallback*>& callbacks, std::atomic<bool>& stop) {
  refuse_help(asked.help);
  TrainRequest request = request_of(asked, callbacks);
  request.shown = true;
  request.stop = request.command.stop = &stop;
  const Launched how = launched_as(request.command);
  TrainedRun out;
  std::string unusable;
  on_launched_ranks(how, request.command, console, [&](Communicator* world, Console& mine) {
    const bool first_here = world != nullptr && (how.here == 1 || world->rank() == how.rank);
    TrainedRun run = train_on(world, first_here, request, mine);
    std::string why = tell_ranks_the_end(world, run);
    if (world == nullptr || world->rank() == 0) show_end(run, request, mine);
    if (world == nullptr || first_here) out = std::move(run), unusable = std::move(why);
    return 0;
  });
  if (!unusable.empty()) fail(Fault::Numerics, unusable);
  return out;
}

int train_command(const Arguments& arguments, Console& console, const OwnFamilies& families) {
  return train_as_asked(request_of(read_training_flags(arguments, families), {}), console);
}

}  // namespace tessera
