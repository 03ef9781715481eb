#include "tessera/checkpoint/shared_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/checkpoint/checkpoint_folder.h"

namespace tessera {

namespace {

std::string host() {
  std::array<char, 256> name = {};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string absolute(const std::string& path) { return std::filesystem::absolute(path).string(); }

/// "leader" or "rank-3", in the folder of a probe.
std::string file_of(const std::string& path, int rank) {
  return rank == 0 ? path + "/leader" : text(path, "/rank-", rank);
}

/// Another probe has another path, and so another token.
std::string token_of(const std::string& path, int rank) { return text(path, " rank ", rank); }

/// "", or what went wrong.
std::string put(const FileCalls& calls, const std::string& path, int rank) {
  try {
    HashedFile file(calls, file_of(path, rank));
    file.write(token_of(path, rank));
    file.finish();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

/// "", or why the file of that rank is not there.
std::string look_for(const FileCalls& calls, const std::string& path, int rank) {
  const std::string name = file_of(path, rank), token = token_of(path, rank);
  const int file = calls.open(name.c_str(), O_RDONLY | O_CLOEXEC, 0);
  if (file < 0) return text("it does not see '", name, "': ", system_text(errno));
  std::string found(token.size() + 1, ' ');
  const ssize_t size = ::read(file, found.data(), found.size());
  calls.close(file);
  found.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  return found == token ? "" : text("it sees another file at '", name, "'");
}

}  // namespace

SharedFolderProbe::SharedFolderProbe(const std::string& folder, const FileCalls& calls)
    : folder_(folder), calls_(calls), made_(!std::filesystem::exists(folder)) {
  make_folders(calls, folder);
  unfinished_ = std::make_unique<UnfinishedFolder>(calls, folder, text(kUnfinished, "probe"));
  path_ = absolute(unfinished_->path());
  if (const std::string problem = put(calls, path_, 0); !problem.empty())
    fail(Fault::Resource, problem);
}

SharedFolderProbe::~SharedFolderProbe() {
  unfinished_.reset();
  if (made_) calls_.remove(folder_.c_str());
}

void SharedFolderProbe::require(const std::vector<std::string>& answers) const {
  for (int rank = 1; rank < static_cast<int>(answers.size()); ++rank) {
    const std::string& answer = answers[static_cast<std::size_t>(rank)];
    const std::size_t end = answer.find(": ");
    std::string problem = end == answer.npos ? "" : answer.substr(end + 2);
    if (problem.empty() && !look_for(calls_, path_, rank).empty())
      problem = "rank 0 does not see what it writes";
    if (problem.empty()) continue;
    fail(Fault::Resource, "rank ", rank, " of ", answers.size(), ", on host ",
         answer.substr(0, end), ", does not share the folder '", absolute(folder_),
         "' with rank 0, on host ", host(), ": ", problem,
         "; every rank writes its part of a checkpoint, so give an --output on a file system "
         "shared by all hosts");
  }
}

std::string probe_folder(const std::string& path, int rank, const FileCalls& calls) {
  std::string problem = look_for(calls, path, 0);
  if (problem.empty()) problem = put(calls, path, rank);
  return problem.empty() ? host() : text(host(), ": ", problem);
}

}  // namespace tessera
