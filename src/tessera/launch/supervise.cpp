#include "tessera/launch/supervise.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "tessera/base/error.h"
#include "tessera/launch/launcher_words.h"
#include "tessera/launch/output_relay.h"
#include "tessera/launch/stop_signal.h"

namespace tessera {

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// An mpirun that has had ranks ends a moment after them. Open MPI 4.1 can wait for ever for a rank
/// that was killed while it came up.
constexpr auto kAfterRanks = 10s;

[[noreturn]] void cannot_start(const std::string& program) {
  fail(Fault::Resource, "launch: cannot start ", program, ": ",
       std::generic_category().message(errno), "; check the limits of processes and memory");
}

struct Pipe {
  int read_end = -1, write_end = -1;
  explicit Pipe(const std::string& program) {
    std::array<int, 2> ends;
    if (pipe2(ends.data(), O_CLOEXEC) != 0) cannot_start(program);
    read_end = ends[0], write_end = ends[1];
  }
  ~Pipe() { close(&read_end), close(&write_end); }
  static void close(int* end) {
    if (*end >= 0) ::close(*end);
    *end = -1;
  }
};

bool lives(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string line;
  std::error_code unknown;
  if (!std::getline(file, line)) return std::filesystem::exists("/proc/" + pid, unknown);
  const std::size_t name_ends = line.rfind(')');  // then a blank and the state
  return name_ends != std::string::npos && line.compare(name_ends + 2, 1, "Z") != 0;
}

/// The children of a process; `unknown` where the system does not tell all.
std::vector<std::string> children_of(const std::string& pid, bool& unknown) {
  std::vector<std::string> out;
  std::error_code gone;
  for (const auto& thread :
       std::filesystem::directory_iterator(text("/proc/", pid, "/task"), gone)) {
    std::ifstream file(thread.path() / "children");
    unknown = unknown || !file;
    for (std::string child; file >> child;) out.push_back(child);
  }
  unknown = unknown || gone.value() != 0;
  return out;
}

/// True where the system does not tell as well.
bool has_living_child(pid_t pid) {
  bool unknown = false;
  const std::vector<std::string> children = children_of(text(pid), unknown);
  return unknown || std::any_of(children.begin(), children.end(), lives);
}

/// One run of mpirun.
class Run {
 public:
  Run(std::vector<std::string> words, const Supervision& how, StopRequests& requests,
      Console& console)
      : words_(std::move(words)),
        how_(how),
        requests_(requests),
        input_(words_[0]),
        output_(words_[0]),
        errors_(words_[0]),
        heard_(how.has_words),
        out_(output_.read_end, console.out, STDOUT_FILENO),
        err_(errors_.read_end, console.err, STDERR_FILENO, [this](std::string_view bytes) {
          std::string of_ranks = heard_.pass(bytes);
          return how_.verbose ? std::string(bytes) : of_ranks;
        }) {}
  LaunchEnd to_end(const LaunchReport& report);

 private:
  void start();
  [[noreturn]] void become(pid_t parent);
  bool ended();
  void ask(int signal);
  void look_for_ranks();
  void end_the_rest();
  /// Passes on what is left of the output. Where `at_once`, nobody is waited for; a request to stop
  /// sets it.
  void pass_the_rest(OutputRelay& relay, bool& at_once);

  std::vector<std::string> words_;
  const Supervision& how_;
  StopRequests& requests_;
  Pipe input_, output_, errors_;
  LauncherWords heard_;
  OutputRelay out_, err_;
  LaunchEnd end_;
  pid_t child_ = -1;
  int asked_ = 0;
  Clock::time_point first_asked_ = {};
  bool had_ranks_ = false;
  // The last time that there were any, or that mpirun passed on what they had printed, or the
  // start.
  Clock::time_point with_ranks_ = Clock::now();
};

LaunchEnd Run::to_end(const LaunchReport& report) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // ranks whose mpirun dies are ours to end
  start();
  while (!ended()) {
    std::array<pollfd, 3> files = {{{requests_.file(), POLLIN, 0}, out_.awaited(), err_.awaited()}};
    poll(files.data(), files.size(), 1000);
    for (const int signal : requests_.take()) ask(signal);
    bool delivers = out_.holds() || err_.holds();
    if (files[1].revents != 0) delivers = out_.pass() || delivers;
    if (files[2].revents != 0) delivers = err_.pass() || delivers;
    if (delivers) with_ranks_ = Clock::now();
    look_for_ranks();
  }
  end_the_rest();
  bool at_once = end_.requested != 0;
  pass_the_rest(err_, at_once);
  err_.add(heard_.rest());
  pass_the_rest(err_, at_once);
  pass_the_rest(out_, at_once);
  end_.error_seen = heard_.error_seen();
  end_.words = heard_.own();
  err_.add(report(end_));
  pass_the_rest(err_, at_once);
  return end_;
}

