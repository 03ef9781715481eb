#pragma once
/// Compiles programs so that they fit.

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "tessera/accelerator/program_modules.h"
#include "tessera/pjrt/compiled.h"
#include "tessera/plan/compiled_bytes.h"

namespace tessera {

/// Compiles a piece of a stage with these flags, and tells its bytes.
using CompilePiece =
    std::function<pjrt::CompiledMemory(int stage, int piece, const pjrt::NamedValues& flags)>;

/// Compiles all pieces. Those of a stage that takes more than `most` bytes of a device are compiled
/// anew, without what hides the time of communication: XLA keeps much more at a time for that. They
/// are the stage's if they take less, which StageBytes::hides_latency tells. Without `most`, and on
/// platforms that have no such choice, everything is compiled once.
std::vector<StageBytes> compile_within(std::optional<std::int64_t> most,
                                       const ProgramModules& modules, std::string_view platform,
                                       const CompilePiece& compile);

}  // namespace tessera
