#pragma once
/// One run of a program on all devices of a process.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tessera/accelerator/session.h"
#include "tessera/pjrt/event.h"

namespace tessera {

/// Starts the pieces of all stages in the program's order, and waits for the last. Buffers go from
/// device to device. `ranks`: those of the first stage first. `numbers`: by stage; those that are
/// needed are added. `started`: what was started, where the run fails. `signs`: raised where it gets
/// on, by threads of the plugin too.
/// Errors: what a piece runs into, on whichever device tells it first.
void run_stages(const LoadedProgram& program, const LoadedPrograms& devices,
                std::span<RankBuffers> ranks, std::span<MicrobatchNumbers> numbers,
                std::vector<pjrt::Event>& started,
                const std::shared_ptr<std::atomic<std::int64_t>>& signs);

}  // namespace tessera
