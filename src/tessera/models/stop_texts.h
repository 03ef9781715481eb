#pragma once
/// Ends a text before the first of several stop texts, as it is written piece by piece.

#include <string>
#include <string_view>
#include <vector>

namespace tessera {

class StopTexts {
 public:
  /// None of `stops` is empty.
  explicit StopTexts(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  /// What is certain to stand before any stop; bytes that may begin one are held back.
  std::string add(std::string_view piece);
  /// What was held back, where the text ended otherwise.
  std::string rest();
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string pending_;
  bool stopped_ = false;
};

}  // namespace tessera
