/// Starts processes of any program as `tessera launch --backend tcp` starts those of Tessera.
///
/// Run:  start_ranks N PROGRAM ARGUMENT...
///       start_ranks --port               prints a port that is free now

#include "tessera/launch/start_ranks.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tessera/comm/process/tcp/sockets.h"

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--port")
    return std::printf("%d\n", local_end(tessera::process::listen_here()).port()) < 0;
  if (argc < 3) {
    std::fprintf(stderr, "usage: start_ranks N PROGRAM ARGUMENT...\n");
    return 2;
  }
  return tessera::start_ranks(std::atoi(argv[1]), {argv + 2, argv + argc});
}
