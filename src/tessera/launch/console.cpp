#include "tessera/launch/console.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

namespace tessera {

Console system_console() {
  // mpirun gives its ranks a terminal of their own, which nobody looks at.
  const bool ours = std::getenv("OMPI_COMM_WORLD_RANK") == nullptr;
  Console console{std::cout, std::cerr, ours && isatty(STDOUT_FILENO) == 1, 80};
  winsize size = {};
  if (console.terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    console.columns = size.ws_col;
  return console;
}

bool output_is_closed() {
  pollfd out{STDOUT_FILENO, 0, 0};
  return ::poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

}  // namespace tessera
