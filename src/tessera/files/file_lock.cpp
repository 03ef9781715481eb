#include "tessera/files/file_lock.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>

namespace tessera {

bool is_at(int file, const char* path) {
  struct stat opened = {}, named = {};
  return ::fstat(file, &opened) == 0 && ::stat(path, &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

bool lock_at(int file, const std::string& path, bool made) {
  const bool taken = ::flock(file, LOCK_EX | LOCK_NB) == 0;
  return (taken || (made && errno != EWOULDBLOCK)) && is_at(file, path.c_str());
}

}  // namespace tessera
