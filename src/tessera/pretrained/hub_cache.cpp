#include "tessera/pretrained/hub_cache.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <mutex>

#include "tessera/base/text.h"
#include "tessera/files/file.h"
#include "tessera/pretrained/hub/hub_weights.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

/// Several threads may open models.
struct HubRoot {
  std::mutex mutex;
  std::string path;
};

HubRoot& root_of_process() {
  static HubRoot root;
  return root;
}

}  // namespace

void set_hub_root(const std::string& root) {
  const std::lock_guard<std::mutex> hold(root_of_process().mutex);
  root_of_process().path = root;
}

std::string hub_root() {
  const std::lock_guard<std::mutex> hold(root_of_process().mutex);
  return root_of_process().path;
}

bool is_hub_name(std::string_view name) {
  const std::vector<std::string> words = split(name, '/');
  return words.size() <= 2 && std::ranges::all_of(words, [](const std::string& word) {
           return !word.empty() && word != "." && word != ".." &&
                  std::ranges::all_of(word, [](unsigned char c) {
                    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
                  });
         });
}

std::string hub_name(const std::string& folder) {
  const fs::path snapshots = fs::path(folder).parent_path(), model = snapshots.parent_path();
  constexpr std::string_view kModels = "models--";
  std::string name = model.filename().string();
  if (snapshots.filename() != "snapshots" || !name.starts_with(kModels)) return "";
  name.erase(0, kModels.size());
  if (const std::size_t at = name.find("--"); at != std::string::npos) name.replace(at, 2, "/");
  return is_hub_name(name) ? name : "";
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
