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

/// What samples have under one name: numbers of i32 or f32, [samples] or [samples, row].
struct tessera_feature {
  const char* name;
  int is_float;
  int64_t row;  // numbers of a sample; -1: one, which is no row
  const void* numbers;
};
/// Of samples that were asked for, in that order.
struct tessera_features {
  const tessera_feature* features;
  int64_t count;
  int64_t unmasked;  // one that was filled up to the length of a row, and no mask says so; -1: none
};
/// Numbers [dims...] that a model predicted under one name: a row for each sample.
struct tessera_prediction {
  const char* name;
  const int64_t* dims;
  int64_t ndim;
  const float* numbers;
};
struct tessera_score {
  const char* name;
  double value;
};
struct tessera_graph;
/// Samples and scores of a program. Functions are called one at a time, from any thread; one that
/// fails returns other than 0, and problem() says why. What they give lives until the next call.
struct tessera_program {
  void* user;
  int64_t train, valid;  // samples of each dataset; -1: there is none
  int shuffled;          // the order of those that train
  int in_order;          // they can be read one after the other alone, and the first one again
  /// By which a resumed run knows that it has the samples that it began with; null: it looks at
  /// some of them.
  const char* digest;
  /// Samples of the dataset to train on (`held_out` 0) or to validate on.
  int (*read)(void* user, int held_out, const int64_t* numbers, int64_t count,
              tessera_features* out);
  /// Of what was predicted of all samples to validate on; null: there are no scores.
  int (*score)(void* user, const tessera_prediction* predictions, int64_t count,
               const tessera_score** scores, int64_t* num_scores);
  const char* (*problem)(void* user);
  /// The loss of a batch, where it is the program's own; null: that of model(batch). `batch`:
  /// {"input_ids": {"id": "%0", "shape": [8, 16], "dtype": "i32"}, ...}. It writes into `graph`,
  /// which it does not keep, and sets `out`: {"loss": "%12"}, a scalar, or {"sum": "%10", "count":
  /// "%11"}; with "predictions", as {"logits": "%9"}. It is called for each program and device, and
  /// writes the same each time.
  int (*forward)(void* user, tessera_graph* graph, const char* batch, const char** out);
};

/// The same with a program's samples: `what` is "train", "rapidformer", which shows a run as that
/// does, or "evaluate", which measures those to validate on. Features have the names that
/// transformers' models give them, and those that the model does not read are left out, which is
/// told; without datasets the data is that of the flags. A run saves what was trained before it
/// fails in such a function.
int tessera_call_with(tessera_run* run, const char* what, const char* flags,
                      const tessera_program* program, const tessera_listener* listener);

/// The flags of such a command, as its --help has them; kept as tessera_result():
/// [{"name": "steps", "also": ["train-iters"], "value": "N", "many": false, "group": "run",
/// "help": "..."}], where a switch has no value. Returns as tessera_call.
int tessera_flags(tessera_run* run, const char* what);

/// As an event's answer; from any thread, at any time.
void tessera_stop(tessera_run* run);
/// What the step at hand leaves is saved; likewise.
void tessera_save(tessera_run* run);
/// The learning rate of later steps; -1: the schedule's again. Checkpoints hold it. Likewise, of the
/// rank that leads. Other than 0: it is no rate, and nothing changes.
int tessera_set_lr(tessera_run* run, double lr);

/// What the command prints, as JSON. Null: there is none. Of
/// plan, verify, bench, inspect  {"text": "...", "report": {...}}, for people, and all of it
///                               (docs/reference/files.md)
/// train     {"ending": "finished", "output": "runs/mine", "rank": 0, "summary": {...}}, with
///           "interval" (by --exit-interval) or "stopped"; and the keys of summary.json
/// export    {"folder": "...", "family": "gpt2", "step": 8, "left_out": ["..."], ...}
/// evaluate  {"model": "...", "data": "...", "samples": 8, "loss": 2.5, "scores": {...}}; of a
///           program {"ending": ..., "samples": ..., "loss": ..., "scores": ...}
/// predict   {"columns": ["prediction", ...], "rows": [["3", ...], ...]}
/// others    {"text": "..."}
const char* tessera_result(const tessera_run* run);
/// {"kind": "Usage", "message": "...", "code": 2}: Usage, Data, Checkpoint, Resource, Numerics,
/// Peer or Internal. Null: nothing failed. Both live as long as the run.
const char* tessera_error(const tessera_run* run);

/// Numbers, row-major without gaps. `dtype`: "f32", "i32" or, of what is given, "i64"; of steps also
/// "f64", "bf16", "f16" and "bool".
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

