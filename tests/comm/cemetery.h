#pragma once
/// Memory of ranks that fail.

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "tessera/base/error.h"

namespace tessera {

/// Memory that ends the program where it is touched after it was freed: its pages stay, without
/// access, until the end of the cemetery.
class Cemetery {
 public:
  ~Cemetery() {
    for (const auto& [pages, bytes] : dead_) munmap(pages, bytes);
  }
  float* give(std::size_t bytes) {
    void* const out =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(out != MAP_FAILED, "no memory");
    return static_cast<float*>(out);
  }
  void take(float* pages, std::size_t bytes) {
    mprotect(pages, bytes, PROT_NONE);
    const std::scoped_lock lock(mutex_);
    dead_.emplace_back(pages, bytes);
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<void*, std::size_t>> dead_;
};

class Buffer {
 public:
  Buffer(Cemetery& cemetery, std::int64_t count)
      : cemetery_(cemetery),
        bytes_(static_cast<std::size_t>(4 * count)),
        pages_(cemetery.give(bytes_)) {}
  ~Buffer() { cemetery_.take(pages_, bytes_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  float* data() { return pages_; }

 private:
  Cemetery& cemetery_;
  std::size_t bytes_;
  float* pages_;
};

}  // namespace tessera
