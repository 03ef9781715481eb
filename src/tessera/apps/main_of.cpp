/// What a process is set up with before it runs a command.

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <ostream>

#include "tessera/apps/command.h"

namespace tessera {

namespace {

/// A file that is opened while a standard stream is closed would get its number, and be written to
/// in its place. Writing to standard output stays an error.
void open_closed_streams() {
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(file, F_GETFD) < 0) open("/dev/null", file == STDERR_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace

void set_up_process() {
  open_closed_streams();
  // A pipe that nobody reads and a file that may not grow are errors of a write, which whoever
  // writes sees: they do not end a run that has something to save.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

int main_of(int count, char** values, const OwnFamilies& families) {
  return main_of([&](Console& console) {
    return run_command({values + 1, values + count}, console, families);
  });
}

int main_of(const std::function<int(Console& console)>& work) {
  set_up_process();
  Console console = system_console();
  const int code = exit_code_of(console, [&] { return work(console); });
  if (is_left_behind()) {
    for (std::ostream* out : {&console.out, &console.err}) out->flush();
    std::fflush(nullptr);
    _exit(code);
  }
  return code;
}

}  // namespace tessera
