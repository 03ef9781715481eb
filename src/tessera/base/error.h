#pragma once
/// Errors: what, where, and what to do.
///
/// Input from outside fails with `Error` (the user can fix it); a broken promise between our own parts fails with
/// `Broken` through `check` (we must fix it). Each layer may add one line of what it was doing and rethrow.

#include <stdexcept>
#include <string>
#include <utility>

#include "tessera/base/text.h"

namespace tessera {

/// What kind of input was at fault. The value is the exit code of the command (docs/errors.md).
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
  Error(Fault fault, std::string message) : std::runtime_error(std::move(message)), fault_(fault) {}
  Fault fault() const { return fault_; }

  /// The same error with one more line below it: where it happened.
  Error with(const std::string& line) const { return Error(fault_, std::string(what()) + "\n    " + line); }

 private:
  Fault fault_;
};

/// A promise between our own parts that does not hold: a bug, with what to report.
class Broken : public Error {
 public:
  explicit Broken(std::string message)
      : Error(Fault::Internal, "internal error: " + std::move(message) + "; please report this with the command") {}
};

template <typename... Parts>
[[noreturn]] void fail(Fault fault, const Parts&... parts) {
  throw Error(fault, text(parts...));
}

/// Input from outside must satisfy `ok`; else an Error that reads like a sentence: what, both values, what to do.
template <typename... Parts>
void require(bool ok, const Parts&... parts) {
  if (!ok) [[unlikely]] fail(Fault::Usage, parts...);
}

/// Our own parts must satisfy `ok`.
template <typename... Parts>
void check(bool ok, const Parts&... parts) {
  if (!ok) [[unlikely]] throw Broken(text(parts...));
}

}  // namespace tessera
