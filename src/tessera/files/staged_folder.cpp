#include "tessera/files/staged_folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/files/file.h"
#include "tessera/files/file_lock.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void fail_to_stage(const std::string& folder, const char* what,
                                const std::error_code& error) {
  fail(Fault::Resource, "cannot write the folder '", folder, "': could not ", what, ": ",
       error.message(), "; check its permissions and the disk, or give another");
}

/// A folder that something is mounted on, as a volume of a container: nothing beside it can be
/// renamed into its place.
bool is_mounted(const std::string& folder) {
  struct statx at = {};
  return ::statx(AT_FDCWD, folder.c_str(), 0, STATX_TYPE, &at) == 0 &&
         (at.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

std::error_code last_error() { return {errno, std::generic_category()}; }

/// Removes what lies in `folder`.
void empty_folder(const fs::path& folder) {
  std::error_code ignored;
  for (const fs::path& entry : entries_of(folder, ignored)) fs::remove_all(entry, ignored);
}

}  // namespace

StagedFolder::StagedFolder(const std::string& folder) {
  std::error_code error;
  folder_ = fs::weakly_canonical(fs::absolute(folder), error).lexically_normal().string();
  if (error) folder_ = folder;
  while (folder_.size() > 1 && folder_.back() == '/') folder_.pop_back();
  const fs::path parent = fs::path(folder_).parent_path();
  fs::create_directories(parent, error);
  if (error) fail_to_stage(folder, "make it", error);
  if (fs::exists(folder_, error) && !fs::is_directory(folder_, error))
    fail_to_stage(folder, "make it", std::make_error_code(std::errc::not_a_directory));
  beside_ = !is_mounted(folder_);
  for (int number = 0; beside_; ++number) {
    if (take(text(folder_, ".partial-", number))) return;
    if (errno == EEXIST) continue;
    const std::error_code why = last_error();
    if (!fs::is_directory(folder_, error)) fail_to_stage(folder, "make it", why);
    beside_ = false;
  }
  for (int number = 0; !take((fs::path(folder_) / text(".partial-", number)).string()); ++number)
    if (errno != EEXIST) fail_to_stage(folder, "make a folder in it", last_error());
}

/// Makes the stage, or takes over one that is nobody's. False and errno: EEXIST: it is another's.
bool StagedFolder::take(const std::string& stage) {
  const bool made = ::mkdir(stage.c_str(), 0777) == 0;
  if (!made && errno != EEXIST) return false;
  const int lock = ::open(stage.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (lock >= 0 && lock_at(lock, stage, made)) {
    lock_ = lock;
    stage_ = stage;
    empty_folder(stage);
    return true;
  }
  if (lock >= 0) ::close(lock);
  errno = EEXIST;
  return false;
}

StagedFolder::~StagedFolder() {
  std::error_code ignored;
  if (!stage_.empty()) fs::remove_all(stage_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

void StagedFolder::hold_in_children() { ::fcntl(lock_, F_SETFD, 0); }

void StagedFolder::commit(const std::function<bool(std::string_view name)>& replaces,
                          const std::string& last) {
  sync_folder(stage_);
  std::error_code error;
  if (beside_ && !fs::exists(folder_, error)) {
    fs::rename(stage_, folder_, error);
    if (error) fail_to_stage(folder_, "rename it into its place", error);
    stage_.clear();
    sync_folder(fs::path(folder_).parent_path().string());
    return;
  }
  if (beside_) exchange(replaces);
  // Unless it was exchanged, and only the old one is left to remove.
  if (!beside_) rename_files(replaces, last);
  if (!stage_.empty()) fs::remove_all(stage_, error);
  stage_.clear();
}

/// Sets beside_ to false where the two folders cannot be exchanged.
void StagedFolder::exchange(const std::function<bool(std::string_view name)>& replaces) {
  std::error_code error;
  const std::vector<fs::path> entries = entries_of(folder_, error);
  beside_ = !error;
  for (const fs::path& entry : entries) {
    if (!beside_) return;  // what could not be copied stays where it is
    const fs::path name = entry.filename();
    if (replaces(name.string()) || fs::exists(fs::symlink_status(fs::path(stage_) / name, error)))
      continue;
    fs::copy(entry, fs::path(stage_) / name,
             fs::copy_options::recursive | fs::copy_options::copy_symlinks |
                 fs::copy_options::create_hard_links,
             error);
    beside_ = !error;
  }
  if (!beside_) return;
  fs::permissions(stage_, fs::status(folder_, error).permissions(), error);
  sync_folder(stage_);
  beside_ = ::renameat2(AT_FDCWD, stage_.c_str(), AT_FDCWD, folder_.c_str(), RENAME_EXCHANGE) == 0;
  if (!beside_) return;
  sync_folder(fs::path(folder_).parent_path().string());
  // The old one lies in place of the stage now, and another process may have taken it over.
  const int old = ::open(stage_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (old < 0 || (::flock(old, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)) stage_.clear();
  ::close(std::exchange(lock_, old));
}

void StagedFolder::rename_files(const std::function<bool(std::string_view name)>& replaces,
                                const std::string& last) {
  std::error_code error;
  const fs::path folder = folder_, stage = stage_;
  fs::remove(folder / last, error);
  const auto put = [&](const fs::path& name) {
    if (fs::is_directory(fs::symlink_status(stage / name, error))) {
      if (!replaces(name.string())) return;  // carried, not written
      fs::remove_all(folder / name, error);
    }
    fs::rename(stage / name, folder / name, error);
    if (error) fail_to_stage(folder_, "rename a file into it", error);
  };
  for (const fs::path& entry : entries_of(folder, error))
    if (replaces(entry.filename().string()) && !fs::exists(stage / entry.filename(), error))
      fs::remove_all(entry, error);
  const std::vector<fs::path> written = entries_of(stage, error);
  if (error) fail_to_stage(folder_, "list what was written for it", error);
  for (const fs::path& entry : written)
    if (entry.filename() != last) put(entry.filename());
  if (fs::exists(stage / last, error)) put(last);
  sync_folder(folder_);
}

}  // namespace tessera
