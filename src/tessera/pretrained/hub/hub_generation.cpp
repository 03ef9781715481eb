#include "tessera/pretrained/hub/hub_generation.h"

#include <filesystem>
#include <optional>

#include "tessera/base/text.h"
#include "tessera/data/file.h"
#include "tessera/models/translation.h"

namespace tessera {

std::string require_same_beginning(const HubConfig& config, const std::string& folder,
                                   const ModelConfig& model) {
  namespace fs = std::filesystem;
  if (!has_task(model, kSeq2SeqLm)) return "";
  const std::string file = (fs::path(folder) / "generation_config.json").string();
  std::error_code ignored;
  std::optional<HubConfig> own;
  if (fs::is_regular_file(file, ignored)) own.emplace(read_file(file, Fault::Data), file);
  const HubConfig& says = own ? *own : config;
  const TranslationTokens tokens = translation_tokens(model);
  const auto same = [&](const char* key, std::optional<std::int32_t> ours) {
    if (!says.has(key) || says.id(key, 0) == ours) return;
    says.refuse(key, text("texts begin with ", ours ? text("token ", *ours) : "no such token",
                          " here, as config.json says of those that train; leave the key out, or ",
                          "make both files agree"));
  };
  same("decoder_start_token_id", tokens.start);
  same("forced_bos_token_id", tokens.first);
  if (!tokens.first || says.has("forced_bos_token_id")) return "";
  return text("texts that are written begin with token ", *tokens.first, ", as those that train; ",
              "nothing in '", folder,
              "' has forced_bos_token_id, and transformers forces no token");
}

}  // namespace tessera
