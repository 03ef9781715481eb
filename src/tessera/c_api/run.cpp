/// The functions of c_api.h.

#include <ostream>
#include <string>

#include "tessera/base/version.h"
#include "tessera/c_api/arguments.h"
#include "tessera/c_api/c_api.h"
#include "tessera/c_api/functions.h"
#include "tessera/c_api/listener.h"
#include "tessera/c_api/run_state.h"

namespace tessera {

namespace {

int call(tessera_run& run, const char* what, const char* flags, const tessera_program* program,
         const tessera_listener& listening) {
  require(what != nullptr && flags != nullptr,
          "no function or no flags were given; give a name, as train, and JSON, as {\"steps\": 8}");
  Listener listener(listening, run.stop);
  LineBuffer lines(listener), notices(listener);  // these come from threads of their own
  std::ostream out(&lines), err(&notices);
  Console console{out, err};
  const Function function = program == nullptr ? function_of(what) : program_function_of(what);
  const FunctionResult result =
      function({arguments_of(flags), listener, console, run.stop, run.save, run.lr, program});
  run.result = result.json;
  return result.code;
}

}  // namespace

}  // namespace tessera

const char* tessera_version() { return tessera::kVersion; }

tessera_run* tessera_run_new() { return new tessera_run; }

void tessera_run_free(tessera_run* run) { delete run; }

void tessera_stop(tessera_run* run) { run->stop = true; }

void tessera_save(tessera_run* run) { run->save = true; }

int tessera_set_lr(tessera_run* run, double lr) {
  if (!tessera::is_rate(lr)) return 1;
  run->lr = lr;
  return 0;
}

int tessera_call(tessera_run* run, const char* what, const char* flags,
                 const tessera_listener* listener) {
  return tessera_call_with(run, what, flags, nullptr, listener);
}

int tessera_call_with(tessera_run* run, const char* what, const char* flags,
                      const tessera_program* program, const tessera_listener* listener) {
  const tessera_listener nobody = {};
  return tessera::kept(*run, [&] {
    return tessera::call(*run, what, flags, program, listener == nullptr ? nobody : *listener);
  });
}

int tessera_flags(tessera_run* run, const char* what) {
  return tessera::kept(*run, [&] {
    tessera::require(what != nullptr, "no function was given; give a name, as train");
    run->result = tessera::flags_json(what);
    return 0;
  });
}

const char* tessera_result(const tessera_run* run) { return tessera::shown(run->result); }

const char* tessera_error(const tessera_run* run) { return tessera::shown(run->error); }
