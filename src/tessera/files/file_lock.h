#pragma once
/// Locks that end with their holder, however it dies: what is locked is in use, and what is not was
/// left behind.

#include <string>

namespace tessera {

/// Whether the open file or folder is still the one that the path names. A signal handler may ask.
bool is_at(int file, const char* path);

/// Locks an open file or folder until all its descriptors are closed. False: another process has
/// it, or the path names something else by now. `made`: this process has made it just now; then it
/// is ours on a file system without locks too.
bool lock_at(int file, const std::string& path, bool made = false);

}  // namespace tessera
