#include "tessera/launch/start_ranks.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <set>
#include <system_error>
#include <thread>

#include "tessera/base/error.h"
#include "tessera/comm/process/tcp/secret.h"
#include "tessera/comm/process/tcp/sockets.h"
#include "tessera/launch/core_sets.h"

namespace tessera {

namespace {

using namespace std::chrono_literals;

/// From the end of the first that failed to that of the others: by then it was told why, and they
/// leave each other within a second or two.
constexpr auto kToEnd = 3s;
constexpr auto kToTidy = 1s;  // as mpirun gives

volatile sig_atomic_t told_to_end_ranks = 0;

/// A system that refuses lets the ranks run anywhere.
void bind_to(const cpu_set_t& cores) { sched_setaffinity(0, sizeof(cores), &cores); }

[[noreturn]] void become_rank(int rank, pid_t parent, int listener, std::vector<char*>& words) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(128 + SIGKILL);
  signal(SIGTERM, SIG_DFL);
  setenv("RANK", text(rank).c_str(), 1);
  setenv("LOCAL_RANK", text(rank).c_str(), 1);
  if (rank == 0) {
    fcntl(listener, F_SETFD, 0);  // the others lose it as they become the command
    setenv("TESSERA_LISTEN_FD", text(listener).c_str(), 1);
  } else {
    const int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  }
  execv(words[0], words.data());
  _exit(127);
}

void end_all(const std::set<pid_t>& running, int signal) {
  for (const pid_t child : running) kill(child, signal);
}

}  // namespace

int start_ranks(int ranks, std::vector<std::string> command, bool bound, bool tidy) {
  process::Socket listener = process::listen_here();
  if (const int number = errno; !listener.open())
    fail(Fault::Resource,
         "launch: cannot listen at any port of this machine: ", process::error_text(number),
         "; free some ports, or raise the limit of open files");
  const std::vector<cpu_set_t> cores = bound ? usable_core_sets() : std::vector<cpu_set_t>();
  setenv("WORLD_SIZE", text(ranks).c_str(), 1);
  setenv("LOCAL_WORLD_SIZE", text(ranks).c_str(), 1);
  setenv("TESSERA_SECRET", process::draw_secret().c_str(), 1);
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  setenv("MASTER_PORT", text(process::local_end(listener).port()).c_str(), 1);
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  signal(SIGTERM, [](int) { told_to_end_ranks = 1; });
  std::set<pid_t> running;
  const pid_t self = getpid();
  for (int r = 0; r < ranks; ++r) {
    const pid_t child = fork();
    if (child == 0) {
      if (bound) bind_to(cores_of_rank(cores, r, ranks));
      become_rank(r, self, listener.file(), words);
    }
    if (child < 0) {
      const int number = errno;
      end_all(running, SIGKILL);
      fail(Fault::Resource, "launch: rank ", r, " of ", ranks,
           " cannot be started: ", std::generic_category().message(number),
           "; check the limits of processes and memory");
    }
    running.insert(child);
  }
  listener = {};  // rank 0's alone, and gone with it
  int code = 0;
  auto last = std::chrono::steady_clock::time_point::max();
  while (!running.empty()) {
    const auto now = std::chrono::steady_clock::now();
    int status = 0;
    const pid_t ended = waitpid(-1, &status, WNOHANG);
    if (running.erase(ended) != 0) {
      const int own = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      if (code == 0) code = own;
      if (own != 0) last = std::min(last, now + kToEnd);
      continue;
    }
    if (told_to_end_ranks == 1) {
      told_to_end_ranks = 2;
      end_all(running, tidy ? SIGTERM : SIGKILL);
      if (tidy) last = std::min(last, now + kToTidy);
    }
    if (now > last) end_all(running, SIGKILL);
    std::this_thread::sleep_for(5ms);
  }
  return code;
}

}  // namespace tessera
