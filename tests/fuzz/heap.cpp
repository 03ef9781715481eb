#include "fuzz/heap.h"

#include <malloc.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <new>

namespace tessera::fuzz {

namespace {

// Global because operator new is; atomic because libFuzzer has a thread of its own.
constexpr std::int64_t kNoBound = std::numeric_limits<std::int64_t>::max();
constinit std::atomic<std::int64_t> held = 0, most_held = 0, bound = kNoBound;

void count(std::int64_t bytes) {
  const std::int64_t now = held.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (now > most_held.load(std::memory_order_relaxed))
    most_held.store(now, std::memory_order_relaxed);
}

void require_room(std::size_t size) {
  const std::int64_t most = bound.load(std::memory_order_relaxed);
  if (most == kNoBound) return;
  const std::int64_t room = most - held.load(std::memory_order_relaxed);
  if (room >= 0 && size <= static_cast<std::size_t>(room)) return;
  bound.store(kNoBound, std::memory_order_relaxed);  // what reports this may allocate
  std::fprintf(stderr, "FINDING: heap: %zu bytes are wanted where %lld are left to the input\n",
               size, static_cast<long long>(room));
  std::abort();
}

void* take(std::size_t size, std::size_t alignment) {
  require_room(size);
  void* out = alignment == 0 ? std::malloc(size == 0 ? 1 : size) : nullptr;
  if (alignment != 0 && ::posix_memalign(&out, alignment, size) != 0) out = nullptr;
  if (out == nullptr) throw std::bad_alloc();
  count(static_cast<std::int64_t>(::malloc_usable_size(out)));
  return out;
}

void give(void* at) {
  if (at == nullptr) return;
  count(-static_cast<std::int64_t>(::malloc_usable_size(at)));
  std::free(at);
}

}  // namespace

HeapBound::HeapBound(std::int64_t bytes) : before_(held) {
  most_held = before_;
  bound = before_ + bytes;
}

HeapBound::~HeapBound() { bound = kNoBound; }

std::int64_t HeapBound::peak() const { return most_held - before_; }

}  // namespace tessera::fuzz

using tessera::fuzz::give;
using tessera::fuzz::take;

// All forms: a sanitizer has its own of those that are missing here, and would see them mixed.
void* operator new(std::size_t size) { return take(size, 0); }
void* operator new[](std::size_t size) { return take(size, 0); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return take(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return take(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return take(size, 0); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return take(size, 0); }
void operator delete(void* at) noexcept { give(at); }
void operator delete[](void* at) noexcept { give(at); }
void operator delete(void* at, std::size_t) noexcept { give(at); }
void operator delete[](void* at, std::size_t) noexcept { give(at); }
void operator delete(void* at, std::align_val_t) noexcept { give(at); }
void operator delete[](void* at, std::align_val_t) noexcept { give(at); }
void operator delete(void* at, std::size_t, std::align_val_t) noexcept { give(at); }
void operator delete[](void* at, std::size_t, std::align_val_t) noexcept { give(at); }
void operator delete(void* at, const std::nothrow_t&) noexcept { give(at); }
void operator delete[](void* at, const std::nothrow_t&) noexcept { give(at); }
