#pragma once
/// Optimizers from JSON, with the names of the members of OptimizerConfig and ScheduleConfig.

#include "tessera/c_api/call_fields.h"
#include "tessera/nn/optimizer.h"

namespace tessera {

/// {"kind": "adamw", "lr": 0.001, "schedule": "constant", "groups": [{"paths": ["*.bias"],
/// "weight_decay": 0}]}. Errors: names that are not there; what problems() finds.
OptimizerConfig optimizer_of(CallFields fields);

}  // namespace tessera
