#pragma once
/// What numbers the samples of a run have, in its order.

#include "tessera/config/config.h"
#include "tessera/models/task.h"

namespace tessera {

/// Of what trains.
SampleChoices sample_choices(const RunConfig& config);

/// Of what is held out, or given as valid-data.
SampleChoices valid_choices(const RunConfig& config);

/// Of test-data, all of which is measured.
SampleChoices test_choices(const RunConfig& config);

}  // namespace tessera
