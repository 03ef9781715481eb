#pragma once
/// Files and folders that a checkpoint is written through: every failure is an Error that names the
/// path, nothing is left half-written under a final name.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tessera/base/hash.h"
#include "tessera/checkpoint/checkpoint_calls.h"

namespace tessera {

/// A new file that is hashed as it is written. Errors: Fault::Resource.
class HashedFile {
 public:
  HashedFile(const FileCalls& calls, std::string path);
  ~HashedFile();
  HashedFile(const HashedFile&) = delete;
  HashedFile& operator=(const HashedFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view bytes) { write(std::as_bytes(std::span(bytes))); }
  /// Of what was written so far.
  std::int64_t bytes() const { return bytes_; }
  std::string hash() const { return hash_.text(); }
  /// Flushes it to disk and closes it.
  void finish();

 private:
  const FileCalls& calls_;
  std::string path_;
  int file_ = -1;
  std::int64_t bytes_ = 0, on_its_way_ = 0;  // written; of these, told to the disk
  StreamHash hash_;
};

/// A lock on a folder that ends with its holder, however that dies: it tells a folder in use from
/// one left behind by a killed process.
class FolderLock {
 public:
  /// None where another holds it or the folder is gone. A file system without locks gives none too.
  static std::optional<FolderLock> take(const std::string& folder);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&&) = delete;
  FolderLock(const FolderLock&) = delete;

 private:
  explicit FolderLock(int file) : file_(file) {}
  int file_;
};

/// A new folder beside the final one, locked while it lives and gone with it unless it is kept.
class UnfinishedFolder {
 public:
  UnfinishedFolder(const FileCalls& calls, const std::string& folder, const std::string& name);
  ~UnfinishedFolder();
  UnfinishedFolder(const UnfinishedFolder&) = delete;
  UnfinishedFolder& operator=(const UnfinishedFolder&) = delete;

  const std::string& path() const { return path_; }
  /// Renames it; false where `final_path` exists.
  bool rename_to(const std::string& final_path);

 private:
  const FileCalls& calls_;
  std::string path_;
  std::optional<FolderLock> lock_;
};

/// Makes a folder and those above it, and flushes their names to disk.
void make_folders(const FileCalls& calls, const std::string& folder);
/// Flushes the names in a folder to disk.
void flush_folder(const FileCalls& calls, const std::string& folder);
/// Refuses to begin what cannot be finished: `bytes` more on the disk of `folder`.
void require_space(const std::string& folder, std::int64_t bytes);
/// Removes a folder and all in it; what went wrong, or "".
std::string remove_folder(const FileCalls& calls, const std::string& folder);
/// Whether it is known that the path names nothing, or another file or folder: a disk or a server
/// that does not answer is no proof of that.
bool is_gone(int file, const char* path);
/// "No space left on device"
std::string system_text(int error);

}  // namespace tessera
