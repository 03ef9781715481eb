#pragma once
/// Into how many parts something can be cut, for messages.

#include <cstdint>
#include <functional>
#include <string>

namespace tessera {

/// "1, 2, 4, 8": the divisors of n, those only for which `fits` holds where it is given; at most
/// 12, the largest one among them.
std::string divisors(std::int64_t n, const std::function<bool(std::int64_t)>& fits = {});

}  // namespace tessera
