#pragma once
/// The same work on each of many things, by all cores.

#include <cstdint>
#include <functional>

namespace tessera {

/// Calls work(0) to work(count - 1) in any order, several at a time. All are called; then the error
/// of the first in order that failed is thrown, so that it does not depend on the cores.
void in_threads(std::int64_t count, const std::function<void(std::int64_t)>& work);

}  // namespace tessera
