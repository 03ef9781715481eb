#include "tessera/apps/output_relay.h"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace tessera {

pollfd OutputRelay::awaited() const {
  if (holds()) return {to_file_, POLLOUT, 0};
  return {open_ ? from_ : -1, POLLIN, 0};
}

bool OutputRelay::pass() {
  if (holds()) {
    // A pipe that is ready takes so many bytes without waiting.
    const std::size_t count = std::min<std::size_t>(held_.size(), PIPE_BUF);
    to_.write(held_.data(), static_cast<std::streamsize>(count)).flush();
    held_.erase(0, to_ ? count : held_.size());
    return true;
  }
  if (!open_) return false;
  std::array<char, 1 << 16> buffer;
  const ssize_t got = read(from_, buffer.data(), buffer.size());
  if (got < 0) return errno == EINTR;
  open_ = got > 0;
  if (to_) held_.assign(buffer.data(), static_cast<std::size_t>(got));
  return true;
}

void OutputRelay::drop() {
  to_.setstate(std::ios::badbit);
  held_.clear();
}

}  // namespace tessera
