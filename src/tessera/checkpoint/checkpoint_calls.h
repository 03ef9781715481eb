#pragma once
/// The system calls that make a checkpoint durable and lock the folder of a run, as a table, so
/// that a test can let each one fail.

#include <sys/types.h>

#include <cstddef>
#include <functional>

namespace tessera {

/// As their namesakes of POSIX: -1 and errno on failure. `rename` must not replace a folder that
/// holds something.
struct FileCalls {
  std::function<int(const char* path, int flags, mode_t mode)> open;
  std::function<ssize_t(int file, const void* bytes, std::size_t size)> write;
  std::function<int(int file)> fsync, close;
  std::function<int(const char* path, mode_t mode)> mkdir;
  std::function<int(const char* from, const char* to)> rename;
  std::function<int(const char* path)> remove;  // a file or an empty folder
  std::function<int(int file, int operation)> flock;

  /// Those of the system.
  FileCalls();
};

}  // namespace tessera
