#pragma once
/// Where in a template something stands, and what is wrong there.

#include <stdexcept>
#include <string>

#include "tessera/base/text.h"

namespace tessera::jinja {

struct Place {
  int line = 1, column = 1;  // from 1; columns are bytes
};

/// What is wrong, without where: whoever runs a template knows that.
class Problem : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <typename... Parts>
[[noreturn]] void bad(const Parts&... parts) {
  throw Problem(text(parts...));
}

/// The same where the place is known.
class PlacedProblem : public std::runtime_error {
 public:
  PlacedProblem(Place place, const std::string& what) : std::runtime_error(what), place_(place) {}
  Place place() const { return place_; }

 private:
  Place place_;
};

template <typename... Parts>
[[noreturn]] void bad_at(Place place, const Parts&... parts) {
  throw PlacedProblem(place, text(parts...));
}

}  // namespace tessera::jinja
