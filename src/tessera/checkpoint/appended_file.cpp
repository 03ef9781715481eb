#include "tessera/checkpoint/appended_file.h"

#include <fcntl.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/checkpoint/checkpoint_files.h"

namespace tessera {

AppendedFile::AppendedFile(std::string path, FileCalls calls, Fresh fresh)
    : path_(std::move(path)), calls_(std::move(calls)) {
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
  file_ = calls_.open(path_.c_str(), fresh == Fresh::Yes ? flags | O_EXCL : flags, 0666);
  if (file_ < 0 && !(fresh == Fresh::Yes && errno == EEXIST))
    fail(Fault::Resource, "cannot write '", path_, "': ", system_text(errno),
         "; check the folder's permissions and the disk");
  kept_.reserve(400);  // more than most records take
}

AppendedFile::~AppendedFile() {
  if (is_open()) calls_.close(file_);
}

std::string AppendedFile::flush() {
  while (!kept_.empty()) {
    const ssize_t put = calls_.write(file_, kept_.data(), kept_.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0)
      return text("cannot write '", path_, "': ", system_text(put < 0 ? errno : EIO),
                  "; free some space, or check the disk");
    kept_.erase(0, static_cast<std::size_t>(put));
  }
  return "";
}

std::string AppendedFile::sync() {
  if (std::string problem = flush(); !problem.empty()) return problem;
  if (calls_.fsync(file_) != 0)
    return text("cannot flush '", path_, "' to disk: ", system_text(errno), "; check the disk");
  if (named_) return "";
  try {
    const std::filesystem::path folder = std::filesystem::absolute(path_).parent_path();
    flush_folder(calls_, folder);
    flush_folder(calls_, folder.parent_path());  // the run may have made its folder
    named_ = true;
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

std::string AppendedFile::late_notice() {
  const std::string problem = flush();
  const bool was_late = std::exchange(late_, !problem.empty());
  if (problem.empty() || was_late) return "";
  return text(problem,
              "; training continues, and its lines are kept in memory until they can be written");
}

std::string AppendedFile::removed() const {
  return is_gone(file_, path_.c_str())
             ? text("'", path_, "' was removed or replaced while the run was writing it")
             : "";
}

}  // namespace tessera
