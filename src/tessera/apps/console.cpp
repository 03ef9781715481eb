#include "tessera/apps/console.h"

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

}  // namespace tessera
