#pragma once
/// How fast a plan trains, as predicted.

#include <optional>
#include <string>

#include "tessera/planner/planner.h"

namespace tessera {

struct PlanSpeed {
  double tokens_per_s = 0, samples_per_s = 0;
  double peak_flops_per_s = 0;  // of a device, by products of the run's floats
  /// The model's FLOP, without what is computed again, as a share of what all devices of the plan
  /// could do at their peak. None: nobody told what they can do.
  std::optional<double> mfu = {};
};
PlanSpeed speed_of(const PlanAnswer& answer, const PlanQuestion& question);

/// "known error of these times: 3.0 % on average, ..."
std::string known_error_text(const PlanQuestion& question);

}  // namespace tessera
