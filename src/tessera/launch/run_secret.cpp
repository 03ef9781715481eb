#include "tessera/launch/run_secret.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/comm/process/tcp/secret.h"
#include "tessera/comm/process/tcp/sockets.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;
using process::Secret;

constexpr std::size_t kMostSecret = 4096;

/// Why nobody else may have a file like this; empty: nobody has.
std::string open_to_others(const struct stat& file) {
  if (file.st_uid != geteuid() && file.st_uid != 0) return "belongs to another user";
  if ((file.st_mode & 077) != 0) return "can be read or written by other users";
  return {};
}

/// `what` begins messages: "--secret-file: 'FILE'".
std::string read_secret(const std::string& path, const std::string& what, int more_flags = 0) {
  // A pipe that nobody writes to is not waited for.
  const process::Socket file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | more_flags));
  require(file.open(), what, " cannot be opened: ", process::error_text(errno),
          "; make it with: umask 077; head -c 32 /dev/urandom | base64 > ", path);
  struct stat found = {};
  require(fstat(file.file(), &found) == 0, what,
          " cannot be accessed: ", process::error_text(errno), "; name another file");
  require(!S_ISDIR(found.st_mode), what, " is a folder; name a file in it");
  require(S_ISREG(found.st_mode) || S_ISFIFO(found.st_mode), what,
          " is neither a file nor a pipe; name a file with the secret in it");
  const std::string open = open_to_others(found);
  require(open.empty(), what, " ", open, ": chmod 600 it as its owner, and draw another secret");
  std::string all;
  std::array<char, 512> part;
  fcntl(file.file(), F_SETFL, O_RDONLY);  // who writes to a pipe by now is waited for
  for (ssize_t got = 1; got != 0;) {
    got = read(file.file(), part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    require(got >= 0, what, " cannot be read: ", process::error_text(errno), "; name another file");
    all.append(part.data(), static_cast<std::size_t>(got));
    require(all.size() <= kMostSecret, what, " has more than ", kMostSecret,
            " bytes; a secret is one line, as from: head -c 32 /dev/urandom | base64");
  }
  require(!all.empty() || !S_ISFIFO(found.st_mode), what,
          " is a pipe that nobody writes to; start its writer first");
  return std::string(trim(all));
}

std::string long_enough(std::string secret, const std::string& what) {
  require(secret.size() >= Secret::kLeast, what, " has ", secret.size(),
          " characters, but a secret needs at least ", Secret::kLeast,
          ": make one with: head -c 32 /dev/urandom | base64");
  return secret;
}

/// Makes the file whole or not at all: several ranks may come here at once.
void make_own_file(const fs::path& path) {
  std::error_code failure;
  fs::create_directories(path.parent_path(), failure);
  std::string name = path.string() + "-XXXXXX";
  const process::Socket file(mkostemp(name.data(), O_CLOEXEC));  // for this user alone
  const std::string secret = process::draw_secret() + "\n";
  const bool written = file.open() && write(file.file(), secret.data(), secret.size()) ==
                                          static_cast<ssize_t>(secret.size());
  const bool there = written && (link(name.c_str(), path.c_str()) == 0 || errno == EEXIST);
  const int number = errno;
  if (file.open()) unlink(name.c_str());
  if (!there)
    fail(Fault::Resource, "the secret of this user's runs cannot be kept in '", path.string(),
         "': ", process::error_text(number),
         "; give all ranks the same with --secret-file, TESSERA_SECRET_FILE or TESSERA_SECRET");
}

}  // namespace

std::string secret_of_file(const std::string& path, const std::string& what) {
  return long_enough(read_secret(path, what), what);
}

std::string run_secret(const std::string& secret_file, const EnvironmentVariables& environment) {
  const auto of_file = [](const std::string& path, const std::string& source) {
    return secret_of_file(path, text(source, ": '", path, "'"));
  };
  if (!secret_file.empty()) return of_file(secret_file, "--secret-file");
  if (const std::string secret = value_of(environment, "TESSERA_SECRET"); !secret.empty())
    return long_enough(secret, "TESSERA_SECRET");
  if (const std::string path = value_of(environment, "TESSERA_SECRET_FILE"); !path.empty())
    return of_file(path, "TESSERA_SECRET_FILE");
  const std::string folder = user_cache_folder(environment);
  if (folder.empty())
    fail(Fault::Resource, "ranks that join over TCP need a secret, and there is no home folder ",
         "where this user's secret could be kept; give all ranks the same with --secret-file, ",
         "TESSERA_SECRET_FILE or TESSERA_SECRET");
  const fs::path own = fs::path(folder) / "secret";
  struct stat found = {};
  if (lstat(own.c_str(), &found) != 0) make_own_file(own);
  const std::string what = text("the secret of this user's runs, '", own.string(), "',");
  return long_enough(read_secret(own.string(), what, O_NOFOLLOW), what);
}

}  // namespace tessera
