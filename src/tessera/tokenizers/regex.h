#pragma once
/// Patterns of tokenizer files: PCRE2 behind a class (the package libpcre2-dev).

#include <memory>
#include <string>
#include <string_view>

#include "tessera/tokenizers/json_part.h"
#include "tessera/tokenizers/split.h"

namespace tessera::tokenizer {

/// A compiled pattern, of Unicode text. Several threads may use it.
class Regex {
 public:
  /// Errors: Fault::Data: what the engine says of the pattern, and where; `part` is its place.
  Regex(const std::string& pattern, const JsonPart& part);
  ~Regex();
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

  /// The matches in `text`, which is UTF-8, and what is between them.
  /// Errors: Fault::Data: more steps than kMostSteps for a match.
  void find(std::string_view text, Spans& out) const;

 private:
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;
  std::string pattern_;
};

/// What {"String": ...} or {"Regex": ...} finds. An empty string finds nothing.
using Finder = std::function<void(std::string_view text, Spans& out)>;
Finder make_finder(const JsonPart& part, std::string_view key = "pattern");

/// The matches of a string.
void find_string(std::string_view text, std::string_view wanted, Spans& out);

}  // namespace tessera::tokenizer
