#pragma once
/// Ctrl-C as a request to stop what is under way, but not the command.

namespace tessera {

/// While it lives, the first SIGINT is noted, and a second one ends the process as it always does.
/// A SIGINT that is ignored stays so. There is one at a time.
class CaughtInterrupt {
 public:
  CaughtInterrupt();
  ~CaughtInterrupt();
  CaughtInterrupt(const CaughtInterrupt&) = delete;
  CaughtInterrupt& operator=(const CaughtInterrupt&) = delete;
  bool asked() const;

 private:
  bool caught_ = false;
};

}  // namespace tessera
