#pragma once
/// Fuzz targets: what each parser promises of any input, from libFuzzer or from driver.cpp.
///
/// A parser accepts an input, or refuses it with an Error that its user can fix. All else is a
/// finding: another exception, a broken promise between our parts, a crash, a hang, a sanitizer's
/// report, more memory than the target allows, or printed text that does not read back.

#include <cstdint>
#include <string_view>

#include "tessera/base/error.h"

namespace tessera::fuzz {

/// One per program; each file in targets/ defines it.
struct Target {
  /// Most heap bytes that an input may hold at a time: so many, and so many per byte of its own.
  std::int64_t heap_bytes, heap_bytes_per_byte;
  /// Returns where the input is accepted, throws Error where it is refused.
  void (*run)(std::string_view input);
};
extern const Target kTarget;

/// What follows once an input was accepted. Here an Error is a finding too.
template <typename Then>
void then(const Then& what_must_hold) {
  try {
    what_must_hold();
  } catch (const Error& error) {
    throw Broken(text("after the input was accepted: ", error.what()));
  }
}

/// How inputs fared so far.
struct Tally {
  std::int64_t accepted = 0, refused = 0, peak_heap_bytes = 0;
};
const Tally& tally();

}  // namespace tessera::fuzz

/// Runs kTarget on one input; ends the process at a finding. The name is libFuzzer's.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
