#pragma once
/// What `tessera plan` prints first: what a user needs to decide whether to train so.
/// docs/guides/plan.md explains it line by line.

#include <string>

#include "tessera/report/report.h"

namespace tessera {

/// At most some 16 lines. `config` is complete, with its choices.
std::string plan_summary(const PlanReport& report, const RunConfig& config);

}  // namespace tessera
