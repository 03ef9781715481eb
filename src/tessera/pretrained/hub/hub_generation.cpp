#include "tessera/pretrained/hub/hub_generation.h"

#include <filesystem>
#include <optional>

#include "tessera/base/text.h"
#include "tessera/files/file.h"
#include "tessera/models/translation.h"
#include "tessera/pretrained/hub/hub_keys.h"

namespace tessera {

namespace {

/// What says nothing of which tokens are written, or is read.
constexpr std::string_view kShapesNothing =
    "bos_token_id eos_token_id pad_token_id decoder_start_token_id forced_bos_token_id "
    "forced_eos_token_id transformers_version _from_model_config use_cache cache_implementation "
    "output_attentions output_hidden_states output_logits output_scores return_dict_in_generate";

/// Keys that shape a text, but for those that do not as they are: null, false, 0 and 1 stand for
/// no limit, no penalty, one beam.
std::vector<std::string> unread_keys(const HubJson& json) {
  std::vector<std::string> out;
  for (const auto& [key, value] : json.items()) {
    const bool unset = value.is_null() || value == false || value == 0 || value == 1;
    if (!unset && !is_one_of(kShapesNothing, key)) out.push_back(key);
  }
  return out;
}

}  // namespace

std::vector<std::string> notices_of_writing(const HubConfig& config, const std::string& folder,
                                            const ModelConfig& model) {
  namespace fs = std::filesystem;
  std::vector<std::string> out;
  if (!has_task(model, kSeq2SeqLm)) return out;
  const std::string file = (fs::path(folder) / "generation_config.json").string();
  std::error_code ignored;
  std::optional<HubConfig> own;
  if (fs::is_regular_file(file, ignored)) own.emplace(read_file(file, Fault::Data), file);
  const HubConfig& says = own ? *own : config;
  const TranslationTokens tokens = translation_tokens(model);
  const auto same = [&](const char* key, std::optional<std::int32_t> ours) {
    if (!says.has(key) || says.id(key, 0) == ours) return;
    says.refuse(key, text("texts begin with ", ours ? text("token ", *ours) : "no such token",
                          " here, as those that train do; leave the key out to have that"));
  };
  same("decoder_start_token_id", tokens.start);
  same("forced_bos_token_id", tokens.first);
  if (tokens.first && !says.has("forced_bos_token_id"))
    out.push_back(text("texts that are written begin with token ", *tokens.first,
                       ", as those that train do; ", says.path(),
                       " has no forced_bos_token_id, and transformers forces no token"));
  if (!own) return out;
  if (const std::vector<std::string> keys = unread_keys(own->json()); !keys.empty())
    out.push_back(text(file, ": not read here: ", join(keys),
                       "; each token that is written is the likeliest, up to the model's context"));
  return out;
}

}  // namespace tessera
