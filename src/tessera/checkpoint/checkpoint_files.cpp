#include "tessera/checkpoint/checkpoint_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/files/file_lock.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

// A checkpoint goes through a small part of the page cache: the system begins to write what it is
// advised to drop, and drops what is written. Pages that are new to the system cost training more
// time than all else of a save does, and would push out the user's data. It is only advice: where
// the system does not follow it, files are written all the same.
constexpr std::int64_t kAtATime = 8 << 20, kBehind = 4 * kAtATime;

[[noreturn]] void fail_to(const char* what, const std::string& path, int error);

}  // namespace

FileCalls::FileCalls()
    : open([](const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); }),
      write(::write),
      fsync(::fsync),
      close(::close),
      mkdir(::mkdir),
      rename([](const char* from, const char* to) { return ::rename(from, to); }),
      remove([](const char* path) { return ::remove(path); }),
      flock(::flock) {}

HashedFile::HashedFile(const FileCalls& calls, std::string path)
    : calls_(calls), path_(std::move(path)) {
  file_ = calls_.open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file_ < 0) fail_to("create", path_, errno);
}

HashedFile::~HashedFile() {
  if (file_ >= 0) calls_.close(file_);
}

void HashedFile::write(std::span<const std::byte> bytes) {
  hash_.update(bytes.data(), bytes.size());
  bytes_ += static_cast<std::int64_t>(bytes.size());
  while (!bytes.empty()) {
    const ssize_t put = calls_.write(file_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) fail_to("write", path_, put < 0 ? errno : EIO);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  if (bytes_ - on_its_way_ < kAtATime) return;
  ::posix_fadvise(file_, on_its_way_, bytes_ - on_its_way_, POSIX_FADV_DONTNEED);
  on_its_way_ = bytes_;
  const std::int64_t written = bytes_ - kBehind;
  if (written > 0) ::posix_fadvise(file_, 0, written, POSIX_FADV_DONTNEED);
}

void HashedFile::finish() {
  if (calls_.fsync(file_) != 0) fail_to("flush", path_, errno);
  ::posix_fadvise(file_, 0, 0, POSIX_FADV_DONTNEED);
  // Whatever close() answers, the descriptor is gone.
  if (calls_.close(std::exchange(file_, -1)) != 0) fail_to("close", path_, errno);
}

std::optional<FolderLock> FolderLock::take(const std::string& folder) {
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return {};
  FolderLock lock(file);
  if (!lock_at(file, folder)) return {};
  return lock;
}

FolderLock::~FolderLock() {
  if (file_ >= 0) ::close(file_);
}

FolderLock::FolderLock(FolderLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

UnfinishedFolder::UnfinishedFolder(const FileCalls& calls, const std::string& folder,
                                   const std::string& name)
    : calls_(calls) {
  constexpr int kLockAttempts = 10;  // a file system without locks is used without them
  for (int attempt = 0, unlocked = 0; unlocked < kLockAttempts; ++attempt) {
    path_ = text(folder, "/", name, "-", ::getpid(), "-", attempt);
    if (calls_.mkdir(path_.c_str(), 0777) != 0) {
      if (errno == EEXIST) continue;
      fail_to("make the folder", path_, errno);
    }
    if (auto lock = FolderLock::take(path_)) {
      lock_.emplace(std::move(*lock));
      return;
    }
    // Another writer may have taken it for a leftover before it was locked.
    if (++unlocked < kLockAttempts) calls_.remove(path_.c_str());
  }
}

UnfinishedFolder::~UnfinishedFolder() {
  if (!path_.empty()) remove_folder(calls_, path_);  // what stays, the next save removes
}

bool UnfinishedFolder::rename_to(const std::string& final_path) {
  if (calls_.rename(path_.c_str(), final_path.c_str()) == 0) {
    path_.clear();
    return true;
  }
  const int error = errno;
  if (error == EEXIST || error == ENOTEMPTY) return false;
  fail_to("make, by renaming the finished save,", final_path, error);
}

void make_folders(const FileCalls& calls, const std::string& folder) {
  std::error_code ignored;
  if (folder.empty() || fs::is_directory(folder, ignored)) return;
  const std::string parent = fs::path(folder).parent_path().string();
  make_folders(calls, parent);
  if (calls.mkdir(folder.c_str(), 0777) != 0) {
    const int error = errno;  // before the next call changes it
    if (!fs::is_directory(folder, ignored)) fail_to("make the folder", folder, error);
  }
  flush_folder(calls, parent.empty() ? "." : parent);
}

void flush_folder(const FileCalls& calls, const std::string& folder) {
  const int file = calls.open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (file < 0) fail_to("open the folder", folder, errno);
  const int error = calls.fsync(file) == 0 ? 0 : errno;
  const int closed = calls.close(file) == 0 ? 0 : errno;
  if (error != 0 || closed != 0) fail_to("flush the folder", folder, error != 0 ? error : closed);
}

void require_space(const std::string& folder, std::int64_t bytes) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (error || space.available >= static_cast<std::uintmax_t>(bytes)) return;
  fail(Fault::Resource, "cannot save a checkpoint in '", folder, "': it takes ", bytes_text(bytes),
       " but only ", bytes_text(static_cast<std::int64_t>(space.available)),
       " is free; free some space or keep fewer checkpoints");
}

std::string remove_folder(const FileCalls& calls, const std::string& folder) {
  std::error_code error;
  std::string problem;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    const std::string path = it->path().string();
    std::error_code ignored;
    if (it->symlink_status(ignored).type() == fs::file_type::directory) {
      if (std::string below = remove_folder(calls, path); !below.empty()) problem = below;
    } else if (calls.remove(path.c_str()) != 0 && errno != ENOENT) {  // another may remove it too
      problem = text("could not remove '", path, "': ", system_text(errno));
    }
  }
  if (!problem.empty() || calls.remove(folder.c_str()) == 0 || errno == ENOENT) return problem;
  return text("could not remove '", folder, "': ", system_text(errno));
}

bool is_gone(int file, const char* path) {
  struct stat opened = {}, named = {};
  if (::stat(path, &named) != 0) return errno == ENOENT || errno == ENOTDIR;
  return ::fstat(file, &opened) == 0 &&
         (opened.st_dev != named.st_dev || opened.st_ino != named.st_ino);
}

std::string system_text(int error) { return std::generic_category().message(error); }

namespace {

void fail_to(const char* what, const std::string& path, int error) {
  const char* advice = error == ENOSPC || error == EDQUOT ? "free some space"
                       : error == EMFILE || error == ENFILE
                           ? "raise the limit of open files (ulimit -n)"
                           : "check the permissions of its folder and the disk";
  fail(Fault::Resource, "cannot save a checkpoint: could not ", what, " '", path,
       "': ", system_text(error), "; ", advice);
}

}  // namespace

}  // namespace tessera
