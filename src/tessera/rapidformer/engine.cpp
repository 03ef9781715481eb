#include "tessera/rapidformer/engine.h"

#include "tessera/base/format.h"
#include "tessera/base/text.h"
#include "tessera/launch/ranks.h"
#include "tessera/rapidformer/given_flags.h"
#include "tessera/rapidformer/request.h"
#include "tessera/user_code/named_function.h"

namespace tessera {

namespace {

/// Of processes that were launched, this is the first, or this one is alone.
bool speaks(const RunConfig& config) {
  try {
    const std::int64_t devices = config.parallel.devices;
    return launched_as(devices == 1 ? 0 : devices).rank <= 0;
  } catch (const Error&) {  // told when the run begins
    return true;
  }
}

}  // namespace

void Logger::info(std::string_view line) const {
  if (to_ != nullptr) *to_ << line << std::endl;
}

std::string Timers::text() const {
  std::string out = "time (ms)";
  for (const auto& [name, timer] : timers_)
    out += tessera::text(" | ", name, ": ", format("%.1f", timer.seconds() * 1e3));
  return out;
}

RapidformerEngine::RapidformerEngine(int count, char** values, const OwnFamilies& families)
    : console_(system_console()) {
  set_up_process();
  asked_ = read_rapidformer_flags({values + 1, values + count}, FlagsOf::Program,
                                  process_environment(), families);
  if (speaks(asked_.config)) logger_ = Logger(&console_.out);
}

int RapidformerEngine::run(const std::function<int()>& work) {
  return run_as_is([&] { return with_errors(work); });
}

int RapidformerEngine::run_as_is(const std::function<int()>& work) {
  return exit_code_of(console_, [&] {
    if (!asked_.help) return work();
    console_.out << rapidformer_help(asked_.config.families, console_.columns);
    return 0;
  });
}

OwnLoop& RapidformerEngine::loop() const {
  require(loop_ != nullptr, "the engine has nothing to train yet; call engine.compose() first");
  return *loop_;
}

void RapidformerEngine::compose(
    const Datasets& data, const Provided& provided,
    std::function<ModelOutput(const Batch&, const Model&)> forward_step) {
  asked_.problems.raise();
  OwnFunctions functions;
  functions.datasets = [data] { return data; };
  functions.provide = [provided] { return provided; };
  functions.forward = naming("the forward_step of engine.compose", std::move(forward_step));
  functions.shuffled = true;
  loop_.reset();
  loop_ = std::make_unique<OwnLoop>(asked_, console_, std::move(functions));
}

const RunConfig& RapidformerEngine::config() const { return loop().config(); }
std::vector<SampleBatch> RapidformerEngine::train_batches(std::int64_t epoch) const {
  return loop().train_batches(epoch);
}
StepRecord RapidformerEngine::backward(const SampleBatch& batch) { return loop().backward(batch); }
void RapidformerEngine::set_lr(double lr) { loop().set_lr(lr); }

EvalPrediction RapidformerEngine::gather() { return loop().gather(); }
void RapidformerEngine::save_pretrained(const std::string& folder) {
  loop().save_pretrained(folder);
}

}  // namespace tessera
