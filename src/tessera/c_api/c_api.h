#pragma once
/// The room `c_api`: Tessera for other languages, as functions of C in one shared library.
/// For: what crosses that border: JSON in and out, handles, callbacks, errors as values.
/// Not for: what a run does (apps and below), nor what a language makes of it (python/tessera).
/// Rejected: a binding library, as it makes one library for each version of Python, and none for
/// other languages.
///
/// No exception crosses. Nothing here touches signals, writes to standard output or error, or
/// replaces malloc.

#include <cstdint>

extern "C" {

const char* tessera_version();

/// One call of a function that takes long, and what came of it.
struct tessera_run;
tessera_run* tessera_run_new();
void tessera_run_free(tessera_run* run);

/// Both are called one at a time, from any thread, and may be null.
struct tessera_listener {
  void* user;
  /// A line of metrics.jsonl (docs/reference/files.md); {"kind":"save","step":8,"path":"..."}; or,
  /// before all, {"kind":"start","step":0,"steps":8,...}: attempts done, and wanted.
  /// Other than 0: the run is to finish its step, save and end.
  int (*event)(void* user, const char* json);
  /// A line for people, without its end.
  void (*line)(void* user, const char* text);
};

/// Does what a command of `tessera` does: `what` is "train", "plan", "verify", "bench", "inspect",
/// "export" or "evaluate". `flags` are those of the
/// command, with _ for -: {"preset": "gpt2-tiny", "steps": 8, "bf16": true, "eval_iters": null},
/// where null is as if it were not there, and "" holds its PATH; or ["--preset", "gpt2-tiny"].
/// Returns the exit code of docs/reference/errors.md: 0, 75 where it was stopped; else
/// tessera_error() says why. A run serves one call.
int tessera_call(tessera_run* run, const char* what, const char* flags,
                 const tessera_listener* listener);

/// As an event's answer; from any thread, at any time.
void tessera_stop(tessera_run* run);

/// What the command prints, as JSON. Null: there is none. Of
/// plan, verify, bench, inspect  {"text": "...", "report": {...}}, for people, and all of it
///                               (docs/reference/files.md)
/// train     {"ending": "finished", "output": "runs/mine", "summary": {...}}, with "interval" (by
///           --exit-interval) or "stopped"; and the keys of summary.json
/// export    {"folder": "...", "family": "gpt2", "step": 8, "left_out": ["..."], ...}
/// evaluate  {"model": "...", "data": "...", "samples": 8, "loss": 2.5, "scores": {...}}
const char* tessera_result(const tessera_run* run);
/// {"kind": "Usage", "message": "...", "code": 2}: Usage, Data, Checkpoint, Resource, Numerics,
/// Peer or Internal. Null: nothing failed. Both live as long as the run.
const char* tessera_error(const tessera_run* run);
}
