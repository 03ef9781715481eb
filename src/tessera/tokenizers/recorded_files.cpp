#include "tessera/tokenizers/recorded_files.h"

#include <algorithm>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/base/utf8.h"
#include "tessera/tokenizers/charsmap.h"
#include "tessera/tokenizers/files.h"
#include "tessera/tokenizers/json_part.h"

namespace tessera::tokenizer {

nlohmann::ordered_json json_of_files(const TokenizerFiles& files) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (const auto& [name, bytes] : files) {
    if (find_invalid_utf8(bytes) == std::string::npos) {
      out[name] = bytes;
    } else {
      out[name] = {{"base64", base64_of_bytes(bytes)}};
    }
  }
  return out;
}

TokenizerFiles files_of_json(const nlohmann::json& json) {
  const JsonPart part(json, "files");
  if (!json.is_object())
    part.bad("it is ", JsonPart::shown(json), " where an object of files belongs");
  TokenizerFiles out;
  for (auto it = json.begin(); it != json.end(); ++it) {
    // An export writes files of these names, so none may be a path.
    if (std::ranges::find(kTokenizerFileNames, std::string_view(it.key())) ==
        std::end(kTokenizerFileNames))
      part.bad("it has ", JsonPart::shown(it.key()), ", which is not a file of a tokenizer");
    if (it->is_string()) {
      out[it.key()] = it->get<std::string>();
    } else {
      const JsonPart file = part.part(it.key());
      out[it.key()] = bytes_of_base64(file.text("base64"), file);
    }
  }
  return out;
}

}  // namespace tessera::tokenizer
