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
#include "tessera/pretrained/hub_cache.h"
#include "tessera/pretrained/pretrained_model.h"
#include "tessera/tensor/convert_floats.h"
#include "tessera/train/adapter_base.h"

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
    if (is_of_model(entry.role) && !wanted.contains(entry.name))
      fail(Fault::Checkpoint, "export: '", checkpoint.path(), "' has parameter ", entry.name,
           ", which its recorded configuration does not have, so they belong to different ",
           "models: export the checkpoint as it was saved");
}

}  // namespace

ExportedModel merge_adapter(const std::string& folder, const std::string& output,
                            SavePretrained how) {
  require_own_folder(output);
  const PretrainedModel from = PretrainedModel::open(folder);
  const ModelConfig& model = from.config();
  require(model.lora.rank > 0, "merge-adapter: '", folder, "' has no adapter: it is a whole model");
  how.config = from.json();
  how.labels = from.labels();
  const std::string& of_tokenizer = Tokenizer::is_in(folder) ? folder : from.base();
  if (Tokenizer::is_in(of_tokenizer)) how.tokenizer = exported_files(Tokenizer::load(of_tokenizer));
  const ParameterReader parameters = {[&](std::string_view name) {
                                        const auto found = from.parameters().find(name);
                                        return found == from.parameters().end() ? nullptr
                                                                                : &found->second;
                                      },
                                      [&](std::string_view name, std::span<float> out) {
                                        read_whole(from, name, std::as_writable_bytes(out));
                                      }};
  ExportedModel out{std::string(model.family.name())};
  out.left_out = save_pretrained(output, model, parameters, how);
  return out;
}

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

namespace {

/// The model that the adapters of a run are of, as PEFT is to find it. `left_out`: the folder of
/// what the checkpoint leaves out; empty: it holds all.
std::string base_of(const RunConfig& config, const std::string& left_out) {
  const std::string& init_from = left_out.empty() ? config.init_from : left_out;
  constexpr std::string_view kMerge = "; write the whole model by tessera merge-adapter";
  require(!init_from.empty(), "export: the run began with random weights, so its adapter has ",
          "no base that PEFT could load", kMerge);
  require(PretrainedModel::is_at(init_from), "export: the adapter's base is '", init_from,
          "', which is no folder of Hugging Face, and PEFT loads no other", kMerge);
  const PretrainedModel from = PretrainedModel::open(init_from, {.task_given = true});
  require(!from.changes_base(), "export: the run began with the adapter '", init_from,
          "', which has weights in place of its base's, and an adapter of the run would lack them",
          kMerge);
  const std::string name = hub_name(from.base());
  return !name.empty() && hub_snapshot(hub_root(), name) == from.base()
             ? name
             : absolute_path(from.base());
}

}  // namespace

ExportedModel export_model(const std::string& path, const std::string& output, SavePretrained how,
                           AdapterExport adapter, const OwnFamilies& families) {
  require_own_folder(output);
  const auto write = [&] {
    const Checkpoint checkpoint = open_with_base(path);
    const RecordedRun run = recorded_run(checkpoint, families, RecordedUse::Weights);
    const ModelConfig& model = run.config.model;
    require(model.lora.rank > 0 || adapter == AdapterExport::Apart, "merge-adapter: '", path,
            "' has no adapter: tessera export writes a whole model");
    require_no_other_parameters(checkpoint, model);
    how.config = recorded_hub_config(checkpoint);
    how.labels = run.labels;
    how.image_processor = run.config.image_processor;
    const ParameterReader parameters = {
        [&](std::string_view name) {
          const TensorEntry* entry = checkpoint.find(name);
          return entry != nullptr && is_of_model(entry->role) ? &entry->type.shape : nullptr;
        },
        [&](std::string_view name, std::span<float> out) {
          const TensorType& type = checkpoint.find(name)->type;
          std::vector<std::byte> bytes(static_cast<std::size_t>(type.bytes()));
          checkpoint.read(name, bytes);
          convert_floats(type.dtype, bytes, DType::F32, std::as_writable_bytes(out));
        }};
    // A tokenizer of another program goes with the model that knows its ids.
    const Tokenizer* const tokenizer = run.vocabulary.made_elsewhere();
    if (tokenizer != nullptr) how.tokenizer = exported_files(*tokenizer);
    if (tokenizer != nullptr && has_head(model, TaskHead::SequenceClassification))
      how.pad_token = exported_padding(*tokenizer, how.tokenizer);
    const VocabularyKind kind = run.vocabulary.kind();
    const bool made_of_text = kind == VocabularyKind::Characters || kind == VocabularyKind::Bpe;
    ExportedModel out{std::string(model.family.name()), checkpoint.record().step,
                      made_of_text ? std::string(to_text(kind)) : ""};
    out.adapter = model.lora.rank > 0 && adapter == AdapterExport::Apart;
    if (out.adapter)
      save_adapter(output, model, parameters, base_of(run.config, checkpoint.base_path()), how);
    else
      out.left_out = save_pretrained(output, model, parameters, how);
    return out;
  };
  return naming_intact(path, "tessera export", recorded_run_judge(families, RecordedUse::Weights),
                       write);
}

}  // namespace tessera
