#pragma once
/// Counts the allocations of this program: malloc and its kin are replaced by ones that look who
/// called. Whatever allocates ends there, operator new of the C++ library included.

#include <cstdint>
#include <string>

namespace tessera::testing {

struct Allocations {
  std::int64_t ours = 0;     // of Tessera's own code, also where the C++ library did it for us
  std::int64_t library = 0;  // inside another library that Tessera called: oneDNN's control blocks
};

/// What all threads allocated since counting began. Off at start.
Allocations allocations();
void count_allocations(bool on);

/// Where our own first came from, function by function, for messages.
std::string first_stacks();

}  // namespace tessera::testing
