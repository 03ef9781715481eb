#pragma once
/// Variables of a process, read with words for what is wrong with them.

#include <functional>
#include <optional>
#include <string>

namespace tessera::process {

class Variables {
 public:
  explicit Variables(const std::function<const char*(const char* name)>& look_up)
      : look_up_(look_up) {}
  /// False where it is empty too.
  bool has(const char* name) const;
  /// Empty where it is not set.
  std::string text_of(const char* name) const;
  /// A whole number from `least` to `most`; nothing where it is not set. Errors: Fault::Usage.
  std::optional<int> number(const char* name, int least, int most) const;
  /// For variables that are not ours to judge: 0 where it is not set or no number; what an int does
  /// not hold is the nearest that it does.
  int about(const char* name) const;
  /// Of a number of up to 64 bits, as those of Slurm's jobs; 0 where it is not set or no number.
  int remainder(const char* name, int divisor) const;
  /// "RANK is '3'"
  std::string shown(const char* name) const;

 private:
  const std::function<const char*(const char* name)>& look_up_;
};

/// The hosts of a Slurm node list begin with this one: "n[03-05,9],login" has n03. Errors:
/// Fault::Usage: it is none.
std::string first_host(const std::string& list);

}  // namespace tessera::process
