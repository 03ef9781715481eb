#pragma once
/// A small tokenizer with a chat template, as a folder.

#include <filesystem>
#include <string>

#include "repo_file.h"

namespace tessera {

/// The folder, made below `folder`.
inline std::string chat_tokenizer_in(const std::string& folder) {
  namespace fs = std::filesystem;
  const std::string golden = repo_file("tests/golden/chat"), out = folder + "/tokenizer";
  fs::create_directory(out);
  for (const char* const name : {"tokenizer.json", "tokenizer_config.json"})
    fs::copy_file(golden + "/byte_level/" + name, out + "/" + name);
  fs::copy_file(golden + "/chatml.jinja", out + "/chat_template.jinja");
  return out;
}

}  // namespace tessera
