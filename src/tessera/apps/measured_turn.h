#pragma once
/// Runs in processes of their own, for `tessera bench`: what one contestant leaves behind, in
/// memory, caches and settings of libraries, does not touch the next.

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/apps/command.h"
#include "tessera/bench/turn.h"
#include "tessera/config/config.h"

namespace tessera {

/// A failure of a program, with the error that it told last in the file `said`, or the last line
/// that it wrote there.
std::string failure_text(const std::string& failure, const std::string& said);

/// Names and values that a program finds in its environment beside those of this process.
using AddedVariables = std::vector<std::pair<std::string, std::string>>;

/// What a new process does: it writes the lines of a turn (bench/turn.h) to a file descriptor.
using TurnBody = std::function<void(int to)>;

/// What becomes of a run: it is trained and lost, saved too, or only planned.
enum class RunKind { Trained, Saved, Planned };
/// Trains as `config` says; what is written on the way goes to config.output.
TurnBody training(const RunConfig& config, RunKind kind = RunKind::Trained);
/// Becomes another program, whose standard output are the lines. What it says on standard error
/// goes into the file `said`.
TurnBody program(Arguments words, std::string said, AddedVariables added = {});
/// Calls `work`; an error is told as that of a turn.
TurnBody work(std::function<void()> what);

/// Forks, and reads what the child tells. `on_step` hears how many steps are done. Where `stop` is
/// set the child is ended, and the turn is one that failed. Errors: Fault::Resource: the
/// system makes no process.
Turn measured_turn(const TurnBody& body, const TurnLength& length,
                   const std::function<void(std::int64_t steps_done)>& on_step,
                   const std::atomic<bool>& stop);

}  // namespace tessera
