#pragma once
/// Text that many share: a copy costs nothing, the text never changes.

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace tessera {

class Name {
 public:
  Name() = default;
  Name(std::string line) {
    if (!line.empty()) line_ = std::make_shared<const std::string>(std::move(line));
  }
  Name(std::string_view line) : Name(std::string(line)) {}
  Name(const char* line) : Name(std::string(line)) {}

  bool empty() const { return line_ == nullptr; }
  std::string str() const { return std::string(*this); }
  operator std::string_view() const {
    return line_ ? std::string_view(*line_) : std::string_view();
  }

  friend bool operator==(const Name& a, const Name& b) {
    return a.line_ == b.line_ || std::string_view(a) == std::string_view(b);
  }
  friend bool operator==(const Name& a, const char* b) { return std::string_view(a) == b; }

 private:
  std::shared_ptr<const std::string> line_;  // null: empty
};

}  // namespace tessera
