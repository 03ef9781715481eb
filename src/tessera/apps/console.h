#pragma once
/// Where a command writes: handed down, so that tests can listen.

#include <ostream>

namespace tessera {

struct Console {
  std::ostream& out;
  std::ostream& err;
  bool terminal = false;  // of `out`: a line may be written over
  int columns = 80;       // of the terminal
};

/// Standard output and error of this process.
Console system_console();

}  // namespace tessera
