#include "tessera/apps/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <iostream>

namespace tessera {

Console system_console() {
  Console console{std::cout, std::cerr, isatty(STDOUT_FILENO) == 1, 80};
  winsize size = {};
  if (console.terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    console.columns = size.ws_col;
  return console;
}

}  // namespace tessera
