#include "tessera/c_api/functions.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "tessera/apps/planning.h"
#include "tessera/apps/training.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/launch/exit_code.h"
#include "tessera/train/metrics.h"

namespace tessera {

namespace {

using ResultJson = nlohmann::ordered_json;

FunctionResult train_function(const FunctionCall& call);
FunctionResult plan_function(const FunctionCall& call);

struct NamedFunction {
  const char* command;
  Function function;
};
constexpr NamedFunction kFunctions[] = {
    {"train", train_function},
    {"plan", plan_function},
};

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

FunctionResult train_function(const FunctionCall& call) {
  const AskedTraining asked = read_training_flags(call.arguments);
  const TrainedRun trained = train_here(asked, call.console, {&call.listener}, call.stop);
  return {dumped({{"ending", ending_name(trained.result.ending)},
                  {"output", trained.config.output},
                  {"summary", ResultJson::parse(to_json(trained.result.summary))}}),
          trained.result.ending == Ending::Stopped ? kExitStopped : 0};
}

FunctionResult plan_function(const FunctionCall& call) {
  const ShownPlan plan = plan_here(call.arguments, call.console);
  return {dumped({{"text", plan.text}, {"report", ResultJson::parse(plan.json)}})};
}

}  // namespace

Function function_of(std::string_view command) {
  std::vector<std::string> names;
  for (const NamedFunction& each : kFunctions) {
    if (command == each.command) return each.function;
    names.emplace_back(each.command);
  }
  fail(Fault::Usage, "no function '", command, "'; there are ", join(names));
}

}  // namespace tessera
