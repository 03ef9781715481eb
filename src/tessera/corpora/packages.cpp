#include "tessera/corpora/packages.h"

#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/files/process.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

// Without a network a fetch should give up within seconds; the sandbox user could not write to our
// folder.
const std::vector<std::string> kFetchOptions = {"-q",
                                                "-o",
                                                "Acquire::Retries=1",
                                                "-o",
                                                "Acquire::http::Timeout=20",
                                                "-o",
                                                "Acquire::https::Timeout=20",
                                                "-o",
                                                "APT::Sandbox::User=root"};

/// Empty where the program succeeded, else the reason in one line.
std::string run_tool(std::vector<std::string> arguments, const std::vector<std::string>& more,
                     const std::string& folder);
/// Options that make the package tool keep its lists in our folder.
std::vector<std::string> own_lists(const std::string& folder);

}  // namespace

std::string unpack_packages(const std::vector<std::string>& names, const std::string& folder,
                            const std::string& tool) {
  const std::string reason = run_tool({tool, "download"}, names, folder);
  if (!reason.empty()) {
    std::vector<std::string> own = own_lists(folder);
    std::string second = run_tool({tool, "update"}, own, folder);
    own.insert(own.end(), names.begin(), names.end());
    if (second.empty()) second = run_tool({tool, "download"}, own, folder);
    if (!second.empty()) throw PackagesUnavailable(reason);
  }
  const std::string root = folder + "/root";
  std::vector<std::string> archives;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".deb") archives.push_back(entry.path().string());
  }
  if (archives.size() < names.size())
    throw PackagesUnavailable(text(tool, " fetched no files for ", join(names)));
  for (const std::string& archive : archives) {
    const std::string failed = run_tool({"dpkg", "-x"}, {archive, root}, folder);
    if (!failed.empty()) throw PackagesUnavailable(failed);
  }
  return root;
}

TemporaryFolder TemporaryFolder::beside(const std::string& path) {
  const fs::path folder = fs::absolute(path).parent_path();
  std::string name = (folder / ".tessera-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    fail(Fault::Resource, "cannot make a temporary folder in '", folder.string(),
         "': ", std::generic_category().message(errno),
         "; make the folder, or check its permissions");
  }
  return TemporaryFolder(name);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;  // a folder that stays is a blemish, not a failure
  fs::remove_all(path_, ignored);
}

namespace {

std::string run_tool(std::vector<std::string> arguments, const std::vector<std::string>& more,
                     const std::string& folder) {
  if (arguments[0] != "dpkg")
    arguments.insert(arguments.end(), kFetchOptions.begin(), kFetchOptions.end());
  arguments.insert(arguments.end(), more.begin(), more.end());
  const ProcessResult result =
      run_process(arguments, {folder, {"LC_ALL=C"}, /*timeout_seconds=*/300});
  if (result.ok()) return "";
  if (result.timed_out)
    return text(arguments[0], " ", arguments[1], " took longer than 300 seconds");
  const std::string_view said = trim(result.errors);
  return text(arguments[0], " ", arguments[1], " failed (", result.exit_code,
              "): ", said.substr(0, said.find('\n')));
}

std::vector<std::string> own_lists(const std::string& folder) {
  fs::create_directories(folder + "/state/lists/partial");
  fs::create_directories(folder + "/cache/archives/partial");
  return {"-o", text("Dir::State=", folder, "/state"),
          "-o", text("Dir::Cache=", folder, "/cache"),
          "-o", "Dir::State::status=/var/lib/dpkg/status"};
}

}  // namespace

}  // namespace tessera
