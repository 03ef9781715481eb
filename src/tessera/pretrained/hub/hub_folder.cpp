#include "tessera/pretrained/hub/hub_folder.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/files/file.h"
#include "tessera/ir/strategy.h"
#include "tessera/pretrained/hub/hub_config.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

/// Files of weights that are not read, by how their names are made; `*` stands for anything. The
/// first that matches counts.
struct OtherWeights {
  std::string_view pattern, what_to_do;
};
constexpr std::string_view kAdapter =
    "it is an adapter (LoRA), not a model: merge it with PEFT into its base model "
    "(merge_and_unload, then save_pretrained) and give that folder";
constexpr std::string_view kSaveAgain =
    "weights are read from safetensors: load it with the program that wrote it, and save it with "
    "transformers (save_pretrained)";
constexpr OtherWeights kOtherWeights[] = {
    {"adapter_model.*", kAdapter},
    {"*.safetensors.index.json", "an index is read as model.safetensors.index.json: rename it"},
    {"model-*-of-*.safetensors",
     "these are shards, but their index model.safetensors.index.json is missing: download it"},
    {"consolidated*",
     "these are weights under their maker's own names; the same repository has them as "
     "model.safetensors or shards of it: download those"},
    {"*.safetensors", "weights are read from model.safetensors: rename it if it is the model"},
    {"pytorch_model*.bin",
     "it is pickle, which can run any program and is not read here; make safetensors of it: "
     "python3 -c \"from transformers import AutoModel as M; "
     "M.from_pretrained('FOLDER').save_pretrained('NEW_FOLDER')\""},
    {"tf_model.h5", kSaveAgain},
    {"tf_model*", kSaveAgain},
    {"model.ckpt*", kSaveAgain},
    {"flax_model*", kSaveAgain},
    {"*.gguf", "quantized weights are not read: give the model from which it was made"},
    {"*.ggml", "quantized weights are not read: give the model from which it was made"},
    {"*.onnx", kSaveAgain},
    {"*.h5", kSaveAgain},
    {"*.msgpack", kSaveAgain},
    {"*.ckpt", kSaveAgain},
    {"*.pth", kSaveAgain},
    {"*.pt", kSaveAgain},
    {"*.bin", kSaveAgain},
};
/// Beside weights, what a program left of its own.
constexpr std::string_view kNoWeights[] = {"training_args.bin", "optimizer.*", "scheduler.*",
                                           "rng_state*", "scaler.pt"};

struct FoundWeights {
  std::string name;
  const OtherWeights* kind = nullptr;
};

/// The file of weights that tells most: that of the first row which one matches.
FoundWeights other_weights(const std::string& folder) {
  FoundWeights out;
  std::error_code error;
  for (const fs::path& entry : entries_of(folder, error)) {
    const std::string name = entry.filename().string();
    const auto like = [&](std::string_view pattern) { return matches(pattern, name); };
    if (std::ranges::any_of(kNoWeights, like)) continue;
    const auto kind = std::ranges::find_if(kOtherWeights, like, &OtherWeights::pattern);
    if (kind == std::end(kOtherWeights)) continue;
    if (out.kind == nullptr || &*kind < out.kind) out = {name, &*kind};
  }
  return out;
}

/// ", of the model NAME", where the adapter says so.
std::string base_of_adapter(const std::string& folder) {
  const std::string file = (fs::path(folder) / "adapter_config.json").string();
  const HubJson json = parse_hub_json(read_file(file, Fault::Data), file, Fault::Data);
  const auto base = json.is_object() ? json.find("base_model_name_or_path") : json.end();
  return base == json.end() || !base->is_string()
             ? ""
             : text(", of the model ", printable(base->get<std::string>()));
}

/// In it, or in the folder of one of its iterations. The tracker file alone says nothing: runs of
/// Tessera write it too.
bool has_shards_of_megatron(const fs::path& folder) {
  std::error_code error;
  return std::ranges::any_of(entries_of(folder, error), [&](const fs::path& entry) {
    const std::string name = entry.filename().string();
    if (name.starts_with("mp_rank_") || name.ends_with(".distcp")) return true;
    return (name.starts_with("iter_") || name == "release") && fs::is_directory(entry, error) &&
           has_shards_of_megatron(entry);
  });
}

}  // namespace

bool is_named_in(const std::string& folder, const char* name) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(fs::path(folder) / name, ignored));
}

void require_no_pointer(std::string_view begin_of_file, const std::string& path, Fault fault) {
  if (!begin_of_file.starts_with("version https://git-lfs")) return;
  fail(fault, path, " is a pointer of Git LFS, not the file itself; get it with `git lfs pull` in ",
       "its folder, or `hf download`");
}

void refuse_other_folder(const std::string& folder) {
  const auto has = [&](const char* name) { return is_named_in(folder, name); };
  if (has_shards_of_megatron(folder))
    fail(Fault::Data, "'", folder, "' is a checkpoint of Megatron-LM, whose files are pickle and ",
         "are not read here; make a folder of it with tools/convert_megatron.py, and give that");
  if (has("modules.json")) {
    std::string model = "0_Transformer";
    std::error_code ignored;
    for (const fs::path& entry : entries_of(folder, ignored)) {
      if (fs::is_regular_file(entry / "config.json", ignored)) model = entry.filename().string();
    }
    fail(Fault::Data, "'", folder, "' is a folder of sentence-transformers, whose model is in a ",
         "subfolder; give '", (fs::path(folder) / model).string(), "'");
  }
  if (const FoundWeights found = other_weights(folder); found.kind != nullptr)
    fail(Fault::Data, "'", folder, "' has ", found.name, " but no config.json, so its ",
         "model is unknown; give a folder saved by transformers (save_pretrained)");
}

void refuse_adapter_beside_model(const std::string& folder) {
  if (!is_named_in(folder, "adapter_config.json")) return;
  fail(Fault::Data, "'", folder, "' has an adapter (adapter_config.json)", base_of_adapter(folder),
       ", beside a config.json; merge it with PEFT (merge_and_unload, then save_pretrained) and "
       "give that folder, or, if its weights are merged already, move adapter_config.json away");
}

bool has_other_weights(const std::string& folder) { return other_weights(folder).kind != nullptr; }

void refuse_without_weights(const std::string& folder) {
  if (const FoundWeights found = other_weights(folder); found.kind != nullptr)
    fail(Fault::Checkpoint, "'", folder, "' has no model.safetensors, but ", printable(found.name),
         "; ", found.kind->what_to_do);
  fail(Fault::Checkpoint, "'", folder, "' has a config.json but no weights (model.safetensors); ",
       "download them");
}

}  // namespace tessera
