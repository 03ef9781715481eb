#include "tessera/files/file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "tessera/base/text.h"
#include "tessera/files/file_lock.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

constexpr const char* kPartial = ".partial-";  // in names, before a number

std::string system_text(int error) { return std::generic_category().message(error); }
/// What the system refuses says nothing about the bytes: that is Fault::Resource.
Fault fault_of(int error, Fault otherwise);
std::string folder_of(const std::string& path);
[[noreturn]] void fail_to_write(const std::string& path, const char* what, int error);

/// Opens a temporary file, new or left by a process that was killed, empties it and takes its lock.
/// -1 and errno: EEXIST: it is another's.
int open_unfinished(const std::string& path);

/// write() until all is written: it may stop early or be interrupted.
int write_all(int descriptor, std::span<const std::byte> bytes);
int sync_and_close(int descriptor);

}  // namespace

InputFile::InputFile(std::string path, Fault fault) : path_(std::move(path)), fault_(fault) {
  // stat comes first, because opening a pipe would wait for its writer.
  struct stat info {};
  if (path_.empty()) fail(fault, "a file name is empty; give the path of a file");
  if (::stat(path_.c_str(), &info) != 0) {
    if (errno == ENOENT || errno == ENOTDIR)
      fail(fault, "no file '", path_, "'", near_files(path_));
    fail(fault_of(errno, fault), "cannot access '", path_, "': ", system_text(errno),
         "; check its permissions and its folder's");
  }
  if (S_ISDIR(info.st_mode))
    fail(fault, "'", path_, "' is a folder where a file is expected; give a file in it");
  if (!S_ISREG(info.st_mode)) {
    fail(fault, "'", path_,
         "' is not a regular file but a pipe, socket or device; save its bytes to a file first");
  }
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) {
    fail(fault_of(errno, fault), "cannot read '", path_, "': ", system_text(errno),
         "; check its permissions");
  }
  size_ = info.st_size;
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)),
      fault_(other.fault_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_) {}

void InputFile::read(std::int64_t offset, std::span<std::byte> out) const {
  std::size_t done = 0;
  while (done < out.size()) {
    const auto at = static_cast<off_t>(offset) + static_cast<off_t>(done);
    const ssize_t got = ::pread(descriptor_, out.data() + done, out.size() - done, at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      fail(fault_of(errno, fault_), "cannot read '", path_, "' at byte ",
           static_cast<std::int64_t>(at), ": ", system_text(errno), "; check its disk or network");
    }
    if (got == 0) {
      fail(fault_, "'", path_, "' ends at byte ", static_cast<std::int64_t>(at), " but ",
           out.size(), " bytes from ", offset,
           " were expected; it was cut short or changed after it was opened");
    }
    done += static_cast<std::size_t>(got);
  }
}

std::vector<fs::path> entries_of(const fs::path& folder, std::error_code& error) {
  std::vector<fs::path> out;
  for (fs::directory_iterator it(folder, error); !error && it != fs::directory_iterator();
       it.increment(error))
    out.push_back(it->path());
  std::ranges::sort(out);  // folders list in no order
  return out;
}

