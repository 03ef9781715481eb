#pragma once
/// A trained model as a folder of Hugging Face's transformers.

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/models/family.h"
#include "tessera/pretrained/save_pretrained.h"

namespace tessera {

struct ExportedModel {
  std::string family;
  std::int64_t step = 0;  // of the checkpoint
  /// Its tokens were made of the text that trained it ("characters"), and no file of the folder says
  /// what they are; empty: they were not.
  std::string unwritten_tokens = {};
  /// Parameters that the folder has not, as transformers' class has none for them.
  std::vector<std::string> left_out = {};
  bool adapter = false;  // the folder is an adapter's
};

/// What an export of a run that trained adapters writes: PEFT's folder of them, or the whole model
/// with what they add.
enum class AdapterExport { Apart, Merged };

/// What a user should know of `left_out`; empty: nothing.
std::string notice_of_left_out(const ExportedModel& written);

/// Writes the model of the checkpoint that `path` names into the folder `output`, and the files of
/// the tokenizer of another program that it was trained with. `how.config` is that of the model
/// that its weights came from, whatever it was. Errors: as of Checkpoint::open and save_pretrained;
/// of a damaged one, which intact one there is in its place.
ExportedModel export_model(const std::string& path, const std::string& output, SavePretrained how,
                           AdapterExport adapter = AdapterExport::Apart,
                           const OwnFamilies& families = {});

/// Writes the model of PEFT's folder `folder` with what its adapter adds. Errors: as of
/// PretrainedModel::open and save_pretrained; Fault::Usage: it has no adapter.
ExportedModel merge_adapter(const std::string& folder, const std::string& output,
                            SavePretrained how);

}  // namespace tessera
