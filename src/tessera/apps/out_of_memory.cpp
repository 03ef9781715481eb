#include "tessera/apps/out_of_memory.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tessera/base/error.h"

namespace tessera {

namespace {

std::atomic<bool> exits_are_ours = true;

/// Other threads still run: nothing here waits for them, and nothing asks for memory.
void at_exit() {
  if (exits_are_ours) return;
  constexpr std::string_view kText =
      "error: out of memory: a library ended the program (its words are above); lower "
      "--micro-batch-size or --threads, or raise the memory limit (ulimit -v, cgroup)\n";
  if (write(STDERR_FILENO, kText.data(), kText.size()) < 0) {  // there is nobody to tell
  }
  _exit(static_cast<int>(Fault::Resource));
}

}  // namespace

OutOfMemory::OutOfMemory(std::size_t bytes) {
  std::snprintf(text_.data(), text_.size(), "out of memory: the system refused %zu more bytes",
                bytes);
}

void watch_for_exits_of_libraries() {
  exits_are_ours = false;
  std::atexit(at_exit);
}

int end_by_itself(int code) {
  exits_are_ours = true;
  return code;
}

}  // namespace tessera
