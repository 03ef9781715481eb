#include "tessera/launch/output_relay.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "tessera/base/text.h"

namespace tessera {

namespace {

/// A terminal or pipe, opened once more: a flag set at `file` would be set for all who share it,
/// such as the shell. -1: it is something else, or cannot be opened.
int open_without_waiting(int file) {
  struct stat about = {};
  if (isatty(file) == 0 && (fstat(file, &about) != 0 || !S_ISFIFO(about.st_mode))) return -1;
  return open(text("/proc/self/fd/", file).c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

}  // namespace

OutputRelay::OutputRelay(int from, std::ostream& to, int to_file, Filter filter)
    : from_(from),
      to_(to),
      to_file_(to_file),
      reopened_(open_without_waiting(to_file)),
      filter_(std::move(filter)) {}

OutputRelay::~OutputRelay() {
  if (reopened_ >= 0) close(reopened_);
}

pollfd OutputRelay::awaited() const {
  if (holds()) return {reopened_ >= 0 ? reopened_ : to_file_, POLLOUT, 0};
  return {open_ ? from_ : -1, POLLIN, 0};
}

bool OutputRelay::pass() {
  if (holds()) {
    // A pipe that is ready takes so many bytes without waiting, even one that was not reopened.
    const std::size_t count = std::min<std::size_t>(held_.size(), PIPE_BUF);
    const ssize_t written = write(awaited().fd, held_.data(), count);
    if (written < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (written < 0)
      drop();
    else
      held_.erase(0, static_cast<std::size_t>(written));
    return true;
  }
  if (!open_) return false;
  std::array<char, 1 << 16> buffer;
  const ssize_t got = read(from_, buffer.data(), buffer.size());
  if (got < 0) return errno == EINTR;
  open_ = got > 0;
  const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
  add(filter_ ? filter_(bytes) : std::string(bytes));
  return true;
}

void OutputRelay::add(std::string_view words) {
  if (to_) held_ += words;
}

void OutputRelay::drop() {
  to_.setstate(std::ios::badbit);
  held_.clear();
}

}  // namespace tessera
