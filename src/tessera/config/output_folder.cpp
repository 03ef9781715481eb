#include "tessera/config/output_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/checkpoint/checkpoint_files.h"
#include "tessera/checkpoint/checkpoint_folder.h"
#include "tessera/config/config.h"
#include "tessera/files/file.h"
#include "tessera/files/file_lock.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void cannot(std::string_view what, const std::string& path) {
  fail(Fault::Resource, "cannot ", what, " '", path, "': ", std::strerror(errno),
       "; give a writable --output");
}

/// "host alpha, process 4711, since 2024-05-01 10:00:00"
std::string whoami() {
  std::array<char, 256> host = {};
  gethostname(host.data(), host.size() - 1);
  std::array<char, 32> since = {};
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  localtime_r(&now, &local);
  std::strftime(since.data(), since.size(), "%Y-%m-%d %H:%M:%S", &local);
  return text("host ", host.data(), ", process ", getpid(), ", since ", since.data());
}

std::string content(int file) {
  std::array<char, 512> bytes = {};
  const ssize_t size = pread(file, bytes.data(), bytes.size(), 0);
  return std::string(trim({bytes.data(), static_cast<std::size_t>(size > 0 ? size : 0)}));
}

/// 0, or why there is no lock: EWOULDBLOCK where another process holds it.
int lock(int file, const FileCalls& calls) {
  while (calls.flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

}  // namespace

std::string in_folder(const std::string& folder, const std::string& name) {
  return (fs::path(folder) / name).string();
}

std::string checkpoints_folder(const RunConfig& config) {
  return checkpoints_folder(config.output, checkpoint_names(config));
}

std::string absolute_path(const std::string& path) {
  if (fs::path(path).is_absolute()) return path;
  std::error_code failure;
  fs::path out = fs::absolute(path, failure);
  if (failure)
    fail(Fault::Resource, "'", path,
         "' leads nowhere, because the working folder cannot be found: ", failure.message(),
         "; start in an existing folder");
  // `gone/../out` leads nowhere; and what .. means depends on links.
  out = fs::weakly_canonical(out, failure);
  if (failure)
    fail(Fault::Resource, "'", path, "' leads nowhere: ", failure.message(),
         "; give another path, or correct the links and permissions along it");
  return out.string();
}

std::string flags_to_go_on(const std::string& folder, const std::string& resume) {
  return text("--config ", in_folder(folder, kConfigFile), " --resume ", resume);
}

std::vector<std::string> traces_of_run(const std::string& folder) {
  std::vector<std::string> out;
  for (const char* name : {kMetricsFile, kSummaryFile, kCheckpointsFolder}) {
    std::error_code ignored;
    if (fs::exists(fs::path(folder) / name, ignored)) out.emplace_back(name);
  }
  std::error_code missing;
  if (!fs::is_directory(folder, missing)) return out;
  for (const StepName& name : scan_checkpoints(folder).committed) out.push_back(to_text(name));
  return out;
}

OutputLock::OutputLock(const std::string& folder, std::vector<std::string>& notices,
                       const FileCalls& calls)
    : folder_(absolute_path(folder)), path_(in_folder(folder_, "lock")), calls_(calls) {
  std::error_code failure;
  fs::create_directories(folder_, failure);
  if (failure) {
    errno = failure.value();
    cannot("make the folder", folder);
  }
  int no_locks = 0;  // why the file system has none
  do {
    if (file_ >= 0) close(file_);
    file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file_ < 0) cannot("write", path_);
    // The system frees this lock when its process ends, however it ends.
    no_locks = lock(file_, calls);
    if (no_locks == EWOULDBLOCK) {
      const std::string owner = content(file_);
      close(file_);
      fail(Fault::Resource, "another run is writing into '", folder, "' (", owner,
           "); wait for it, or give another --output");
    }
  } while (!held());  // its last owner may have removed it
  const std::string old = content(file_);
  if (no_locks != 0) {
    const std::string why =
        text("the file system of '", folder, "' has no locks (", std::strerror(no_locks), ")");
    if (!old.empty()) {
      close(file_);
      fail(Fault::Resource, why, ", so the run named in '", path_, "' may still write there (", old,
           "); if it does not, remove that file and start again, else give another --output");
    }
    notices.push_back(text(why, ": do not start a second run with this --output"));
  } else if (!old.empty()) {
    notices.push_back(text("took over the lock of a run that no longer exists: ", old));
  }
  for (const char* name : {kMetricsFile, kSummaryFile, kConfigFile})
    remove_unfinished(in_folder(folder_, name));
  // Last of all: who finds a file that says nothing takes it over, with locks and without.
  const std::string mine = whoami() + "\n";
  const bool written = ftruncate(file_, 0) == 0 && pwrite(file_, mine.data(), mine.size(), 0) ==
                                                       static_cast<ssize_t>(mine.size());
  if (!written) {
    const int reason = errno;
    unlink(path_.c_str());
    close(file_);
    errno = reason;
    cannot("write", path_);
  }
}

OutputLock::~OutputLock() {
  if (is_at(file_, path_.c_str())) unlink(path_.c_str());
  close(file_);
}

bool OutputLock::held() const { return !is_gone(file_, path_.c_str()); }

void OutputLock::write_config(const std::string& toml) {
  write_atomically(in_folder(folder_, kConfigFile), toml);
  config_ = toml;
}

std::string OutputLock::hold(bool ours) {
  if (held()) return "";
  const std::string gone =
      text("'", folder_, "' was removed or replaced while the run was writing it");
  try {
    std::vector<std::string> notices;  // that it was taken over from a run that is gone
    OutputLock again(folder_, notices, calls_);
    const std::vector<std::string> traces = traces_of_run(folder_);
    if (!ours && !traces.empty())
      return text(gone, ", and another run is in it now (", join(traces),
                  "); nothing is written until it is moved elsewhere");
    std::error_code ignored;
    const fs::file_status config = fs::status(in_folder(folder_, kConfigFile), ignored);
    if (!config_.empty() && config.type() == fs::file_type::not_found) write_config(config_);
    std::swap(file_, again.file_);
    return "";
  } catch (const Error& error) {
    if (error.fault() != Fault::Resource) throw;
    return text(gone, ", and it cannot be taken anew: ", error.what());
  }
}

}  // namespace tessera
