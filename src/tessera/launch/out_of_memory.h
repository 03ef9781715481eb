#pragma once
/// What the command says when memory runs out.

#include <array>
#include <cstddef>
#include <new>

namespace tessera {

/// Thrown by the command's `operator new` (apps/program/no_memory.cpp), where the libraries' own
/// may end the program without a word.
class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(std::size_t bytes);
  /// "out of memory: the system refused 4096 more bytes": made without asking for memory.
  const char* what() const noexcept override { return text_.data(); }

 private:
  std::array<char, 80> text_{};
};

/// Ends the process for a library that called exit(1), as libgomp does behind a line of its own
/// where it lacks memory: with a message and the exit code of a lack. No destructor runs, as other
/// threads still work.
[[noreturn]] void end_for_library();

}  // namespace tessera
