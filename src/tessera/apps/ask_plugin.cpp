#include "tessera/apps/ask_plugin.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <thread>

#include "tessera/base/text.h"

namespace tessera {

namespace {

/// What the child tells: texts that end with a NUL each.
std::string joined_facts(const PluginFacts& plugin) {
  std::string out;
  for (const std::string* text : {&plugin.version, &plugin.devices, &plugin.problem})
    out += text->substr(0, text->find('\0')) + '\0';
  return out;
}
void take(const std::string& all, PluginFacts& plugin) {
  std::size_t at = 0;
  for (std::string* text : {&plugin.version, &plugin.devices, &plugin.problem}) {
    *text = all.c_str() + at;
    at += text->size() + 1;
  }
}

void write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = write(file, bytes.data(), bytes.size());
    if (wrote < 0 && errno != EINTR) return;
    bytes.remove_prefix(wrote < 0 ? 0 : static_cast<std::size_t>(wrote));
  }
}

/// All bytes up to the end of the file, or what came in time.
struct Heard {
  std::string all;
  bool ended = false;
};
Heard read_for(int file, std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  Heard out;
  std::array<char, 4096> bytes;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd waits = {file, POLLIN, 0};
    const int ready = poll(&waits, 1, static_cast<int>(std::max(left.count(), 0L)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return out;
    const ssize_t got = read(file, bytes.data(), bytes.size());
    out.ended = got == 0;
    if (got <= 0) return out;
    out.all.append(bytes.data(), static_cast<std::size_t>(got));
  }
}

constexpr const char* kSee = "; see what it says on standard error, or take another version";

std::string end_text(int status) {
  if (!WIFSIGNALED(status))
    return text("ended the process with code ", WEXITSTATUS(status),
                " when it was asked for its devices", kSee);
  const int number = WTERMSIG(status);
  return text(number == SIGABRT ? "aborted" : "was ended", ": signal ", number, " (",
              strsignal(number), "), when it was asked for its devices", kSee);
}

/// What the child has to tell; errors are told by ask().
[[noreturn]] void tell(PluginFacts& plugin, int file) {
  try {
    ask(plugin);
  } catch (const std::exception& error) {
    plugin.problem = error.what();
  } catch (...) {
    plugin.problem = "it throws what is no exception";
  }
  write_all(file, joined_facts(plugin));
  _exit(0);  // what the parent has set up is the parent's to end
}

/// Nothing where it has not ended in time: a device may keep it in the kernel.
std::optional<int> end_of(pid_t child, std::chrono::seconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  int status = 0;
  for (pid_t got = 0; got != child;) {
    got = waitpid(child, &status, WNOHANG);
    if (got < 0 && errno != EINTR) return std::nullopt;
    if (got == 0 && std::chrono::steady_clock::now() > end) return std::nullopt;
    if (got != child) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return status;
}

}  // namespace

void ask_apart(PluginFacts& plugin, std::chrono::seconds time) {
  std::fflush(nullptr);  // or the child would write it again
  std::array<int, 2> ends = {-1, -1};
  const pid_t child = pipe(ends.data()) == 0 ? fork() : -1;
  if (child < 0) {
    plugin.problem = text("no process to ask it in: ", std::strerror(errno));
    for (const int file : ends) close(file);
    return;
  }
  if (child == 0) {
    close(ends[0]);
    tell(plugin, ends[1]);
  }
  close(ends[1]);
  const auto [all, ended] = read_for(ends[0], time);
  close(ends[0]);
  constexpr long kTexts = 3;
  const bool whole = std::ranges::count(all, '\0') == kTexts;
  if (!ended) kill(child, SIGKILL);
  const std::optional<int> status = end_of(child, std::chrono::seconds(5));
  if (whole) return take(all, plugin);
  plugin.problem = ended && status ? end_text(*status)
                                   : text("does not tell its devices within ", time.count(),
                                          " s; is its driver well?");
}

}  // namespace tessera
