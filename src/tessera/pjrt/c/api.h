#pragma once
/// A plugin's table of calls, as its one function GetPjrtApi returns it.

#include "tessera/pjrt/c/arguments.h"

namespace tessera::pjrt::c {

struct Version {
  Head head;
  int major = 0, minor = 0;
};

struct Api {
  Head head;  // its size says how many calls there are
  Version version;
  void (*calls[kNumCalls])();  // more in newer plugins, fewer in older ones
};

/// How a call is called. Those that end an error, or read its message, return nothing.
template <typename Arguments>
using Function = Error* (*)(Arguments*);

/// Arguments with their size filled in.
template <typename Arguments>
Arguments arguments() {
  static_assert(Arguments::kSize <= sizeof(Arguments) &&
                Arguments::kSize + alignof(Arguments) > sizeof(Arguments));
  Arguments out{};
  out.head.size = Arguments::kSize;
  return out;
}

}  // namespace tessera::pjrt::c
