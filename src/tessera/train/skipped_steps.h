#pragma once
/// What is told of steps that were skipped, because the loss or a gradient was inf or nan.

#include <cstdint>
#include <string>

#include "tessera/config/config.h"
#include "tessera/train/callbacks.h"

namespace tessera {

/// The error of a run that ends in `bad` of them in a row, of which the last `hopeless` had no loss
/// scale that could fall; `how_to_go_on` are flags.
[[noreturn]] void fail_of_skipped(const RunConfig& config, const StepRecord& last, std::int64_t bad,
                                  std::int64_t hopeless, const std::string& how_to_go_on);

/// A run that ends in skipped steps may have learnt nothing since, or have parameters that are no
/// good.
std::string skipped_end_text(const RunConfig& config, std::int64_t step, std::int64_t bad);

}  // namespace tessera
