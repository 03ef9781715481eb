#pragma once
/// What a folder says of the texts that transformers' generate() writes, and we do not do.

#include <string>
#include <vector>

#include "tessera/models/config.h"
#include "tessera/pretrained/hub/hub_config.h"

namespace tessera {

/// Of a model that writes a text from another one; by generation_config.json, or, without that
/// file, by config.json. Notices: texts here begin with a token that the folder does not force;
/// keys of generation_config.json that shape a text. Errors: Fault::Data: forced_bos_token_id or
/// decoder_start_token_id are other tokens than those with which our texts begin.
std::vector<std::string> notices_of_writing(const HubConfig& config, const std::string& folder,
                                            const ModelConfig& model);

}  // namespace tessera
