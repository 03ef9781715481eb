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

/// Does what a command of `tessera` does: `what` is its name, any but sample and launch. `flags` are
/// those of the command, with _ for -: {"preset": "gpt2-tiny", "steps": 8, "bf16": true, "eval_iters": null},
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
/// predict   {"columns": ["prediction", ...], "rows": [["3", ...], ...]}
/// others    {"text": "..."}
const char* tessera_result(const tessera_run* run);
/// {"kind": "Usage", "message": "...", "code": 2}: Usage, Data, Checkpoint, Resource, Numerics,
/// Peer or Internal. Null: nothing failed. Both live as long as the run.
const char* tessera_error(const tessera_run* run);

/// Numbers, row-major without gaps. `dtype`: "f32", "i32" or, of what is given, "i64".
struct tessera_array {
  const char* name;
  const char* dtype;
  int64_t ndim;
  const int64_t* shape;
  const void* data;
};
/// How many arrays came of a call, and one of them: it lives as long as the run.
int64_t tessera_array_count(const tessera_run* run);
const tessera_array* tessera_array_at(const tessera_run* run, int64_t number);

/// A model to be called. Calls of several threads wait for each other.
struct tessera_model;
/// Opens one: {"init_from": "runs/mine", "devices": 2}, with the flags of a model and of devices;
/// without init_from it is new. The result has "config" (its fields), "labels", "notices",
/// "hub_names" and "tokenizer": whether transformers has names for its parameters, and whether it
/// has one. Null: tessera_error() says why.
tessera_model* tessera_model_open(tessera_run* run, const char* flags);
void tessera_model_free(tessera_model* model);
/// transformers' model(**inputs): its results are the arrays of the run, "logits" and, with labels,
/// "loss".
int tessera_model_call(tessera_run* run, tessera_model* model, const tessera_array* inputs,
                       int64_t count);
/// All parameters, as arrays. `hub_names` other than 0: as transformers names and lays them out.
int tessera_model_parameters(tessera_run* run, tessera_model* model, int hub_names);
/// Texts behind `prompts`, ["text", [1, 2]], as `tessera sample` writes them; `flags` are its flags
/// about texts: {"tokens": 20, "temperature": 0}. The result: [{"text": "...", "ids": [3]}]. Events:
/// {"kind": "piece", "text": 0, "piece": "..."}; their answer ends the texts.
int tessera_model_write(tessera_run* run, tessera_model* model, const char* prompts,
                        const char* flags, const tessera_listener* listener);
/// As transformers' save_pretrained: {"folder": "...", "dtype": "bf16", "overwrite": true}. The
/// result: {"left_out": ["..."]}.
int tessera_model_save(tessera_run* run, tessera_model* model, const char* flags);
/// Text to ids and back: {"text": "..."} gives {"ids": [1, 2]}, and the other way round.
int tessera_model_tokens(tessera_run* run, tessera_model* model, const char* json);
}
