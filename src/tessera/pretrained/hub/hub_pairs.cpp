#include "tessera/pretrained/hub/hub_pairs.h"

#include "tessera/base/text.h"

namespace tessera {

TranslationTokens read_pair_tokens(const HubConfig& from, TranslationTokens standard,
                                   std::int64_t vocabulary) {
  constexpr const char* kPairs = "is_encoder_decoder";
  if (from.has(kPairs) && !from.truth(kPairs))
    from.refuse(kPairs, "there are an encoder and a decoder here; write true");
  const auto token = [&](std::string_view key, std::int32_t otherwise) {
    const std::int32_t out = from.id(key, otherwise);
    if (out >= vocabulary)
      from.refuse(key, text("token ", out, " must be below vocab_size ", vocabulary));
    return out;
  };
  return {token("pad_token_id", standard.pad), token("decoder_start_token_id", standard.start),
          token("eos_token_id", standard.end)};
}

void write_pair_tokens(const ModelConfig& from, HubJson& to) {
  const TranslationTokens tokens = translation_tokens(from);
  to["is_encoder_decoder"] = true;
  to["pad_token_id"] = tokens.pad;
  to["decoder_start_token_id"] = tokens.start;
  to["eos_token_id"] = tokens.end;
}

}  // namespace tessera
