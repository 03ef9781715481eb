#pragma once
/// The parts in which flags are read: each takes what concerns it from the given flags, tells
/// fields, and adds what is wrong.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/pretrained/pretrained_model.h"
#include "tessera/rapidformer/asked_devices.h"
#include "tessera/rapidformer/given_flags.h"
#include "tessera/rapidformer/request.h"

namespace tessera {

/// What the parts share.
struct AskedRun {
  GivenFlags flags;
  Problems& problems;
  std::vector<std::string>& notices;
  FlagsOf whose = FlagsOf::Command;
  const OwnFamilies& families;
  bool pretraining = false;
  /// A file or a preset tells the rest: nothing is required, and nothing has a default of its own.
  bool given_elsewhere = false;
  std::optional<PretrainedModel> pretrained = {};  // a folder of transformers
  std::int64_t devices = 1, data_parallel = 1, global_batch_size = 0;
  bool devices_given = false;
  bool several_processes = false;
  std::shared_ptr<const void> claim = {};  // of the output folder

  /// What the flags that are taken so far, the file and the preset say together.
  RunConfig so_far() const;
  /// A field that is a number, by a flag, or else by the file or the preset; none: nobody tells it.
  std::optional<std::int64_t> count(std::string_view name) const;
  /// Whether a flag tells the field, or the file, which asks for nothing by a default.
  bool asks(std::string_view field) const;
  /// The model is that of a checkpoint of --load, with all its sizes.
  bool has_loaded_model() const;
};

/// The task, the family, sizes, rates, the tokenizer; pretrained.
void take_model_flags(AskedRun& run);
/// Devices, what they share out, and the batch.
void take_mesh_flags(AskedRun& run, const EnvironmentVariables& environment);
/// How long the run is, and its learning rate. After the batch.
void take_schedule_flags(AskedRun& run);
/// --save, --load, --finetune and what goes with them.
void take_folder_flags(AskedRun& run);

/// Where the trained model goes for transformers: OUTPUT/hf.
std::string hub_folder(const RunConfig& config);
/// Problems: a model is there that is not of this run.
void check_hub_folder(const RunConfig& config, const AskedRun& run);

}  // namespace tessera
