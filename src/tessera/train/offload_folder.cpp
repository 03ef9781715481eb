#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "tessera/base/text.h"
#include "tessera/train/prepare.h"

namespace tessera {

namespace fs = std::filesystem;

void check_offload_folder(const RunConfig& config, Problems& problems) {
  const std::string& folder = config.offload_folder;
  if (config.remote_device != kRemoteFile || folder.empty()) return;
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    problems.add(text("offload-folder '", folder,
                      fs::exists(folder, ignored) ? "' is not a folder" : "' does not exist",
                      "; give an existing folder on the drive for offloaded tensors"));
  } else if (access(folder.c_str(), W_OK | X_OK) != 0) {
    problems.add(text("offload-folder '", folder, "' cannot be written to: ", std::strerror(errno),
                      "; give another folder, or make it writable"),
                 Fault::Resource);
  }
}

}  // namespace tessera
