#include "tessera/pretrained/hub_cache.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "tessera/base/text.h"
#include "tessera/files/file.h"
#include "tessera/pretrained/hub/hub_weights.h"

namespace tessera {

namespace fs = std::filesystem;

bool is_hub_name(std::string_view name) {
  const std::vector<std::string> words = split(name, '/');
  return words.size() <= 2 && std::ranges::all_of(words, [](const std::string& word) {
           return !word.empty() && word != "." && word != ".." &&
                  std::ranges::all_of(word, [](unsigned char c) {
                    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
                  });
         });
}

std::string hub_snapshot(const std::string& root, std::string_view name) {
  if (!is_hub_name(name)) return "";
  const fs::path model = fs::path(root) / text("models--", join(split(name, '/'), "--"));
  std::error_code ignored;
  if (!fs::is_regular_file(model / "refs" / "main", ignored)) return "";
  const std::string commit(trim(read_file((model / "refs" / "main").string(), Fault::Data)));
  const bool word = !commit.empty() && std::ranges::all_of(commit, [](unsigned char c) {
    return std::isalnum(c) != 0;
  });
  const fs::path snapshot = model / "snapshots" / commit;
  return word && fs::is_regular_file(snapshot / kHubConfigFile, ignored) ? snapshot.string() : "";
}

}  // namespace tessera
