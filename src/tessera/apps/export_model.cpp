#include "tessera/apps/export_model.h"

#include <filesystem>
#include <optional>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/data/file.h"
#include "tessera/train/checkpoint.h"
#include "tessera/train/recorded.h"

namespace tessera {

namespace {

/// Its files, so that transformers reads them as we do: of a vocab.txt alone it takes capitals for
/// small letters, whatever tokens there are.
TokenizerFiles files_for_transformers(const Tokenizer& tokenizer) {
  TokenizerFiles out = tokenizer.files();
  constexpr const char* kConfig = "tokenizer_config.json";
  if (!out.contains("vocab.txt") || out.contains(kConfig) || out.contains("tokenizer.json"))
    return out;
  for (char letter = 'A'; letter <= 'Z'; ++letter) {
    const std::string text(1, letter);
    const std::optional<std::int32_t> id = tokenizer.id_of(text);
    const std::vector<std::int32_t> ids = tokenizer.encode(text, {.add_special_tokens = false});
    if (!id || ids != std::vector{*id}) continue;
    out[kConfig] = R"({"do_lower_case": false})";
    break;
  }
  return out;
}

}  // namespace

ExportedModel export_model(const std::string& path, const std::string& output, SavePretrained how,
                           const OwnFamilies& families) {
  const auto write = [&] {
    const Checkpoint checkpoint = Checkpoint::open(path);
    const RecordedRun run = recorded_run(checkpoint, families, RecordedUse::Weights);
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
    const TokenizerFiles files =
        tokenizer == nullptr ? TokenizerFiles() : files_for_transformers(*tokenizer);
    const std::filesystem::path folder = output;
    for (const auto& [name, bytes] : files)
      require(how.overwrite || !std::filesystem::exists(folder / name), "export: '",
              (folder / name).string(),
              "' is there already; give another --output, or --overwrite");
    save_pretrained(output, run.config.model, parameters, how);
    for (const auto& [name, bytes] : files) write_atomically((folder / name).string(), bytes);
    return ExportedModel{std::string(run.config.model.family.name()), checkpoint.record().step};
  };
  return naming_intact(path, "tessera export", recorded_run_judge(families, RecordedUse::Weights),
                       write);
}

}  // namespace tessera