std::string read_file(const std::string& path, Fault fault) {
  const InputFile file(path, fault);
  std::string bytes(static_cast<std::size_t>(file.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  std::error_code ignored;
  if (fs::is_symlink(path_, ignored)) {  // what it leads to is written, and the link stays
    const fs::path target = fs::canonical(path_, ignored);
    if (!target.empty()) path_ = target.string();
  }
  if (fs::is_directory(path_, ignored)) {
    fail(Fault::Resource, "cannot write '", path_, "': it is a folder; give the name of a file");
  }
  if (fs::is_other(path_, ignored)) {
    fail(Fault::Resource, "cannot write '", path_,
         "': it is a device, a pipe or a socket, which the ",
         "finished file would replace; give the name of a file");
  }
  for (int number = 0; descriptor_ < 0; ++number) {
    temporary_ = text(path_, kPartial, number);
    descriptor_ = open_unfinished(temporary_);
    if (descriptor_ >= 0) break;
    if (errno != EEXIST) fail_to_write(path_, "create a temporary file beside it", errno);
  }
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  check(descriptor_ >= 0 && !flushed_, "a flushed file is written");
  if (const int error = write_all(descriptor_, bytes))
    fail_to_write(path_, "write its temporary file", error);
}

void AtomicFile::flush() {
  if (flushed_) return;
  if (::fsync(descriptor_) != 0) fail_to_write(path_, "flush its temporary file", errno);
  flushed_ = true;
}

void AtomicFile::commit() {
  flush();
  rename_into_place();
  sync_folder(folder_of(path_));
}

void AtomicFile::commit_both(AtomicFile& first, AtomicFile& second) {
  first.flush();
  second.flush();
  // A child renames both: who kills this process does not kill it.
  const pid_t child = ::fork();
  if (child == 0) {
    ::setsid();
    if (::rename(first.temporary_.c_str(), first.path_.c_str()) == 0)
      ::rename(second.temporary_.c_str(), second.path_.c_str());
    ::raise(SIGKILL);  // runs nothing of what an exit of this process runs
  }
  while (child > 0 && ::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  for (AtomicFile* file : {&first, &second}) {
    // What the child could not rename fails here as well, which says why.
    if (::access(file->temporary_.c_str(), F_OK) == 0)
      file->rename_into_place();
    else
      file->release();
  }
  sync_folder(folder_of(first.path_));
}

void AtomicFile::rename_into_place() {
  check(!temporary_.empty(), "a file is committed twice");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0)
    fail_to_write(path_, "rename its temporary file", errno);
  release();
}

void AtomicFile::release() {
  temporary_.clear();
  ::close(std::exchange(descriptor_, -1));  // with its lock
}

void remove_unfinished(const std::string& path) {
  const std::string start = fs::path(path).filename().string() + kPartial;
  std::error_code error;
  for (const fs::path& file : entries_of(folder_of(path), error)) {
    if (file.filename().string().starts_with(start))
      fs::remove(file, error);  // what stays costs no more than room
  }
}

void write_atomically(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

void sync_folder(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail_to_write(folder, "open the folder", errno);
  if (const int error = sync_and_close(descriptor))
    fail_to_write(folder, "flush the folder", error);
}

bool lies_within(const std::string& path, const std::string& folder) {
  const auto whole = [](const std::string& name) {
    std::error_code ignored;
    return fs::weakly_canonical(fs::absolute(name, ignored), ignored).string() + "/";
  };
  return starts_with(whole(path), whole(folder));
}

std::string near_files(const std::string& path) {
  const std::string folder = folder_of(path), name = fs::path(path).filename().string();
  std::error_code error;
  if (fs::is_symlink(path, error))
    return text("; it is a link to '", fs::read_symlink(path, error).string(),
                "', which does not exist");
  if (!fs::is_directory(folder, error)) return text("; there is no folder '", folder, "' either");
  std::vector<std::string> names;
  for (const fs::path& entry : entries_of(folder, error))
    names.push_back(entry.filename().string());
  const std::vector<std::string> close = nearest(name, names);
  if (close.empty()) return text("; nothing in '", folder, "' has a name like it");
  return text("; near names in '", folder, "': ", join(close));
}

namespace {

Fault fault_of(int error, Fault otherwise) {
  constexpr std::array kRefusals = {EACCES, EPERM, EMFILE, ENFILE, ENOMEM};
  return std::ranges::find(kRefusals, error) != kRefusals.end() ? Fault::Resource : otherwise;
}

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

void fail_to_write(const std::string& path, const char* what, int error) {
  const char* advice = error == ENOSPC || error == EDQUOT ? "free some space"
                       : error == ENOENT                  ? "make its folder first"
                                         : "check the permissions of its folder and the disk";
  fail(Fault::Resource, "cannot write '", path, "': could not ", what, ": ", system_text(error),
       "; ", advice);
}

int open_unfinished(const std::string& path) {
  constexpr int kFlags = O_WRONLY | O_NOFOLLOW | O_CLOEXEC;
  int out = ::open(path.c_str(), kFlags | O_CREAT | O_EXCL, 0666);
  const bool made = out >= 0;
  if (!made && errno != EEXIST) return out;
  if (!made) out = ::open(path.c_str(), kFlags);
  if (out >= 0 && lock_at(out, path, made)) {
    struct stat info = {};
    const bool alone = ::fstat(out, &info) == 0 && info.st_nlink == 1 && S_ISREG(info.st_mode);
    if (alone && ::ftruncate(out, 0) == 0) return out;
    if (info.st_nlink > 1) ::unlink(path.c_str());  // a finished file has the bytes
  }
  if (out >= 0) ::close(out);
  errno = EEXIST;
  return -1;
}

int write_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return 0;
}

int sync_and_close(int descriptor) {
  const int synced = ::fsync(descriptor) == 0 ? 0 : errno;
  const int closed = ::close(descriptor) == 0 ? 0 : errno;
  return synced != 0 ? synced : closed;
}

}  // namespace

}  // namespace tessera
