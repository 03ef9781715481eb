#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "tessera/apps/command.h"

namespace {

/// A file that is opened while a standard stream is closed would get its number, and be written to
/// in its place. Writing to standard output stays an error.
void open_closed_streams() {
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(file, F_GETFD) < 0) open("/dev/null", file == STDERR_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace

int main(int count, char** values) {
  open_closed_streams();
  // A pipe that nobody reads and a file that may not grow are errors of a write, which whoever
  // writes sees: they do not end a run that has something to save.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  tessera::Console console = tessera::system_console();
  return tessera::run_command({values + 1, values + count}, console);
}
