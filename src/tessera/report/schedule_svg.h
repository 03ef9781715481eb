#pragma once
/// A drawing of a schedule: what each stage does, against time.

#include <string>

#include "tessera/schedule/pipeline.h"

namespace tessera {

enum class TimeUnit { Units, Seconds };  // of what PlayOptions::cost says

/// An SVG picture: one row per stage, one box per action with its micro-batch where that fits, the
/// colour by kind, the shade by chunk. It follows the reader's choice of light or dark.
/// `schedule` is the name of the pipeline's.
std::string schedule_svg(const std::string& schedule, const Pipeline& pipeline,
                         const PlayOptions& prices = {}, TimeUnit unit = TimeUnit::Units);

}  // namespace tessera
