#include "tessera/pretrained/hub/hub_sentences.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/files/file.h"
#include "tessera/pretrained/hub/hub_config.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

constexpr const char *kModules = "modules.json", *kLengths = "sentence_bert_config.json",
                     *kConfig = "config.json";
constexpr const char *kPooling = "1_Pooling", *kNormalize = "2_Normalize";

/// Keys of files of version 5 and before, each true or false; their modes in later ones.
struct PoolingMode {
  const char *key, *mode;
};
constexpr PoolingMode kPoolingModes[] = {
    {"pooling_mode_cls_token", "cls"},
    {"pooling_mode_mean_tokens", "mean"},
    {"pooling_mode_max_tokens", "max"},
    {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens"},
    {"pooling_mode_weightedmean_tokens", "weightedmean"},
    {"pooling_mode_lasttoken", "lasttoken"}};

std::string pooling_of(const HubConfig& config) {
  std::vector<std::string> modes;
  if (config.has("pooling_mode")) modes.push_back(config.word("pooling_mode"));
  for (const auto& [key, mode] : kPoolingModes) {
    if (modes.empty() || !config.has("pooling_mode"))
      if (config.has(key) && config.truth(key)) modes.emplace_back(mode);
  }
  if (modes.size() != 1 || (modes[0] != kFirstPooling && modes[0] != kMeanPooling))
    fail(Fault::Data, config.path(), ": vectors are made by ",
         modes.empty() ? "no pooling" : "pooling " + join(modes), "; one of ", kFirstPooling,
         " and ", kMeanPooling, " is known here");
  return modes[0];
}

std::string in(const std::string& folder, const std::string& path, const char* file) {
  return (fs::path(folder) / path / file).string();
}

}  // namespace

void read_sentence_modules(const std::string& folder, ModelConfig& model,
                           std::vector<std::string>& notices) {
  const std::string path = in(folder, "", kModules);
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return;
  const HubJson modules = parse_hub_json(read_file(path, Fault::Data), path, Fault::Data);
  if (!modules.is_array()) fail(Fault::Data, path, " is no list of modules; download it again");
  for (const HubJson& module : modules) {
    const HubConfig one(module.dump(), path);
    const std::string type = one.word("type"), at = one.word("path");
    if (type.ends_with(".Pooling")) {
      const std::string file = in(folder, at, kConfig);
      model.sentence_pooling = pooling_of(HubConfig(read_file(file, Fault::Data), file));
    } else if (!type.ends_with(".Transformer") && !type.ends_with(".Normalize")) {
      fail(Fault::Data, path, ": module ", shown(module.value("type", HubJson())),
           " is not known here: vectors would be others; supported are Transformer, Pooling and "
           "Normalize");
    }
  }
  const std::string lengths = in(folder, "", kLengths);
  if (!fs::is_regular_file(lengths, ignored)) return;
  const HubConfig config(read_file(lengths, Fault::Data), lengths);
  if (config.has("do_lower_case") && config.truth("do_lower_case"))
    config.refuse("do_lower_case",
                  "texts are tokenized as they are here, so vectors would be "
                  "others; make it false, and let the tokenizer write small "
                  "letters");
  if (!config.has("max_seq_length")) return;
  const std::int64_t most = config.whole("max_seq_length", 1, kMaxContext);
  if (most < model.most_positions())
    notices.push_back(text("sentence-transformers cuts texts of '", folder, "' to ", most,
                           " tokens; --context ", most, " does"));
}

std::map<std::string, std::string> sentence_modules(const ModelConfig& model) {
  const auto module = [](int idx, const char* path, const char* type) {
    return HubJson{{"idx", idx}, {"name", text(idx)}, {"path", path}, {"type", type}};
  };
  HubJson pooling = {{"word_embedding_dimension", model.width}};
  for (const auto& [key, mode] : kPoolingModes) pooling[key] = model.sentence_pooling == mode;
  const HubJson modules = {module(0, "", "sentence_transformers.models.Transformer"),
                           module(1, kPooling, "sentence_transformers.models.Pooling"),
                           module(2, kNormalize, "sentence_transformers.models.Normalize")};
  const HubJson lengths = {{"max_seq_length", model.most_positions()}, {"do_lower_case", false}};
  return {{kModules, modules.dump(2) + "\n"},
          {kLengths, lengths.dump(2) + "\n"},
          {text(kPooling, "/", kConfig), pooling.dump(2) + "\n"},
          {text(kNormalize, "/", kConfig), "{}\n"}};
}

bool is_of_sentences(std::string_view name) {
  constexpr std::string_view kNames[] = {"modules.json", "sentence_bert_config.json", "1_Pooling",
                                         "2_Normalize", "config_sentence_transformers.json"};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

}  // namespace tessera
