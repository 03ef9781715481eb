#include "tessera/apps/export_model.h"

#include <algorithm>
#include <filesystem>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/checkpoint/checkpoint.h"
#include "tessera/checkpoint/checkpoint_manifest.h"
#include "tessera/config/output_folder.h"
#include "tessera/config/recorded.h"
#include "tessera/models/family.h"
#include "tessera/models/parameter_shapes.h"
#include "tessera/pretrained/exported_tokenizer.h"

namespace tessera {

namespace {

/// A run would later be read as its export, and a checkpoint be damaged by it.
void require_own_folder(const std::string& output) {
  const std::vector<std::string> traces = traces_of_run(output);
  require(traces.empty(), "export: '", output, "' is the folder of a run (it has ", join(traces),
          "), where --init-from would read the export instead; give another --output");
  std::error_code ignored;
  require(!std::filesystem::exists(std::filesystem::path(output) / kManifestName, ignored),
          "export: '", output, "' is a checkpoint; give another ", "--output");
}

/// What the model that is recorded lacks would be left out of the export without a word.
void require_no_other_parameters(const Checkpoint& checkpoint, const ModelConfig& model) {
  const auto wanted = parameter_shapes(model);
  for (const TensorEntry& entry : checkpoint.tensors())
    if (entry.role == Role::Parameter && !wanted.contains(entry.name))
      fail(Fault::Checkpoint, "export: '", checkpoint.path(), "' has parameter ", entry.name,
           ", which its recorded configuration does not have, so they belong to different ",
           "models: export the checkpoint as it was saved");
}

}  // namespace

std::string notice_of_left_out(const ExportedModel& written) {
  constexpr std::size_t kShown = 8;
  const std::vector<std::string>& all = written.left_out;
  if (all.empty()) return "";
  const std::size_t shown = std::min(kShown, all.size());
  const std::string names = join(std::vector(all.begin(), all.begin() + std::ptrdiff_t(shown)));
  return text("transformers' model of this task has no ", names,
              shown < all.size() ? text(" and ", all.size() - shown, " more") : "",
              ": the folder lacks them. To continue training with them, give --init-from the run");
}

ExportedModel export_model(const std::string& path, const std::string& output, SavePretrained how,
                           const OwnFamilies& families) {
  require_own_folder(output);
  const auto write = [&] {
    const Checkpoint checkpoint = Checkpoint::open(path);
    const RecordedRun run = recorded_run(checkpoint, families, RecordedUse::Weights);
    require_no_other_parameters(checkpoint, run.config.model);
    how.config = recorded_hub_config(checkpoint);
    how.labels = run.labels;
    const ParameterReader parameters = {
        [&](std::string_view name) {
          const TensorEntry* entry = checkpoint.find(name);
          return entry != nullptr && entry->role == Role::Parameter ? &entry->type.shape : nullptr;
        },
        [&](std::string_view name, std::span<float> out) {
          checkpoint.read(name, std::as_writable_bytes(out));
        }};
    // A tokenizer of another program goes with the model that knows its ids.
    const Tokenizer* const tokenizer = run.vocabulary.made_elsewhere();
    if (tokenizer != nullptr) how.tokenizer = exported_files(*tokenizer);
    if (tokenizer != nullptr && has_head(run.config.model, TaskHead::SequenceClassification))
      how.pad_token = exported_padding(*tokenizer, how.tokenizer);
    std::vector<std::string> left_out = save_pretrained(output, run.config.model, parameters, how);
    const VocabularyKind kind = run.vocabulary.kind();
    const bool made_of_text = kind == VocabularyKind::Characters || kind == VocabularyKind::Bpe;
    return ExportedModel{std::string(run.config.model.family.name()), checkpoint.record().step,
                         made_of_text ? std::string(to_text(kind)) : "", std::move(left_out)};
  };
  return naming_intact(path, "tessera export", recorded_run_judge(families, RecordedUse::Weights),
                       write);
}

}  // namespace tessera