void Run::start() {
  const pid_t parent = getpid();
  child_ = fork();
  if (child_ < 0) cannot_start(words_[0]);
  if (child_ == 0) become(parent);
  for (int* theirs : {&input_.read_end, &output_.write_end, &errors_.write_end})
    Pipe::close(theirs);
  for (const int file : {output_.read_end, errors_.read_end}) fcntl(file, F_SETFL, O_NONBLOCK);
}

void Run::become(pid_t parent) {
  // The terminal's Ctrl-C is for us alone: mpirun would end the ranks at once.
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);  // were we killed, mpirun would end the ranks
  if (getppid() != parent) _exit(128 + SIGTERM);
  std::vector<int> ours = stop_signals();
  ours.insert(ours.end(), {SIGPIPE, SIGXFSZ});
  for (const int caught : ours) signal(caught, SIG_DFL);
  requests_.restore();
  dup2(input_.read_end, STDIN_FILENO);
  dup2(output_.write_end, STDOUT_FILENO);
  dup2(errors_.write_end, STDERR_FILENO);
  setenv("PATH", kUsualPath, 0);  // without one mpirun finds nothing, itself included
  std::vector<char*> pointers;
  for (std::string& word : words_) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execv(pointers[0], pointers.data());
  _exit(127);
}

/// True once mpirun has ended; its code is noted.
bool Run::ended() {
  // Ranks that it leaves behind become our children, and are collected here as well.
  int status = 0;
  for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (pid != child_) continue;
    // It may end by itself just as it is given up.
    if (WIFEXITED(status)) end_.hung = end_.lost_ranks = false;
    end_.killed = WIFSIGNALED(status) && !end_.hung && !end_.lost_ranks && end_.requested == 0;
    end_.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return true;
  }
  return false;
}

void Run::ask(int signal) {
  const Clock::time_point now = Clock::now();
  if (asked_ == 0) first_asked_ = now;
  if (asked_ == 1 && now - first_asked_ < kOneRequest) return;  // the same one, told twice
  ++asked_;
  if (asked_ == 1 && how_.stops_in_order) {
    constexpr char kStop = 's';
    if (write(input_.write_end, &kStop, 1) == 1) return;
  }
  // At SIGTERM mpirun ends the ranks, in a second at most.
  end_.requested = signal;
  kill(child_, asked_ <= 2 ? SIGTERM : SIGKILL);
}

void Run::look_for_ranks() {
  if (!how_.ranks_are_here) return;
  const Clock::time_point now = Clock::now();
  if (has_living_child(child_)) {
    had_ranks_ = true;
    with_ranks_ = now;
    return;
  }
  const auto limit = had_ranks_ ? std::min<Clock::duration>(kAfterRanks, how_.timeout)
                                : Clock::duration(how_.timeout);
  if (now - with_ranks_ < limit) return;
  // One that was asked to end and does not has nothing to be reported but that.
  if (end_.requested == 0) (had_ranks_ ? end_.lost_ranks : end_.hung) = true;
  kill(child_, SIGKILL);
}

/// Kills what mpirun has left behind on this machine: it holds the output folder's lock.
void Run::end_the_rest() {
  const auto limit = Clock::now() + 5s;
  while (Clock::now() < limit) {
    bool unknown = false;
    for (const std::string& child : children_of("self", unknown))
      kill(static_cast<pid_t>(std::stol(child)), SIGKILL);
    if (waitpid(-1, nullptr, WNOHANG) < 0) return;  // there is none
    poll(nullptr, 0, 10);
  }
}

void Run::pass_the_rest(OutputRelay& relay, bool& at_once) {
  do {
    while (relay.holds()) {
      std::array<pollfd, 2> files = {{{requests_.file(), POLLIN, 0}, relay.awaited()}};
      poll(files.data(), files.size(), at_once ? 0 : -1);
      if (!requests_.take().empty()) at_once = true;
      const bool passed = files[1].revents != 0 && relay.pass();
      if (!passed && at_once) return relay.drop();
    }
  } while (relay.pass());
}

}  // namespace

StopRequests::StopRequests() {
  sigset_t caught;
  sigemptyset(&caught);
  for (const int signal : stop_signals()) sigaddset(&caught, signal);
  sigaddset(&caught, SIGCHLD);
  sigprocmask(SIG_BLOCK, &caught, &before_);
  file_ = signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK);
}

StopRequests::~StopRequests() {
  take();  // else each that waits would be a request to what comes after
  if (file_ >= 0) close(file_);
  restore();
}

void StopRequests::restore() const { sigprocmask(SIG_SETMASK, &before_, nullptr); }

std::vector<int> StopRequests::take() {
  std::vector<int> out;
  signalfd_siginfo info;
  while (read(file_, &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo != SIGCHLD) out.push_back(static_cast<int>(info.ssi_signo));
  }
  return out;
}

LaunchEnd supervise(std::vector<std::string> words, const Supervision& how,
                    const LaunchReport& report, StopRequests& requests, Console& console) {
  return Run(std::move(words), how, requests, console).to_end(report);
}

}  // namespace tessera
