#pragma once
/// Starting a run from trained weights: which of them its model takes. They may have been trained
/// for another task.

#include <optional>
#include <string>
#include <vector>

#include "tessera/config/config.h"

namespace tessera {

class Checkpoint;
struct Dataset;
class PretrainedModel;

/// Of weights, by the names of our parameters; those of a checkpoint with its other tensors.
std::vector<std::string> parameter_names(const PretrainedModel& model);
std::vector<std::string> parameter_names(const Checkpoint& checkpoint);

/// Weights that a run begins with, as far as tasks care.
struct StartModel {
  const ModelConfig& model;
  const std::vector<std::string>& labels;  // by number; empty: they have no names
  std::string path;                        // for messages
  std::vector<std::string> parameters;
};

/// Leaves open what samples of rows tell, and what the user has not told: the context and the
/// number of classes (complete_from_rows in train/row_data.h); of pictures in files the latter.
/// `start`: weights, whose table of positions stays as long as it is.
void leave_open_to_rows(RunConfig& config, bool start);

/// Of a run that goes on: what the data told at its beginning, where it is open.
void take_sizes_of_data(RunConfig& config, const ModelConfig& from);

/// The block of the classifier, where the weights have one for another task or for other labels
/// than the data's, and a notice of it; empty: it is taken, or there is none.
std::string head_to_begin_anew(const RunConfig& config, const Dataset& data,
                               const StartModel& start, std::vector<std::string>& notices);

/// A model with the same sizes for the same task as `here`, as far as weights can be taken: a
/// classifier, and the length of samples, may differ.
ModelConfig for_task_of(ModelConfig start, const ModelConfig& here);

}  // namespace tessera
