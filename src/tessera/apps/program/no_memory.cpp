/// What programs of Tessera are linked with beside the library: what they do where memory runs out.

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "tessera/apps/command.h"
#include "tessera/launch/out_of_memory.h"

// mimalloc, which this program is linked with, ends it where memory runs out. These throw, in all
// of the program and its libraries, and say how much was asked for. The forms for arrays call them.
void* operator new(std::size_t bytes) {
  if (void* const out = std::malloc(std::max<std::size_t>(bytes, 1))) return out;
  throw tessera::OutOfMemory(bytes);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto unit = static_cast<std::size_t>(alignment);
  if (void* const out = std::aligned_alloc(unit, (std::max(bytes, unit) + unit - 1) / unit * unit))
    return out;
  throw tessera::OutOfMemory(bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

/// What libraries call in place of the system's: the end of `main` does not come by here. Of all,
/// libgomp alone ends a program because it lacks memory.
extern "C" void exit(int code) noexcept {
  Dl_info caller{};
  const bool known =
      dladdr(__builtin_return_address(0), &caller) != 0 && caller.dli_fname != nullptr;
  if (code == EXIT_FAILURE && known && std::strstr(caller.dli_fname, "libgomp") != nullptr)
    tessera::end_for_library();
  reinterpret_cast<void (*)(int)>(dlsym(RTLD_NEXT, "exit"))(code);
  std::abort();
}
