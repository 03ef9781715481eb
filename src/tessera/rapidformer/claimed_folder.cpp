#include "tessera/rapidformer/claimed_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "tessera/base/error.h"

namespace tessera {

namespace fs = std::filesystem;

std::unique_ptr<ClaimedFolder> ClaimedFolder::take(const std::string& path) {
  const fs::path parent = fs::path(path).parent_path();
  int error = ENOENT;  // another process may remove the empty parent again
  for (int attempt = 0; error == ENOENT && attempt < 100; ++attempt) {
    std::error_code refused;
    if (!parent.empty()) fs::create_directories(parent, refused);
    error = ::mkdir(path.c_str(), 0777) == 0 ? 0 : errno;
    if (error == ENOENT && refused) error = refused.value();
  }
  if (error == EEXIST) return nullptr;
  if (error != 0)
    fail(Fault::Resource, "cannot make the folder '", path,
         "': ", std::generic_category().message(error), "; give another one, or make it writable");
  return std::unique_ptr<ClaimedFolder>(new ClaimedFolder(path));
}

/// Neither folder goes where something lies in it.
ClaimedFolder::~ClaimedFolder() {
  if (::rmdir(path_.c_str()) != 0) return;
  const std::string parent = fs::path(path_).parent_path().string();
  if (!parent.empty()) ::rmdir(parent.c_str());
}

}  // namespace tessera
