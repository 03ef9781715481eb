#pragma once
/// What a command is given: its arguments, and where it writes, handed down so that tests can
/// listen.

#include <ostream>
#include <string>
#include <vector>

namespace tessera {

using Arguments = std::vector<std::string>;

struct Console {
  std::ostream& out;
  std::ostream& err;
  bool terminal = false;  // of `out`: a line may be written over
  int columns = 80;       // of the terminal

  /// All of it goes elsewhere.
  Console with(std::ostream& elsewhere) const { return {elsewhere, elsewhere, false, columns}; }
};

/// Standard output and error of this process.
Console system_console();

/// Standard output takes no more.
struct OutputFailed {};
/// True where standard output is a pipe whose reader has ended, as in `tessera help | head -1`.
bool output_is_closed();

}  // namespace tessera
