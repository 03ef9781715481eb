#pragma once
/// Into how many parts something can be cut.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tessera {

/// All divisors of n, in rising order. n: at least 1.
std::vector<std::int64_t> divisors_of(std::int64_t n);

/// "1, 2, 4, 8": the divisors of n, those only for which `fits` holds where it is given; at most
/// 12, the largest one among them.
std::string divisors(std::int64_t n, const std::function<bool(std::int64_t)>& fits = {});

}  // namespace tessera
