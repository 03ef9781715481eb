#pragma once
/// Switches by short names, as `tessera bench` takes them: "bf16+zero-1,tp=2".

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/apps/command.h"
#include "tessera/config/config.h"

namespace tessera {

/// Switches that are on together.
struct SwitchSet {
  std::string name;  // as it was written: "bf16+zero-1"
  Arguments flags;   // of tessera train: "--bf16", "--zero-stage=1"
};

/// Sets with commas between them, switches with + between them; a comma or + before a digit belongs
/// to a value. A switch is one of the short names
/// or any flag of tessera train without its dashes, with = before a value. An empty name, or a set
/// that is told twice, becomes a problem.
std::vector<SwitchSet> parse_switches(std::string_view list, Problems& problems);

/// Those of seed tables and papers that a run on so many devices can have: each alone, and some
/// together.
std::vector<SwitchSet> all_switches(std::int64_t devices);

/// A line for each short name, for help.
std::string short_switches_text();

}  // namespace tessera
