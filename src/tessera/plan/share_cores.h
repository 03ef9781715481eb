#pragma once
/// Pipelines whose devices outnumber the cores.

#include <cstdint>
#include <vector>

#include "tessera/schedule/pipeline.h"

namespace tessera {

/// Pipeline::play where `sharing` devices take turns at a core, and `options.cost` holds while all
/// of them work. While stages wait, others are as much faster as cores are free, up to `sharing`
/// times: at each time all that work have the same speed.
std::vector<Spans> play_on_cores(const Pipeline& pipeline, const PlayOptions& options,
                                 std::int64_t sharing);

}  // namespace tessera
