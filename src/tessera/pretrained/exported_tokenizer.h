#pragma once
/// A tokenizer's files as Hugging Face's transformers reads them.

#include <cstdint>
#include <optional>

#include "tessera/tokenizers/tokenizer.h"

namespace tessera {

/// Its files, with what makes transformers encode as it does. Beside a tokenizer.json nothing is
/// needed. Of a vocabulary alone (vocab.txt, or vocab.json and merges.txt) transformers takes the
/// tokenizer that is usual for the model's family, and capitals for small letters: so
/// tokenizer_config.json names the class, and says whether capitals count, where it does not yet.
TokenizerFiles exported_files(const Tokenizer& tokenizer);

/// Padding's id: the tokenizer's, or that of the end of a text, which `files` then name as
/// pad_token; none: it has neither.
std::optional<std::int32_t> exported_padding(const Tokenizer& tokenizer, TokenizerFiles& files);

}  // namespace tessera
