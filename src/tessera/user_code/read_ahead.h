#pragma once
/// Samples that are read while the step before them runs.

#include <cstdint>
#include <memory>
#include <vector>

#include "tessera/models/task.h"
#include "tessera/token_files/samples.h"

namespace tessera {

/// The same samples. After each fill() a thread of their own reads as many that follow, up to
/// `most` samples in all, so that they are there when they are asked for. `inputs` are those that
/// fill() writes.
///
/// Errors: of what was read ahead, where it is asked for; else nobody hears of them.
std::unique_ptr<Samples> read_ahead(std::unique_ptr<Samples> samples, std::vector<TaskInput> inputs,
                                    std::int64_t most);

}  // namespace tessera
