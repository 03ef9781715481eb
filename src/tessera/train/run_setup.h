#pragma once
/// What follows from the configuration of a run: made once, and const after. Whoever compiles,
/// runs, prices or reports a run reads it here, and derives nothing again.
///
/// RunConfig is what was given, as values of fields. What no field says alone is here: the task
/// that the model is trained for, the floats that the run computes in, how its programs are spread
/// over the devices.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/config/config.h"
#include "tessera/ir/strategy.h"
#include "tessera/models/task.h"
#include "tessera/passes/compute_in.h"
#include "tessera/plan/compile.h"

namespace tessera {

/// The program that trains on samples of one bucket of lengths.
struct TrainProgram {
  std::int64_t bucket_length = 0;  // 0: the last bucket, whose samples are as long as the context
  std::string name;
  Task task;
};

/// That of programs that share a batch out, all of it at once.
Strategy cut_strategy(const RunConfig& config);

struct RunSetup {
  /// `complete`: complete() has been called, and the vocabulary size is known.
  /// `task`: of complete.model, where it is made already.
  /// Errors: as of task_of, strategy_of and bucket_lengths.
  explicit RunSetup(RunConfig complete, std::optional<Task> task = std::nullopt);

  RunConfig config;
  std::optional<Precision> precision;  // nullopt: all is f32
  /// A program for each bucket; the first, kTrainProgram, is of the longest.
  std::vector<TrainProgram> trains;
  Strategy whole;  // of programs of which every device has the whole batch, as writing text does
  Strategy cut;    // of those that share a batch out, all of it at once
  Strategy step;   // of those that share it out in micro-batches
  CompileOptions compile;  // but for the rank and the observer

  /// What the model is trained for, on samples as long as the context.
  const Task& task() const { return trains.front().task; }
  std::int64_t tokens_per_step() const { return config.global_batch_size * task().tokens; }
  /// Samples of one run of "evaluate": those of a micro-batch, so that it takes no more memory than
  /// training, unless they are compared with each other.
  std::int64_t evaluation_batch() const {
    return task().compares_samples ? config.global_batch_size
                                   : config.micro_batch_size * config.parallel.data();
  }
};

}  // namespace tessera
