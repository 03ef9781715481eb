#pragma once
/// A plugin, asked where it can do no harm.

#include <chrono>

#include "tessera/accelerator/accelerator.h"

namespace tessera {

/// As ask(), in a process of its own: one that aborts or hangs there is a problem of the plugin.
void ask_apart(PluginFacts& plugin, std::chrono::seconds time = std::chrono::seconds(60));

}  // namespace tessera
