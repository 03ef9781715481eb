#pragma once
/// What a child writes to a pipe, passed on to a stream of ours.

#include <poll.h>

#include <ostream>
#include <string>

namespace tessera {

/// Never waits for the reader of `to`, so that whoever polls can go on with other work. Where `to`
/// takes no more, the rest is read all the same and dropped: a child that nobody listens to runs
/// on.
class OutputRelay {
 public:
  /// `from` does not block. `to` writes to the file `to_file`.
  OutputRelay(int from, std::ostream& to, int to_file) : from_(from), to_(to), to_file_(to_file) {}

  /// What to poll for before the next call of pass.
  pollfd awaited() const;
  /// Reads some bytes, or writes some of those read before. False: there was nothing to do.
  bool pass();
  /// Bytes wait for the reader of `to`.
  bool holds() const { return !held_.empty(); }
  /// Drops what waits, and all that comes: `to` is bad from now on.
  void drop();

 private:
  int from_;
  std::ostream& to_;
  int to_file_;
  std::string held_;
  bool open_ = true;
};

}  // namespace tessera
