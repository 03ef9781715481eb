#pragma once
/// The files of a tokenizer, as a checkpoint records them.

#include <nlohmann/json.hpp>

#include "tessera/tokenizers/tokenizer.h"

namespace tessera::tokenizer {

/// By name: the text of a file, or {"base64": ...} of one that is not UTF-8.
nlohmann::ordered_json json_of_files(const TokenizerFiles& files);
/// Reads what json_of_files() makes. Errors: Fault::Data: something else.
TokenizerFiles files_of_json(const nlohmann::json& json);

}  // namespace tessera::tokenizer
