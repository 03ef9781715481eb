#pragma once
/// Plans in a program of one's own, as `tessera plan` makes them.

#include <string>

#include "tessera/apps/command.h"

namespace tessera {

/// What a plan says: nothing is run.
struct ShownPlan {
  std::string text;  // for people
  std::string json;  // all of it: docs/reference/files.md
};

/// The plan of the flags of `tessera plan`, in both forms. Progress and notices go to the errors of
/// `console`. Errors: those of the run that is asked about; Fault::Usage: --help, --search-mode and
/// --minimalloc, which tell no plan.
ShownPlan plan_here(const Arguments& arguments, Console& console, const OwnFamilies& families = {});

}  // namespace tessera
