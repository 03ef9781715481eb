#pragma once
/// What sentence-transformers writes beside a model: how vectors of texts are made of its rows.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/models/config.h"

namespace tessera {

/// Takes the pooling that modules.json of the folder names, if there is such a file. A module that
/// makes vectors of length 1 changes no cosine. Errors: Fault::Data: another module, or another
/// pooling than `cls` and `mean`.
void read_sentence_modules(const std::string& folder, ModelConfig& model,
                           std::vector<std::string>& notices);

/// The files, by their paths in the folder, with which sentence-transformers makes the same vectors,
/// of length 1.
std::map<std::string, std::string> sentence_modules(const ModelConfig& model);

/// An entry of a folder that is, or has, such a file.
bool is_of_sentences(std::string_view name);

}  // namespace tessera
