#pragma once
/// What is wrong with a run, gathered so that the user hears all of it at once.

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/field_problems.h"

namespace tessera {

class Problems {
 public:
  /// Names of the fields whose values a problem judges.
  using Fields = std::vector<std::string_view>;

  /// What is in the list already is not added again: several checks may meet the same problem. What
  /// judges a field that was refused is no more than a consequence, and is not added either.
  void add(const Error& problem, const Fields& judged = {});
  void add(const std::string& what, Fault fault = Fault::Usage) { add(Error(fault, what)); }
  void add(const std::string& what, const Fields& judged) {
    add(Error(Fault::Usage, what), judged);
  }
  /// With `before` in front of each.
  void add(const FieldProblems& problems, std::string_view before = "");
  /// The field was given a value that it does not take: it has another one now.
  void refuse(std::string_view field) { refused_.emplace(field); }
  /// Runs `check`; an Error that it throws becomes a problem. Returns whether there was none.
  template <typename Check>
  bool gather(Check&& check, const Fields& judged = {}) {
    try {
      check();
      return true;
    } catch (const Error& error) {
      if (error.fault() == Fault::Internal) throw;  // a bug of ours, whatever it went through
      add(error, judged);
      return false;
    }
  }

  /// The same for what all else depends on: if it fails, nothing that is added later is a finding.
  template <typename Check>
  bool gather_first(Check&& check) {
    closed_ = !gather(std::forward<Check>(check));
    return !closed_;
  }

  bool empty() const { return list_.empty(); }
  const std::vector<Error>& list() const { return list_; }
  /// Errors: one that says all there is, if there is any, as far as a screen has room; its fault is
  /// that of the first.
  void raise() const;

 private:
  std::vector<Error> list_;
  std::set<std::string, std::less<>> known_;  // the texts of them
  std::set<std::string, std::less<>> refused_;
  bool closed_ = false;
};

}  // namespace tessera
