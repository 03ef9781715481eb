#pragma once
/// What a search over the placements of single ops finds for a run, as text.

#include <string>
#include <string_view>

#include "tessera/config/config.h"
#include "tessera/search/search.h"

namespace tessera {

/// Errors: Fault::Usage: the name is not of a search mode; the message lists them.
SearchMode search_mode_of(std::string_view name);

/// Searches the training step of `config`, which is complete and has a vocabulary size, for its
/// devices, without stages: on mesh_to_search(), by the prices of its machine, with `memory_cap`
/// bytes on a device. One line says what was found and at what cost; then each op has a line with
/// the shardings of its operands and results, and each parameter. Blocks that are spread alike are
/// written once.
std::string search_text(const RunConfig& config, SearchMode mode, double memory_cap = kNever);

}  // namespace tessera
