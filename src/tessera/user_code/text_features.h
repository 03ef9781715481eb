#pragma once
/// Texts as features of a sample.

#include <cstdint>
#include <string_view>

#include "tessera/tokenizers/tokenizer.h"
#include "tessera/user_code/map_dataset.h"

namespace tessera {

/// What tokenizer(first, second, truncation=True, padding="max_length", max_length=length) returns
/// in transformers: input_ids, token_type_ids and attention_mask, rows of `length` numbers. Of two
/// texts the longer one is cut first. Errors: Fault::Usage: no room for the special tokens.
Features tokenized(const Tokenizer& tokenizer, std::string_view first, std::string_view second,
                   std::int64_t length);
/// The same of one text.
Features tokenized(const Tokenizer& tokenizer, std::string_view text, std::int64_t length);

/// The tokenizer that flags name, or that of the folder that --init-from does. Errors:
/// Fault::Usage: neither does; as of load_tokenizer.
Tokenizer tokenizer_of(const RunConfig& args);

}  // namespace tessera
