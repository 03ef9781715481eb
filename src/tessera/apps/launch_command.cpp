/// tessera launch: a command on several ranks, each a process that mpirun starts.

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "tessera/apps/command.h"
#include "tessera/apps/launch.h"
#include "tessera/base/error.h"
#include "tessera/comm/mpi.h"
#include "tessera/data/process.h"

namespace tessera {

namespace {

constexpr const char* kHelp =
    "tessera launch -n N [--hostfile FILE] [--bind HOW] -- COMMAND ...\n\n"
    "Runs a command of tessera on N ranks, each a process of its own that mpirun starts.\n\n"
    "  -n, --ranks N       how many ranks\n"
    "  --hostfile FILE     where: one `HOST slots=N` a line; else all on this machine\n"
    "  --bind HOW          core: every rank keeps to its own cores; none; auto (as is): core "
    "where\n"
    "                      all ranks are here and there are cores for all, else none\n"
    "  --verbose           with mpirun's own words\n"
    "  --dry-run           print what would be run\n\n"
    "A first Ctrl-C, SIGTERM or SIGUSR1 lets the ranks save and stop, a second ends them at once.\n"
    "The exit code is the command's.\n";

/// The path of a program, as a shell finds it; empty: nowhere.
std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path == nullptr ? "/usr/bin:/bin" : path, ':')) {
    const std::string candidate = folder + "/" + name;
    if (!folder.empty() && access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return {};
}

/// mpirun of Open MPI, whose flags we know.
std::string find_mpirun() {
  const std::string get = "on Debian: apt-get install openmpi-bin";
  for (const char* name : {"mpirun", "mpirun.openmpi"}) {
    const std::string path = find_program(name);
    if (path.empty()) continue;
    if (run_process({path, "--version"}).output.find("Open MPI") != std::string::npos) return path;
    if (find_program("mpirun.openmpi").empty()) {
      fail(Fault::Resource, "launch: ", path, " is not Open MPI's, whose flags are known here; ",
           get, ", or start `tessera` with your own launcher, which needs no `launch`");
    }
  }
  fail(Fault::Resource, "launch: there is no mpirun in PATH; ", get,
       "; without it, --devices N makes ranks of threads");
}

/// Cores that this process may use; threads of one core count once.
int cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof(set), &set);
  std::set<std::string> siblings;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(static_cast<unsigned>(cpu), &set)) continue;
    std::ifstream file(text("/sys/devices/system/cpu/cpu", cpu, "/topology/thread_siblings_list"));
    std::string line;
    siblings.insert(std::getline(file, line) ? line : text(cpu));
  }
  return static_cast<int>(siblings.size());
}

[[noreturn]] void become(std::vector<std::string>& words, pid_t parent, const sigset_t& signals) {
  // The terminal's Ctrl-C is for us alone: mpirun would end the ranks at once.
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);  // were we killed, mpirun would end the ranks
  if (getppid() != parent) _exit(128 + SIGTERM);
  sigprocmask(SIG_SETMASK, &signals, nullptr);
  for (const int ignored : {SIGPIPE, SIGXFSZ}) signal(ignored, SIG_DFL);
  if (freopen("/dev/null", "r", stdin) == nullptr) _exit(127);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execv(pointers[0], pointers.data());
  _exit(127);
}

bool lives(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string line;
  std::error_code unknown;
  if (!std::getline(file, line)) return std::filesystem::exists("/proc/" + pid, unknown);
  const std::size_t name_ends = line.rfind(')');  // then a blank and the state
  return name_ends != std::string::npos && line.compare(name_ends + 2, 1, "Z") != 0;
}

/// True where the system does not tell as well.
bool has_living_child(pid_t pid) {
  std::error_code gone;
  for (const auto& thread :
       std::filesystem::directory_iterator(text("/proc/", pid, "/task"), gone)) {
    std::ifstream file(thread.path() / "children");
    if (!file) return true;
    for (std::string child; file >> child;) {
      if (lives(child)) return true;
    }
  }
  return gone.value() != 0;
}

/// How long a launcher of ranks on this machine may have none under it, at the start and at the
/// end: Open MPI 4.1 can wait for ever for a rank that was killed while it came up.
constexpr int kSecondsWithoutRanks = 20;

/// Runs a program to its end and passes requests to stop on to it. Gives its exit code, 128 + n
/// where signal n has ended it.
int run_to_end(std::vector<std::string> words, bool ranks_are_here, Console& console) {
  sigset_t caught, before;
  sigemptyset(&caught);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGHUP, SIGCHLD}) sigaddset(&caught, signal);
  sigprocmask(SIG_BLOCK, &caught, &before);
  const pid_t parent = getpid(), child = fork();
  if (child < 0) {
    fail(Fault::Resource, "launch: cannot start ", words[0], ": ",
         std::generic_category().message(errno), "; check the limits of processes and memory");
  }
  if (child == 0) become(words, parent, before);
  bool asked = false;
  constexpr timespec kSecond = {1, 0};
  for (int idle = 0;;) {
    int status = 0;
    const int signal = sigtimedwait(&caught, nullptr, &kSecond);
    if (signal < 0) {
      if (!ranks_are_here) continue;
      idle = has_living_child(child) ? 0 : idle + 1;
      if (idle == kSecondsWithoutRanks) {
        console.err << "error: " << words[0] << " has had no rank under it for "
                    << kSecondsWithoutRanks
                    << " s and does not end; it is ended now. If a rank was killed while the run "
                       "came up, run again\n";
        kill(child, SIGKILL);
      }
    } else if (signal != SIGCHLD) {
      // mpirun passes SIGUSR1 on to every rank, and at SIGTERM ends them.
      kill(child, asked ? SIGTERM : SIGUSR1);
      asked = true;
    } else if (waitpid(child, &status, WNOHANG) == child) {
      sigprocmask(SIG_SETMASK, &before, nullptr);
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
  }
}

/// True of exit codes that a command never has: mpirun itself failed.
bool is_launchers_own(int code) { return code == 1 || code == 127 || code == 255; }

}  // namespace

int launch_command(const Arguments& arguments, Console& console) {
  const Launch launch = parse_launch(arguments);
  if (launch.help) {
    console.out << kHelp;
    return 0;
  }
  require(has_mpi(),
          "launch: this program was built without MPI; install Open MPI (on Debian: apt-get "
          "install libopenmpi-dev openmpi-bin) and build again, or give --devices N to the "
          "command, which makes ranks of threads");
  require(!mpi_launched([](const char* name) { return std::getenv(name); }),
          "launch: this is a rank already, started by an MPI launcher; give it the command itself");
  const Launcher launcher = {find_mpirun(), std::filesystem::read_symlink("/proc/self/exe"),
                             cores(), geteuid() == 0};
  const Arguments words = mpirun_words(launch, launcher);
  if (launch.dry_run) {
    console.out << join(words, " ") << "\n";
    return 0;
  }
  console.out.flush();
  const int code = run_to_end(words, launch.hostfile.empty(), console);
  if (is_launchers_own(code)) {
    console.err << "error: mpirun ended with code " << code
                << (launch.verbose ? "" : "; run again with --verbose, for its own words") << "\n";
  }
  return code;
}

}  // namespace tessera
