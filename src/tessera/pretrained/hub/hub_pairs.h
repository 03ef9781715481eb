#pragma once
/// Special tokens of models that write one text from another, in config.json.

#include "tessera/models/translation.h"
#include "tessera/pretrained/hub/hub_config.h"

namespace tessera {

/// pad_token_id, decoder_start_token_id and eos_token_id; `standard`: where they are missing.
/// Errors: an id that is not below `vocabulary`; is_encoder_decoder is not true.
TranslationTokens read_pair_tokens(const HubConfig& from, TranslationTokens standard,
                                   std::int64_t vocabulary);
/// Writes these keys.
void write_pair_tokens(const ModelConfig& from, HubJson& to);

}  // namespace tessera
