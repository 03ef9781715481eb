#include "tessera/apps/measured_turn.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "tessera/apps/training.h"
#include "tessera/base/error.h"
#include "tessera/base/proc.h"
#include "tessera/base/text.h"
#include "tessera/files/file.h"

namespace tessera {

namespace {

/// All of it, or nothing more is to be done: whoever reads has gone.
void write_line(int to, std::string line) {
  line += '\n';
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t wrote = ::write(to, line.data() + done, line.size() - done);
    if (wrote < 0 && errno != EINTR) return;
    done += static_cast<std::size_t>(std::max<ssize_t>(wrote, 0));
  }
}

std::function<void(const std::string&)> lines_to(int to) {
  return [to](const std::string& line) { write_line(to, line); };
}

/// Calls f(line) until the other end is closed, and `waiting` from time to time.
template <typename F, typename Waiting>
void each_line(int from, const F& f, const Waiting& waiting) {
  constexpr int kWait = 100;  // milliseconds
  std::string pending;
  std::array<char, 4096> part;
  for (;;) {
    pollfd ready{from, POLLIN, 0};
    const int found = ::poll(&ready, 1, kWait);
    waiting();
    if (found == 0 || (found < 0 && errno == EINTR)) continue;
    const ssize_t got = ::read(from, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    pending.append(part.data(), static_cast<std::size_t>(got));
    for (std::size_t end; (end = pending.find('\n')) != std::string::npos;) {
      f(pending.substr(0, end));
      pending.erase(0, end + 1);
    }
  }
}

double seconds_of(const rusage& used) {
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// What became of a process that did not say how it ended.
std::string ending_text(int status) {
  if (!WIFSIGNALED(status)) return text("its process ended with code ", WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  return text("its process was ended by signal ", signal, " (", strsignal(signal), ")",
              signal == SIGKILL ? "; perhaps by the system, for lack of memory" : "");
}

/// The error that a program told last, as one line; else the last line of what it said.
std::string last_words(const std::string& said) {
  constexpr std::string_view kError = "error: ";
  const std::size_t error = said.rfind(kError);
  std::vector<std::string> lines;
  for (const std::string& line :
       split(error == std::string::npos ? said : said.substr(error + kError.size()), '\n')) {
    if (!trim(line).empty()) lines.emplace_back(trim(line));
  }
  if (error == std::string::npos && !lines.empty()) return lines.back();
  return join(lines, "; ");
}

}  // namespace

std::string failure_text(const std::string& failure, const std::string& said) {
  const std::string words =
      std::filesystem::exists(said) ? last_words(read_file(said, Fault::Resource)) : "";
  return words.empty() ? failure : text(failure, ": ", words);
}

TurnBody training(const RunConfig& config, RunKind kind) {
  return [config, kind](int to) {
    std::ostringstream said;
    Console console{said, said, false, 80};
    TurnWriter writer(lines_to(to), kind == RunKind::Planned);
    const int code = measure_training(config, console, writer, kind == RunKind::Saved);
    writer.end(code, last_words(said.str()));
  };
}

TurnBody program(Arguments words, std::string said, AddedVariables added) {
  return
      [words = std::move(words), said = std::move(said), added = std::move(added)](int to) mutable {
        for (const auto& [name, value] : added) ::setenv(name.c_str(), value.c_str(), 1);
        ::signal(SIGPIPE, SIG_DFL);
        ::setpgid(0, 0);  // ended together with what it starts
        const int nothing = ::open("/dev/null", O_RDONLY),
                  errors = ::open(said.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        ::dup2(nothing, STDIN_FILENO), ::dup2(to, STDOUT_FILENO), ::dup2(errors, STDERR_FILENO);
        std::vector<char*> list;
        for (std::string& word : words) list.push_back(word.data());
        list.push_back(nullptr);
        ::execvp(list[0], list.data());
        TurnWriter(lines_to(to))
            .end(127, text("cannot start '", words[0], "': ", std::strerror(errno)));
      };
}

TurnBody work(std::function<void()> what) {
  return [what = std::move(what)](int to) {
    TurnWriter writer(lines_to(to));
    std::ostringstream said;
    Console console{said, said, false, 80};
    const int code = exit_code_of(console, [&] { return what(), 0; });
    writer.end(code, last_words(said.str()));
  };
}

Turn measured_turn(const TurnBody& body, const TurnLength& length,
                   const std::function<void(std::int64_t)>& on_step,
                   const std::atomic<bool>& stop) {
  std::array<int, 2> ends;
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    fail(Fault::Resource, "cannot make a pipe: ", std::generic_category().message(errno),
         "; check the limit of open files");
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  const CoreSeconds before = core_seconds();
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::signal(SIGINT, SIG_IGN);            // Ctrl-C reaches both; the parent decides
    [&]() noexcept { body(ends[1]); }();  // nothing of the parent's is unwound
    std::_Exit(0);                        // nor flushed
  }
  const int error = errno;
  ::close(ends[1]);
  TurnReader reader(length);
  if (child > 0) {
    each_line(
        ends[0],
        [&](const std::string& line) {
          reader.read(line);
          on_step(reader.steps_done());
        },
        [&] {
          if (!stop) return;
          ::kill(-child, SIGKILL);  // where it has a group of its own
          ::kill(child, SIGKILL);   // it has nothing that could be lost
        });
  }
  ::close(ends[0]);
  if (child < 0)
    fail(Fault::Resource, "cannot make a process: ", std::generic_category().message(error),
         "; check the limits of processes and memory");
  int status = 0;
  rusage used = {};
  while (::wait4(child, &status, 0, &used) < 0 && errno == EINTR) {
  }
  const CoreSeconds after = core_seconds();
  Turn out = stop ? std::move(reader).finish_cut()
                  : std::move(reader).finish(status != 0 ? ending_text(status) : "");
  if (out.peak_bytes == 0) out.peak_bytes = used.ru_maxrss * 1024;  // of a program that tells none
  out.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  const double all = after.all - before.all, mine = seconds_of(used);
  if (all > 0) out.others = std::max(0.0, after.worked - before.worked - mine) / all;
  return out;
}

}  // namespace tessera
