#pragma once
/// The room `base`: errors, text, Unicode, hashes, random numbers by counter.
/// For: what any room may need that knows neither tensors nor files.
/// Not for: what one room alone needs, which stays there; there is no room of odds and ends.
/// Rejected: libraries that Debian does not package. What is small is written here (MD5, Philox),
/// what is not comes from a package (xxHash, utf8proc): docs/internals/decisions.md, docs/internals/dependencies.md.
///
/// Errors: what, where, and what to do.
///
/// Input from outside fails with `Error` (the user can fix it); a broken promise between our own
/// parts fails with `Broken` through `check` (we must fix it). Each layer may add one line of what
/// it was doing and rethrow.

#include <initializer_list>
#include <stdexcept>
#include <string>

#include "tessera/base/text.h"

namespace tessera {

/// What kind of input was at fault; the value is the exit code (docs/reference/errors.md).
enum class Fault {
  Usage = 2,       // a flag, a configuration file, a model written wrongly
  Data = 3,        // a text, a dataset, a token file
  Checkpoint = 4,  // a checkpoint or model file
  Resource = 5,    // disk, memory, permission
  Numerics = 6,    // not-a-number, divergence
  Peer = 7,        // another rank died, hung or disagrees
  Internal = 8,    // a bug of ours
};

class Error : public std::runtime_error {
 public:
  Error(Fault fault, const std::string& message);
  Fault fault() const { return fault_; }

  /// The same error with one more line below it: where it happened.
  Error with(const std::string& line) const;

 private:
  Fault fault_;
};

/// A promise between our own parts that does not hold: a bug, with what to report.
class Broken : public Error {
 public:
  explicit Broken(const std::string& message);
};

[[noreturn]] void fail_with(Fault fault, std::initializer_list<TextPart> parts);

template <typename... Parts>
[[noreturn]] void fail(Fault fault, const Parts&... parts) {
  fail_with(fault, {TextPart(parts)...});
}

/// Input from outside must satisfy `ok`; else an Error that reads like a sentence: what, both
/// values, what to do.
template <typename... Parts>
void require(bool ok, const Parts&... parts) {
  if (!ok) [[unlikely]]
    fail_with(Fault::Usage, {TextPart(parts)...});
}

/// Our own parts must satisfy `ok`; else Broken.
template <typename... Parts>
void check(bool ok, const Parts&... parts) {
  if (!ok) [[unlikely]]
    fail_with(Fault::Internal, {TextPart(parts)...});
}

}  // namespace tessera
