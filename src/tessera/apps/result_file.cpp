#include "tessera/apps/result_file.h"

#include <unistd.h>

#include <filesystem>

#include "tessera/base/text.h"
#include "tessera/files/file.h"

namespace tessera {

namespace {

/// By whatever path or link; a file that is not there yet has its path alone.
bool is_same_file(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  if (a.empty() || b.empty()) return false;
  std::error_code ignored, failed;
  if (fs::equivalent(a, b, ignored)) return true;
  const fs::path path = fs::weakly_canonical(fs::absolute(a), failed);
  return !failed && path == fs::weakly_canonical(fs::absolute(b), failed) && !failed;
}

}  // namespace

void check_result_file(const std::string& name, const std::string& file,
                       std::optional<OwnFile> kind, Problems& problems) {
  namespace fs = std::filesystem;
  if (file.empty()) {
    problems.add(text(name, " is empty; name a file to write"));
    return;
  }
  if (kind) check_replaces_own(name, file, *kind, problems);
  std::error_code ignored;
  const fs::path folder = fs::absolute(file).parent_path();
  if (fs::is_directory(file, ignored)) {
    problems.add(text(name, " '", file, "' is a folder; name a file in it"));
  } else if (!fs::is_directory(folder, ignored)) {
    problems.add(
        text(name, " '", file, "': folder '", folder.string(), "' does not exist; make it"));
  } else if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    problems.add(text(name, " '", file, "': its folder is not writable; give another"),
                 Fault::Resource);
  }
}

std::string take_result_file(ParsedFlags& parsed, const std::string& name,
                             std::optional<OwnFile> kind, Problems& problems) {
  if (parsed.find(name) == nullptr) return "";
  const std::string file = parsed.take_value(name);
  check_result_file(name, file, kind, problems);
  return file;
}

std::vector<NamedFile> files_to_read(const RunConfig& config, const ParsedFlags& parsed) {
  std::vector<NamedFile> out = {{"machine", config.machine},
                                {"tokenizer", config.tokenizer},
                                {"vocab-file", config.vocab_file},
                                {"merge-file", config.merge_file}};
  if (const std::string* file = parsed.find("config")) out.push_back({"config", *file});
  for (const std::string& file : config.data) out.push_back({"data", file});
  for (const std::string& file : config.valid_data) out.push_back({"valid-data", file});
  for (const std::string& file : config.test_data) out.push_back({"test-data", file});
  return out;
}

void check_apart(std::span<const NamedFile> results, std::span<const NamedFile> read,
                 Problems& problems) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& [name, file] = results[i];
    for (const NamedFile& other : results.first(i)) {
      if (is_same_file(file, other.file))
        problems.add(
            text(other.name, " and ", name, " are both '", file, "'; give each its own file"));
    }
    for (const NamedFile& source : read) {
      if (is_same_file(file, source.file))
        problems.add(text(name, " '", file, "' is the file that ", source.name,
                          " names, which it would replace; give another file"));
      std::error_code ignored;
      if (!file.empty() && std::filesystem::is_directory(source.file, ignored) &&
          lies_within(file, source.file))
        problems.add(text(name, " '", file, "' lies in '", source.file, "', which ", source.name,
                          " names as input; write elsewhere"));
    }
  }
}

}  // namespace tessera
