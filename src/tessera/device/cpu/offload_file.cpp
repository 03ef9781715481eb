#include "tessera/device/cpu/offload_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "tessera/base/error.h"

namespace tessera::cpu {

namespace {

/// An open file without a name.
class Unnamed {
 public:
  explicit Unnamed(const std::string& folder) {
    std::string path = folder + "/tessera-offload-XXXXXX";
    file_ = mkostemp(path.data(), O_CLOEXEC);
    if (file_ < 0) {
      const int error = errno;
      fail(Fault::Resource, "no file for values that are offloaded can be made in '", folder,
           "': ", std::strerror(error),
           "; name a folder that exists and that this process may write to");
    }
    unlink(path.c_str());
  }
  ~Unnamed() { close(file_); }
  Unnamed(const Unnamed&) = delete;
  Unnamed& operator=(const Unnamed&) = delete;

  int get() const { return file_; }

 private:
  int file_;
};

/// Takes the space now: a write to a mapping that the drive has no room for kills the process.
void take_space(int file, const std::string& folder, std::int64_t bytes) {
  int error = EINTR;
  while (error == EINTR) error = posix_fallocate(file, 0, bytes);
  if (error == 0) return;
  struct statvfs drive = {};
  const bool known = fstatvfs(file, &drive) == 0;
  fail(Fault::Resource, "the folder '", folder, "' for values that are offloaded has no room for ",
       bytes >> 20, " MiB: ", std::strerror(error),
       known ? text("; ", (static_cast<std::int64_t>(drive.f_bavail * drive.f_frsize)) >> 20,
                    " MiB are free")
             : "",
       "; free some space, name a folder on another drive, or offload less");
}

}  // namespace

void* map_offload_file(const std::string& folder, std::int64_t bytes) {
  const Unnamed file(folder);
  take_space(file.get(), folder, bytes);
  void* const memory = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                            MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED)
    fail(Fault::Resource, "a file of ", bytes >> 20, " MiB in '", folder,
         "' cannot be mapped: ", std::strerror(errno),
         "; offload less, or raise the memory limit (ulimit -v, cgroup)");
  return memory;
}

}  // namespace tessera::cpu
