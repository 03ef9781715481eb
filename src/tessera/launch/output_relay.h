#pragma once
/// What a child writes to a pipe, passed on to a standard stream of ours.

#include <poll.h>

#include <functional>
#include <ostream>
#include <string>
#include <string_view>

namespace tessera {

/// Never waits for the reader of `to`, so that whoever polls can go on with other work. Where `to`
/// takes no more, the rest is read all the same and dropped: a child that nobody listens to runs
/// on.
class OutputRelay {
 public:
  /// What to pass on of bytes that have been read.
  using Filter = std::function<std::string(std::string_view)>;

  /// `from` does not block. `to` has written all it holds, and writes to the file `to_file`.
  OutputRelay(int from, std::ostream& to, int to_file, Filter filter = {});
  ~OutputRelay();
  OutputRelay(const OutputRelay&) = delete;
  OutputRelay& operator=(const OutputRelay&) = delete;

  /// What to poll for before the next call of pass.
  pollfd awaited() const;
  /// Reads some bytes, or writes some of those read before. False: nothing could be done now.
  bool pass();
  /// Bytes wait for the reader of `to`.
  bool holds() const { return !held_.empty(); }
  /// Words of our own, after all that was read.
  void add(std::string_view words);
  /// Drops what waits, and all that comes: `to` is bad from now on.
  void drop();

 private:
  int from_;
  std::ostream& to_;
  int to_file_, reopened_;  // the same file, opened so that no write waits; -1: it cannot be
  Filter filter_;
  std::string held_;
  bool open_ = true;
};

}  // namespace tessera
