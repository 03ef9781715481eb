#pragma once
/// Which class of transformers a tokenizer is: it says how a vocabulary is used.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace tessera::tokenizer {

/// Whose tokenizer.json is read as it is, and nothing else decides.
inline constexpr const char* kFileClass = "TokenizersBackend";

/// The name of a class without its aliases: "BartTokenizerFast" is "RobertaTokenizer".
std::string class_of_name(std::string_view name);

/// The class that transformers 5.24 takes for tokenizer_config.json and config.json, objects that
/// may be empty; empty: neither says one. `byte_level`: whether tokenizer.json speaks of ByteLevel.
std::string class_of_configs(const nlohmann::json& config, const nlohmann::json& model_config,
                             bool byte_level);

}  // namespace tessera::tokenizer