/// A training loop of the program's own: it says when the next step is. Devices are threads. One
/// call at a time, and none by a function of its program.
struct tessera_loop;
/// Compiles what trains and predicts the samples of `program`, with flags of `tessera train`.
/// `program`, which is copied, and `listener`, which may be null, are called until the loop is freed.
/// The result: {"batch": 16, "epochs": 3, "steps": 0}, samples of a step, and what flags say of the
/// length. Null: tessera_error() says why.
tessera_loop* tessera_loop_open(tessera_run* run, const char* flags, const tessera_program* program,
                                const tessera_listener* listener);
void tessera_loop_free(tessera_loop* loop);
/// The steps that begin in an epoch, counted from 1: [0, 16, 32], the first sample of each.
int tessera_loop_batches(tessera_run* run, tessera_loop* loop, int64_t epoch);
/// One step on samples from `first` on: gradients and update. The result: {"step": 1, "loss": 2.5,
/// "lr": 0.001, "grad_norm": 1.5, "skipped": false}.
int tessera_loop_step(tessera_run* run, tessera_loop* loop, int64_t first);
/// As tessera_set_lr.
int tessera_loop_set_lr(tessera_run* run, tessera_loop* loop, double lr);
/// What the model predicts now of all samples to validate on, as arrays; the result: {"samples": 8,
/// "loss": 2.5}.
int tessera_loop_predict(tessera_run* run, tessera_loop* loop);
/// The model as transformers loads it, and its tokenizer.
int tessera_loop_save(tessera_run* run, tessera_loop* loop, const char* folder);

/// A graph that is being written; one thread at a time.
struct tessera_graph;
tessera_graph* tessera_graph_new();
void tessera_graph_free(tessera_graph* graph);

/// Calls a function of C++ by its name: an op, a layer, or what makes inputs, parameters, scopes,
/// gradients, updates and outputs. {"op": "matmul", "a": "%3", "b": "%4", "trans_b": true, "at":
/// "net.py:12"}, where "at" may be left out, results in {"values": [{"id": "%5", "shape": [2, 3],
/// "dtype": "f32"}]}. Returns 0, or a code as tessera_call. Both texts live until the next call.
int tessera_graph_call(tessera_graph* graph, const char* call);
/// Its result is the graph in text form, which is no JSON.
int tessera_graph_text(tessera_graph* graph);
const char* tessera_graph_result(const tessera_graph* graph);
const char* tessera_graph_error(const tessera_graph* graph);
/// In tessera_program::forward: what the model computes of features, {"input_ids": "%0", "labels":
/// "%2"}, by transformers' names: {"loss": value, "sum": value, "count": value, "predictions":
/// {"logits": value}}, each value {"id": "%5", "shape": ..., "dtype": ...}; loss is sum / count, and
/// null where a run trains and the features lack labels.
int tessera_graph_model(tessera_graph* graph, const char* features);
/// All that can be called: [{"name": "matmul", "kind": "ops", "arguments": [{"name": "a"}, ...,
/// {"name": "trans_b", "default": false}]}, ...]
const char* tessera_graph_calls();

/// A step of graphs that is compiled and runs on its devices, which are threads; one call at a time.
struct tessera_step;
tessera_step* tessera_step_new();
void tessera_step_free(tessera_step* step);

/// Compiles graphs to programs that share parameters, and gives these their first values. `how` is
/// {"names": ["train", "predict"], "samples": 32, "flags": {"devices": 2}, ...}: one name for each
/// graph, and how they are spread (src/tessera/c_api/step_request.h). The first graph says where
/// all lies. Results in what each device holds, computes and sends, as JSON.
int tessera_step_compile(tessera_step* step, tessera_graph* const* graphs, int count,
                         const char* how);
/// The same without devices, to learn what a search finds: {"mesh": "dp=2", "pins": {"w":
/// "[-,dp]"}, "search": {"step_seconds": 0.1}}. The step is as it was.
int tessera_step_place(tessera_step* step, tessera_graph* const* graphs, int count,
                       const char* how);
/// Runs a program on all of its inputs. Results in {"arrays": {"loss": {"shape": [], "dtype":
/// "f32"}}}. Where inputs are wrong nothing has run; after another error the step is of no use.
int tessera_step_run(tessera_step* step, const char* program, const tessera_array* inputs,
                     int count);
/// {"do": "states"} results in arrays as a run; {"do": "save", "path": "FOLDER"} in {"path": "..."};
/// {"do": "load", "path": "..."}.
int tessera_step_call(tessera_step* step, const char* call);
/// Gives parameters other values.
int tessera_step_write(tessera_step* step, const tessera_array* parameters, int count);
/// Copies an array of the last call; each can be read once.
int tessera_step_read(tessera_step* step, const char* name, void* into, int64_t bytes);
const char* tessera_step_result(const tessera_step* step);
const char* tessera_step_error(const tessera_step* step);
}
