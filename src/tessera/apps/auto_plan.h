#pragma once
/// The planner, as commands ask for it.

#include "tessera/apps/flags.h"
#include "tessera/launch/console.h"
#include "tessera/planner/planner.h"

namespace tessera {

/// `config` on one device, to be judged before something else than its flags shares it out. What
/// complete() derives is as it was.
RunConfig with_one_device(RunConfig config);
/// Gives `config` the devices of `from` back, and what is told of them; completes it.
void take_devices(RunConfig& config, const RunConfig& from);

/// Errors: Fault::Usage: a flag asks for more devices than the machine has.
void require_devices(const RunConfig& config);

/// All that question_of() looks for a plan on.
std::int64_t devices_to_plan(const RunConfig& config);
/// The plan that suits `config` best: complete, without problems, with a vocabulary size. On all
/// devices of its machine or fewer; where it names none, on those that it asks for, or on the
/// cores of this one. The cap is memory-cap, or else what its devices have.
PlanQuestion question_of(const RunConfig& config, bool precision);
PlanAnswer plan_for(const PlanQuestion& question);

/// --memory-margin of commands that plan: percent of the cap that stay free, 5 if it is not given.
/// It does nothing unless they plan.
Flag memory_margin_flag();
double take_memory_margin(ParsedFlags& parsed, bool automatic, Problems& problems);

/// Says on the error stream how far a search is, once every ten seconds.
OnProgress search_progress(Console& console);

}  // namespace tessera
