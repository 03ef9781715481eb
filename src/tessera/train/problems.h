#pragma once
/// What is wrong with a run, gathered so that the user hears all of it at once.

#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.h"

namespace tessera {

class Problems {
 public:
  /// What is in the list already is not added again: several checks may meet the same problem.
  void add(const Error& problem);
  void add(const std::string& what, Fault fault = Fault::Usage) { add(Error(fault, what)); }
  /// Runs `check`; an Error that it throws becomes a problem. Returns whether there was none.
  template <typename Check>
  bool gather(Check&& check) {
    try {
      check();
      return true;
    } catch (const Broken&) {
      throw;
    } catch (const Error& error) {
      add(error);
      return false;
    }
  }

  bool empty() const { return list_.empty(); }
  const std::vector<Error>& list() const { return list_; }
  /// Errors: one that says all there is, if there is any; its fault is that of the first.
  void raise() const;

 private:
  std::vector<Error> list_;
};

}  // namespace tessera
