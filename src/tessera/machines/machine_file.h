#pragma once
/// Machine files: TOML whose keys docs/reference/machines.md explains. Quantities are texts with a unit.
///
///   name = "lab"
///   kernels = "described"
///
///   [links.core]
///   bandwidth = "90 GB/s"
///   latency = "2 us"
///   units = 4

#include <string>
#include <string_view>
#include <vector>

#include "tessera/tensor/machine.h"

namespace tessera {

/// Reads what `path`, which is only named in messages, contains. Errors: Fault::Usage: no TOML; all
/// of unknown keys, keys that are missing, values of another kind or unit, values that no machine
/// has: each with its line, the key, what was given and what to give.
Machine parse_machine_file(std::string_view toml, const std::string& path);
/// A name that a machine can have: one line that a terminal shows, with something on it. Of other
/// texts the nearest.
std::string machine_name_text(std::string_view name);
/// As parse_machine_file reads it back, where the machine has such a name.
std::string machine_file_text(const Machine& machine);

/// A key of machine files, for the documents.
struct MachineKey {
  std::string path;     // "links.core.bandwidth"
  std::string example;  // a legal value
  bool required = false;
};
std::vector<MachineKey> machine_keys();

}  // namespace tessera
