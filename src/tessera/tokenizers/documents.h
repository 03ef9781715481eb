#pragma once
/// Older files, as the tokenizer.json that says the same.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tessera::tokenizer {

/// BERT's vocab.txt: a token in each line, whose number from 0 is its id; white space at the ends
/// of lines is none of theirs, and of equal tokens the last counts. `config`:
/// tokenizer_config.json. Without "do_lower_case" there the text is lower-cased unless the
/// vocabulary itself has words with capitals. Errors: Fault::Data: not UTF-8, or empty.
nlohmann::json document_of_vocab_txt(const std::string& bytes, const nlohmann::json& config,
                                     const std::string& file);

/// GPT-2's vocab.json and merges.txt. `special`: tokens that have roles; without any,
/// <|endoftext|> is one where the vocabulary has it.
nlohmann::json document_of_vocab_json(nlohmann::json vocabulary, const std::string& merges,
                                      const nlohmann::json& config,
                                      std::vector<std::string> special,
                                      const std::string& merges_file);

/// The tokens and ids of a vocab.txt.
nlohmann::json vocabulary_of_vocab_txt(const std::string& bytes, const std::string& file);
/// The lines of a merges.txt.
nlohmann::json merges_of_lines(const std::string& bytes, const std::string& file);

}  // namespace tessera::tokenizer
