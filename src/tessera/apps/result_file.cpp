#include "tessera/apps/result_file.h"

#include <unistd.h>

#include <filesystem>

#include "tessera/base/text.h"

namespace tessera {

void check_result_file(const std::string& name, const std::string& file, Problems& problems) {
  namespace fs = std::filesystem;
  if (file.empty()) {
    problems.add(text(name, " is empty; name a file to write"));
    return;
  }
  std::error_code ignored;
  const fs::path folder = fs::absolute(file).parent_path();
  if (fs::is_directory(file, ignored)) {
    problems.add(text(name, " '", file, "' is a folder; name a file in it"));
  } else if (!fs::is_directory(folder, ignored)) {
    problems.add(text(name, " '", file, "': there is no folder '", folder.string(), "'; make it"));
  } else if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    problems.add(text(name, " '", file, "': its folder cannot be written to; give another"),
                 Fault::Resource);
  }
}

}  // namespace tessera
