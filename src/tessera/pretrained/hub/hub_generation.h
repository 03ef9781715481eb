#pragma once
/// How the texts of a model in a folder begin, as transformers' generate() writes them.

#include <string>

#include "tessera/models/config.h"
#include "tessera/pretrained/hub/hub_config.h"

namespace tessera {

/// Of a model that writes a text from another one: forced_bos_token_id and decoder_start_token_id
/// of generation_config.json, or, without that file, of config.json, are the tokens with which our
/// texts begin. Returns a notice where nothing says forced_bos_token_id, and texts here begin with
/// one. Errors: Fault::Data: they are others.
std::string require_same_beginning(const HubConfig& config, const std::string& folder,
                                   const ModelConfig& model);

}  // namespace tessera
