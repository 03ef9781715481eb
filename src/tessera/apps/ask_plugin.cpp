#include "tessera/apps/ask_plugin.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "tessera/base/text.h"

namespace tessera {

namespace {

/// What the child tells: texts that end with a NUL each.
std::string told(const PluginFacts& plugin) {
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
std::string read_for(int file, std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  std::string out;
  std::array<char, 4096> bytes;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd waits = {file, POLLIN, 0};
    const int ready = poll(&waits, 1, static_cast<int>(std::max(left.count(), 0L)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return out;
    const ssize_t got = read(file, bytes.data(), bytes.size());
    if (got <= 0) return out;
    out.append(bytes.data(), static_cast<std::size_t>(got));
  }
}

/// Empty: it ended in order.
std::string end_text(int status) {
  if (!WIFSIGNALED(status)) return "";
  const int number = WTERMSIG(status);
  return text(number == SIGABRT ? "aborted" : "was ended", ": signal ", number, " (",
              strsignal(number),
              "), when it was asked for its devices; see what it says on standard "
              "error, or take another version");
}

}  // namespace

void ask_apart(PluginFacts& plugin, std::chrono::seconds time) {
  std::array<int, 2> ends = {-1, -1};
  const pid_t child = pipe(ends.data()) == 0 ? fork() : -1;
  if (child < 0) {
    plugin.problem = text("no process to ask it in: ", std::strerror(errno));
    for (const int file : ends) close(file);
    return;
  }
  if (child == 0) {
    close(ends[0]);
    ask(plugin);
    write_all(ends[1], told(plugin));
    _exit(0);  // what the parent has set up is the parent's to end
  }
  close(ends[1]);
  const std::string all = read_for(ends[0], time);
  close(ends[0]);
  constexpr long kTexts = 3;
  const bool whole = std::ranges::count(all, '\0') == kTexts;
  if (!whole) kill(child, SIGKILL);  // or it has ended
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (whole) return take(all, plugin);
  plugin.problem = end_text(status);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
    plugin.problem =
        text("does not tell its devices within ", time.count(), " s; is its driver well?");
}

}  // namespace tessera
