#include "allocation/counting.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <string_view>

extern "C" {  // what glibc's own names stand for
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
}

namespace tessera::testing {

namespace {

constexpr int kDepth = 64;
struct Stack {
  std::array<void*, kDepth> frames{};
  int size = 0;
};
constexpr std::int64_t kKept = 4;

constinit std::atomic<bool> counting{false};
constinit std::atomic<std::int64_t> ours{0}, library{0};
constinit std::array<Stack, kKept> kept;
constinit thread_local bool looking = false;  // what looking at the stack allocates is not counted

/// The addresses of the program itself and of what calls malloc for others: the C and C++ libraries
/// and the loader. Any other file is a library that Tessera called.
struct Runtime {
  struct Range {
    std::uintptr_t begin, end;
  };
  std::array<Range, 16> ranges{};
  std::size_t size = 0;

  Runtime() { dl_iterate_phdr(add, this); }
  bool contains(std::uintptr_t address) const {
    return std::any_of(ranges.begin(), ranges.begin() + static_cast<std::ptrdiff_t>(size),
                       [&](const Range& r) { return r.begin <= address && address < r.end; });
  }

 private:
  static int add(dl_phdr_info* file, std::size_t, void* self) {
    Runtime& out = *static_cast<Runtime*>(self);
    const std::string_view name = file->dlpi_name;  // empty: the program
    const auto is = [&](std::string_view part) { return name.find(part) != name.npos; };
    if (!name.empty() && !is("libc.so") && !is("libstdc++.so") && !is("/ld-")) return 0;
    for (int i = 0; i < file->dlpi_phnum && out.size < out.ranges.size(); ++i) {
      const auto& part = file->dlpi_phdr[i];
      if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
      const std::uintptr_t begin = file->dlpi_addr + part.p_vaddr;
      out.ranges[out.size++] = {begin, begin + part.p_memsz};
    }
    return 0;
  }
};
const Runtime& runtime() {
  static const Runtime known;
  return known;
}

/// Walks outwards. An allocation with a library's frame on its stack is the library's: Tessera's
/// code is never called back from one.
struct Walk {
  Stack stack;
  bool library = false;

  static _Unwind_Reason_Code step(_Unwind_Context* frame, void* self) {
    Walk& walk = *static_cast<Walk*>(self);
    const std::uintptr_t at = _Unwind_GetIP(frame);
    walk.library = at != 0 && !runtime().contains(at);
    if (walk.library || walk.stack.size == kDepth) return _URC_END_OF_STACK;
    walk.stack.frames[static_cast<std::size_t>(walk.stack.size++)] = reinterpret_cast<void*>(at);
    return _URC_NO_REASON;
  }
};

void note() {
  if (!counting.load(std::memory_order_relaxed) || looking) return;
  looking = true;
  Walk walk;
  _Unwind_Backtrace(Walk::step, &walk);
  if (walk.library) {
    ++library;
  } else if (const std::int64_t n = ours++; n < kKept) {
    kept[static_cast<std::size_t>(n)] = walk.stack;
  }
  looking = false;
}

std::string name_of(const void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0 || info.dli_sname == nullptr) return "?";
  int status = 0;
  char* const plain = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status);
  const std::string out = status == 0 ? plain : info.dli_sname;
  std::free(plain);
  return out;
}

}  // namespace

Allocations allocations() { return {ours, library}; }

void count_allocations(bool on) {
  if (on) {
    Walk first;
    _Unwind_Backtrace(Walk::step, &first);  // makes what it needs
    ours = library = 0;
  }
  counting = on;
}

std::string first_stacks() {
  std::string out;
  for (std::int64_t n = 0; n < std::min(kKept, ours.load()); ++n) {
    const Stack& stack = kept[static_cast<std::size_t>(n)];
    out += "allocation " + std::to_string(n + 1) + ":\n";
    for (int i = 2; i < stack.size; ++i)
      out += "    " + name_of(stack.frames[static_cast<std::size_t>(i)]) + "\n";
  }
  return out;
}

}  // namespace tessera::testing

using tessera::testing::note;

extern "C" {

void* malloc(std::size_t size) {
  note();
  return __libc_malloc(size);
}

void* calloc(std::size_t count, std::size_t size) {
  note();
  return __libc_calloc(count, size);
}

void* realloc(void* memory, std::size_t size) {
  note();
  return __libc_realloc(memory, size);
}

void* memalign(std::size_t alignment, std::size_t size) {
  note();
  return __libc_memalign(alignment, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
  note();
  return __libc_memalign(alignment, size);
}

int posix_memalign(void** out, std::size_t alignment, std::size_t size) {
  note();
  *out = __libc_memalign(alignment, size);
  return *out == nullptr ? ENOMEM : 0;
}

}  // extern "C"
