#pragma once
/// A training run in a process of its own, for `tessera bench`: what one contestant leaves behind,
/// in memory, caches and settings of libraries, does not touch the next.

#include <atomic>
#include <cstdint>
#include <functional>

#include "tessera/bench/turn.h"
#include "tessera/train/config.h"

namespace tessera {

/// Forks; the child trains as `config` says and keeps nothing but what it writes to config.output
/// on the way. `on_step` hears how many steps are done. Where `stop` is set the child is asked to
/// stop, and the turn is one that failed. Errors: Fault::Resource: the system makes no process.
Turn measured_turn(const RunConfig& config, const TurnLength& length,
                   const std::function<void(std::int64_t steps_done)>& on_step,
                   const std::atomic<bool>& stop);

}  // namespace tessera
