/// The functions of c_api.h.

#include <atomic>
#include <functional>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "tessera/apps/planning.h"
#include "tessera/apps/training.h"
#include "tessera/base/version.h"
#include "tessera/c_api/arguments.h"
#include "tessera/c_api/c_api.h"
#include "tessera/c_api/listener.h"
#include "tessera/launch/exit_code.h"
#include "tessera/train/metrics.h"

struct tessera_run {
  std::atomic<bool> stop = false;
  std::string result, error;  // empty: none
};

namespace tessera {

namespace {

using ResultJson = nlohmann::ordered_json;

std::string dumped(const ResultJson& json) {
  return json.dump(-1, ' ', false, ResultJson::error_handler_t::replace);
}

const char* name_of(Fault fault) {
  switch (fault) {
    case Fault::Usage: return "Usage";
    case Fault::Data: return "Data";
    case Fault::Checkpoint: return "Checkpoint";
    case Fault::Resource: return "Resource";
    case Fault::Numerics: return "Numerics";
    case Fault::Peer: return "Peer";
    case Fault::Internal: return "Internal";
  }
  return "Internal";
}

const char* name_of(Ending ending) {
  switch (ending) {
    case Ending::Finished: return "finished";
    case Ending::Interval: return "interval";
    case Ending::Stopped: return "stopped";
  }
  return "finished";
}

/// The code of `work`; what it throws becomes the error of `run`.
int kept(tessera_run& run, const std::function<int()>& work) noexcept {
  try {
    return work();
  } catch (...) {
    const Failure failure = failure_of(std::current_exception());
    const int code = static_cast<int>(failure.fault);
    run.error =
        dumped({{"kind", name_of(failure.fault)}, {"message", failure.message}, {"code", code}});
    return code;
  }
}

Arguments given_arguments(const char* flags) {
  require(flags != nullptr, "no flags were given; give JSON, as {\"steps\": 8}");
  return arguments_of(flags);
}

int train_with(tessera_run& run, const char* flags, const tessera_listener& listening) {
  Listener listener(listening, run.stop);
  LineBuffer lines(listener), notices(listener);  // these come from threads of their own
  std::ostream out(&lines), err(&notices);
  Console console{out, err};
  const AskedTraining asked = read_training_flags(given_arguments(flags));
  const TrainedRun trained = train_here(asked, console, {&listener}, run.stop);
  run.result = dumped({{"ending", name_of(trained.result.ending)},
                       {"output", trained.config.output},
                       {"summary", ResultJson::parse(to_json(trained.result.summary))}});
  return trained.result.ending == Ending::Stopped ? kExitStopped : 0;
}

int plan_with(tessera_run& run, const char* flags, const tessera_listener& listening) {
  Listener listener(listening, run.stop);
  LineBuffer lines(listener);
  std::ostream out(&lines);
  Console console{out, out};
  const ShownPlan plan = plan_here(given_arguments(flags), console);
  run.result = dumped({{"text", plan.text}, {"report", ResultJson::parse(plan.json)}});
  return 0;
}

using Work = int (*)(tessera_run& run, const char* flags, const tessera_listener& listening);
int call(Work work, tessera_run* run, const char* flags, const tessera_listener* listener) {
  const tessera_listener nobody = {};
  return kept(*run, [&] { return work(*run, flags, listener == nullptr ? nobody : *listener); });
}

}  // namespace

}  // namespace tessera

const char* tessera_version() { return tessera::kVersion; }

tessera_run* tessera_run_new() { return new tessera_run; }

void tessera_run_free(tessera_run* run) { delete run; }

void tessera_stop(tessera_run* run) { run->stop = true; }

int tessera_train(tessera_run* run, const char* flags, const tessera_listener* listener) {
  return tessera::call(tessera::train_with, run, flags, listener);
}

int tessera_plan(tessera_run* run, const char* flags, const tessera_listener* listener) {
  return tessera::call(tessera::plan_with, run, flags, listener);
}

const char* tessera_result(const tessera_run* run) {
  return run->result.empty() ? nullptr : run->result.c_str();
}

const char* tessera_error(const tessera_run* run) {
  return run->error.empty() ? nullptr : run->error.c_str();
}
