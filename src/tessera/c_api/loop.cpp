/// Loops of a program's own in c_api.h.

#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "tessera/c_api/arguments.h"
#include "tessera/c_api/c_api.h"
#include "tessera/c_api/listener.h"
#include "tessera/c_api/program.h"
#include "tessera/c_api/run_state.h"
#include "tessera/user_code/own_loop.h"

struct tessera_loop {
  tessera_loop(const char* flags, const tessera_program& of, const tessera_listener& listening)
      : program(of), listener(listening, stop), lines(listener), out(&lines), console{out, out} {
    tessera::OwnFunctions functions =
        tessera::functions_of(program, tessera::ProgramUse::Train, failed);
    functions.reads_ahead = false;  // nobody is there between two calls
    tessera::AskedTraining asked = tessera::read_training_flags(tessera::arguments_of(flags));
    loop.emplace(asked, console, std::move(functions));
  }

  std::atomic<bool> stop = false, failed = false;
  const tessera_program program;
  tessera::Listener listener;
  tessera::LineBuffer lines;
  std::ostream out;
  tessera::Console console;  // hears notices, and of a device that hangs
  std::optional<tessera::OwnLoop> loop;
};

namespace tessera {

namespace {

using LoopJson = nlohmann::ordered_json;

OwnLoop& opened_loop(tessera_loop* loop) {
  require(loop != nullptr, "there is no loop: it is closed, or was never opened");
  return *loop->loop;
}

tessera_loop* open_loop(tessera_run& run, const char* flags, const tessera_program* program,
                        const tessera_listener* listener) {
  require(flags != nullptr && program != nullptr, "no flags or no program were given");
  require(program->train >= 0, "a loop has no dataset to train on; give one");
  const tessera_listener nobody = {};
  auto out =
      std::make_unique<tessera_loop>(flags, *program, listener == nullptr ? nobody : *listener);
  const RunConfig& config = out->loop->config();
  run.result =
      LoopJson{
          {"batch", config.global_batch_size}, {"epochs", config.epochs}, {"steps", config.steps}}
          .dump();
  return out.release();
}

void list_batches(tessera_run& run, const OwnLoop& loop, std::int64_t epoch) {
  LoopJson out = LoopJson::array();
  for (const SampleBatch& batch : loop.train_batches(epoch)) out.push_back(batch.first);
  run.result = out.dump();
}

void step(tessera_run& run, OwnLoop& loop, std::int64_t first) {
  require(first >= 0, "a batch begins with sample ", first, "; take those of an epoch");
  const StepRecord record = loop.backward({first, loop.config().global_batch_size});
  run.result = LoopJson{
      {"step", record.step},
      {"loss", record.loss},
      {"lr", record.lr},
      {"grad_norm", record.grad_norm},
      {"skipped",
       !record.ok}}.dump();
}

void predict_held_out(tessera_run& run, OwnLoop& loop) {
  const EvalPrediction found = loop.gather();
  keep_arrays(run, found.predictions);
  run.result = LoopJson{{"samples", found.samples}, {"loss", found.loss}}.dump();
}

}  // namespace

}  // namespace tessera

tessera_loop* tessera_loop_open(tessera_run* run, const char* flags, const tessera_program* program,
                                const tessera_listener* listener) {
  tessera_loop* out = nullptr;
  tessera::kept(*run, [&] {
    out = tessera::open_loop(*run, flags, program, listener);
    return 0;
  });
  return out;
}

void tessera_loop_free(tessera_loop* loop) { delete loop; }

int tessera_loop_batches(tessera_run* run, tessera_loop* loop, std::int64_t epoch) {
  return tessera::kept(*run, [&] {
    tessera::list_batches(*run, tessera::opened_loop(loop), epoch);
    return 0;
  });
}

int tessera_loop_step(tessera_run* run, tessera_loop* loop, std::int64_t first) {
  return tessera::kept(*run, [&] {
    tessera::step(*run, tessera::opened_loop(loop), first);
    return 0;
  });
}

int tessera_loop_set_lr(tessera_run* run, tessera_loop* loop, double lr) {
  return tessera::kept(*run, [&] {
    tessera::opened_loop(loop).set_lr(lr);
    return 0;
  });
}

int tessera_loop_predict(tessera_run* run, tessera_loop* loop) {
  return tessera::kept(*run, [&] {
    tessera::predict_held_out(*run, tessera::opened_loop(loop));
    return 0;
  });
}

int tessera_loop_save(tessera_run* run, tessera_loop* loop, const char* folder) {
  return tessera::kept(*run, [&] {
    tessera::require(folder != nullptr && *folder != '\0', "folder is missing; give one");
    tessera::opened_loop(loop).save_pretrained(folder);
    return 0;
  });
}
