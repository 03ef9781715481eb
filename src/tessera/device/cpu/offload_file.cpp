#include "tessera/device/cpu/offload_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera::cpu {

namespace {

/// An open file without a name.
class Unnamed {
 public:
  explicit Unnamed(const std::string& folder) {
    constexpr mode_t kOwner = 0600;
    file_ = open(folder.c_str(), O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, kOwner);
    // What a file system says that has no such files, and what an old kernel says of a folder.
    if (file_ < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT))
      file_ = named_and_removed(folder);
    if (file_ < 0) refuse(folder);
  }
  ~Unnamed() { close(file_); }
  Unnamed(const Unnamed&) = delete;
  Unnamed& operator=(const Unnamed&) = delete;

  int get() const { return file_; }

 private:
  static int named_and_removed(const std::string& folder) {
    std::string path = folder + "/tessera-offload-XXXXXX";
    const int file = mkostemp(path.data(), O_CLOEXEC);
    if (file < 0 || unlink(path.c_str()) == 0) return file;
    const int error = errno;
    close(file);
    fail(Fault::Resource, "the offload file '", path, "' was created, but its ",
         "name cannot be removed: ", std::strerror(error),
         "; remove the file, and give a folder on another drive");
  }

  [[noreturn]] static void refuse(const std::string& folder) {
    const int error = errno;
    fail(Fault::Resource, "cannot create an offload file in '", folder, "': ", std::strerror(error),
         "; give an existing, writable folder");
  }

  int file_;
};

/// What stands against a file of that size, and what to do.
std::string why_no_space(int file, std::int64_t bytes, int error) {
  const auto because = [&](const auto&... parts) {
    return text(std::strerror(error), "; ", parts...);
  };
  rlimit limit = {};
  if (error == EFBIG && getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
      limit.rlim_cur < static_cast<rlim_t>(bytes))
    return because("raise the file size limit (ulimit -f), which is ",
                   bytes_text(static_cast<std::int64_t>(limit.rlim_cur)), ", or offload less");
  if (error == EFBIG)
    return because("files cannot be that large there; give a folder on another drive, or offload ",
                   "less");
  struct statvfs drive = {};
  const bool known = fstatvfs(file, &drive) == 0;
  return because(known
                     ? text(bytes_text(static_cast<std::int64_t>(drive.f_bavail * drive.f_frsize)),
                            " are free; ")
                     : "",
                 "free some space, give a folder on another drive, or offload less");
}

/// Takes the space now: a write to a mapping that the drive has no room for kills the process.
void take_space(int file, const std::string& folder, std::int64_t bytes) {
  int error = EINTR;
  while (error == EINTR) error = posix_fallocate(file, 0, bytes);
  if (error != 0)
    fail(Fault::Resource, "the folder '", folder, "' has no room for a file of ", bytes_text(bytes),
         " (", bytes, " bytes) for offloaded values: ", why_no_space(file, bytes, error));
}

}  // namespace

void* map_offload_file(const std::string& folder, std::int64_t bytes) {
  const Unnamed file(folder);
  take_space(file.get(), folder, bytes);
  void* const memory = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                            MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED)
    fail(Fault::Resource, "a file of ", bytes_text(bytes), " in '", folder,
         "' cannot be mapped: ", std::strerror(errno),
         "; offload less, or raise the memory limit (ulimit -v, cgroup)");
  return memory;
}

}  // namespace tessera::cpu
