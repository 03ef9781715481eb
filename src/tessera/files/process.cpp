#include "tessera/files/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

using Clock = std::chrono::steady_clock;

/// Both ends of a pipe, closed when it goes.
struct Pipe {
  int read_end = -1, write_end = -1;
  Pipe();
  ~Pipe();
  void close_write_end();
};

/// A session of the child's own: a group of processes to end together, and no terminal to ask at.
/// Signals that this process ignores end a child again.
struct SpawnAttributes {
  posix_spawnattr_t value;
  SpawnAttributes() {
    posix_spawnattr_init(&value);
    sigset_t ends;
    sigemptyset(&ends);
    for (const int signal : {SIGPIPE, SIGXFSZ, SIGTERM}) sigaddset(&ends, signal);
    posix_spawnattr_setsigdefault(&value, &ends);
    posix_spawnattr_setflags(&value, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
  }
  ~SpawnAttributes() { posix_spawnattr_destroy(&value); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
};

/// What the child does between its birth and the program's.
struct SpawnActions {
  posix_spawn_file_actions_t value;
  SpawnActions() { posix_spawn_file_actions_init(&value); }
  ~SpawnActions() { posix_spawn_file_actions_destroy(&value); }
};

/// Ends the child's group when this process is gone.
void end_with_us(const Pipe& life, pid_t child);
std::vector<char*> pointers(std::vector<std::string>& lines);
std::vector<std::string> child_environment(const std::vector<std::string>& changes);
/// Reads both pipes until the child has closed them. Returns false when the time is over.
bool collect(Pipe& output, Pipe& errors, ProcessResult& result, Clock::time_point deadline);
int wait_for(pid_t child);

}  // namespace

ProcessResult run_process(const std::vector<std::string>& arguments,
                          const ProcessOptions& options) {
  check(!arguments.empty(), "a process without a program");
  ProcessResult result;
  Pipe output, errors, life;
  SpawnActions actions;
  posix_spawn_file_actions_addopen(&actions.value, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions.value, output.write_end, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions.value, errors.write_end, STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&actions.value, life.read_end, life.read_end);  // it stays open
  if (!options.folder.empty())
    posix_spawn_file_actions_addchdir_np(&actions.value, options.folder.c_str());

  std::vector<std::string> argument_lines = arguments,
                           environment_lines = child_environment(options.environment);
  const std::vector<char*> argv = pointers(argument_lines),
                           environment = pointers(environment_lines);
  pid_t child = -1;
  const SpawnAttributes attributes;
  const int error = posix_spawnp(&child, argv[0], &actions.value, &attributes.value, argv.data(),
                                 environment.data());
  if (error == ENOENT || error == EACCES) {
    result.exit_code = 127;
    result.errors = text(arguments[0], ": ", std::generic_category().message(error));
    return result;
  }
  if (error != 0) {
    fail(Fault::Resource, "cannot start '", arguments[0],
         "': ", std::generic_category().message(error),
         "; check the limits of processes and memory");
  }
  end_with_us(life, child);
  output.close_write_end();
  errors.close_write_end();
  result.timed_out = !collect(output, errors, result,
                              Clock::now() + std::chrono::seconds(options.timeout_seconds));
  if (result.timed_out) ::kill(-child, SIGKILL);
  result.exit_code = wait_for(child);
  return result;
}

namespace {

Pipe::Pipe() {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    fail(Fault::Resource, "cannot make a pipe: ", std::generic_category().message(errno),
         "; check the limit of open files");
  }
  read_end = ends[0], write_end = ends[1];
}
Pipe::~Pipe() {
  ::close(read_end);
  close_write_end();
}
void Pipe::close_write_end() {
  if (write_end >= 0) ::close(write_end);
  write_end = -1;
}

/// The child has a pipe's read end, and only this process its write end. However that is closed,
/// the kernel then signals the group that owns the read end: fcntl(2), F_SETOWN and O_ASYNC. A
/// process that is killed between the spawn and this leaves its child alone.
void end_with_us(const Pipe& life, pid_t child) {
  ::fcntl(life.read_end, F_SETOWN, -child);
  ::fcntl(life.read_end, F_SETSIG, SIGTERM);
  ::fcntl(life.read_end, F_SETFL, O_ASYNC);
}

std::vector<char*> pointers(std::vector<std::string>& lines) {
  std::vector<char*> out;
  for (std::string& line : lines) out.push_back(line.data());
  out.push_back(nullptr);
  return out;
}

/// The child inherits our variables unread, as any program that another one starts: a package tool
/// needs its proxies.
std::vector<std::string> child_environment(const std::vector<std::string>& changes) {
  std::vector<std::string> out = changes;
  for (char** line = environ; line != nullptr && *line != nullptr; ++line) {
    const std::string_view inherited = *line;
    bool changed = false;
    for (const std::string& change : changes)
      changed |= starts_with(inherited, change.substr(0, change.find('=') + 1));
    if (!changed) out.emplace_back(inherited);
  }
  return out;
}

bool collect(Pipe& output, Pipe& errors, ProcessResult& result, Clock::time_point deadline) {
  std::array<pollfd, 2> waits = {{{output.read_end, POLLIN, 0}, {errors.read_end, POLLIN, 0}}};
  const std::array<std::string*, 2> texts = {&result.output, &result.errors};
  std::array<char, 1 << 16> buffer;
  while (waits[0].fd >= 0 || waits[1].fd >= 0) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    if (::poll(waits.data(), waits.size(), static_cast<int>(left)) < 0 && errno != EINTR)
      return false;
    for (std::size_t i = 0; i < waits.size(); ++i) {
      if (waits[i].fd < 0 || waits[i].revents == 0) continue;
      const ssize_t got = ::read(waits[i].fd, buffer.data(), buffer.size());
      if (got > 0) texts[i]->append(buffer.data(), static_cast<std::size_t>(got));
      if (got == 0 || (got < 0 && errno != EINTR))
        waits[i].fd = -1;  // poll leaves negative ones out
    }
  }
  return true;
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

}  // namespace tessera
