#pragma once
/// An input as numbers and texts; what is behind its end is zeros.

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace tessera::fuzz {

class Bytes {
 public:
  explicit Bytes(std::string_view input) : left_(input) {}

  bool empty() const { return left_.empty(); }
  template <typename T>
  T take() {
    T out{};
    const std::string_view bytes = next(sizeof out);
    if (!bytes.empty()) std::memcpy(&out, bytes.data(), bytes.size());
    return out;
  }
  int below(int end) { return take<std::uint8_t>() % end; }
  std::string_view text() { return next(take<std::uint8_t>()); }
  std::string_view rest() { return next(left_.size()); }

 private:
  std::string_view next(std::size_t size) {
    const std::string_view out = left_.substr(0, size);
    left_.remove_prefix(out.size());
    return out;
  }
  std::string_view left_;
};

}  // namespace tessera::fuzz
