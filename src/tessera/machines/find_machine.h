#pragma once
/// The room `machines`: machine files, and machines that Tessera knows by name.
/// For: pricing a plan on machines that are not here.
/// Not for: measuring this one (runtime, `tessera doctor --calibrate`), or what prices mean
/// (tensor/machine.h).
///
/// Machines by name, and from files.

#include <string>
#include <string_view>
#include <vector>

#include "tessera/tensor/machine.h"

namespace tessera {

/// Where the numbers of a named machine come from.
struct NumberSource {
  /// Of a machine file, or how they begin, * being any end of a word: "device.f32, links.*.units".
  std::string_view keys;
  std::string_view source;  // who says so
};

/// A machine that Tessera knows by name: docs/reference/machines.md shows them.
struct NamedMachine {
  std::string name;
  std::string_view summary;
  Machine machine;
  std::vector<NumberSource> sources;
};

/// Those of which the makers' or others' published figures are at hand.
std::vector<NamedMachine> named_machines();
std::vector<std::string> machine_names();

/// A named machine, or the one that a machine file describes. Errors: a name that is neither; what
/// is wrong with the file.
Machine find_machine(const std::string& name_or_path);

}  // namespace tessera
