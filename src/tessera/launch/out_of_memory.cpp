#include "tessera/launch/out_of_memory.h"

#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "tessera/base/error.h"

namespace tessera {

OutOfMemory::OutOfMemory(std::size_t bytes) {
  std::snprintf(text_.data(), text_.size(), "out of memory: the system refused %zu more bytes",
                bytes);
}

void end_for_library() {
  constexpr std::string_view kText =
      "error: a library ended the program, most likely for lack of memory (its output is above); "
      "lower --micro-batch-size or --threads, or raise the memory limit (ulimit -v, cgroup)\n";
  if (write(STDERR_FILENO, kText.data(), kText.size()) < 0) {  // there is nobody to tell
  }
  _exit(static_cast<int>(Fault::Resource));
}

}  // namespace tessera
