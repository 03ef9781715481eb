#include "tessera/accelerator/memory_text.h"

#include <algorithm>
#include <optional>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

/// Nothing where the call fails too: the first error counts.
template <typename Ask>
auto quietly(const Ask& ask) -> std::optional<decltype(ask())> {
  try {
    return ask();
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Of the module that wants most.
std::optional<pjrt::CompiledMemory> compiled_memory(const LoadedProgram& loaded) {
  std::optional<pjrt::CompiledMemory> most;
  for (const LoadedStage& stage : loaded.stages) {
    for (const LoadedPiece& piece : stage.pieces) {
      const auto memory = quietly([&] { return piece.loaded.executable.compiled().memory(); });
      if (memory && (!most || memory->device_peak() > most->device_peak())) most = memory;
    }
  }
  return most;
}

std::string wanted_text(const Plan& plan, const LoadedProgram* loaded) {
  const auto memory = loaded == nullptr ? std::nullopt : compiled_memory(*loaded);
  if (!memory) return text("about ", bytes_text(plan.peak_bytes()), " by our own plan");
  return text(bytes_text(memory->device_peak()), " as its compiler says (arguments ",
              bytes_text(memory->argument), ", results beside them ",
              bytes_text(std::max<std::int64_t>(memory->output - memory->alias, 0)),
              ", temporaries ", bytes_text(memory->temp), ")");
}

/// Of this process's first device.
std::optional<pjrt::MemoryStats> stats_of(const LoadedPrograms& devices) {
  const pjrt::Client& client = devices.client();
  return quietly([&] { return client.memory_stats(client.local_devices()[0]); })
      .value_or(std::nullopt);
}

std::string there_text(const std::optional<pjrt::MemoryStats>& stats) {
  if (!stats) return "its device does not tell what it has";
  const pjrt::MemoryStats& memory = *stats;
  return text(
      memory.limit ? text("a device has ", bytes_text(*memory.limit), ", with ") : "",
      bytes_text(memory.in_use), " in use",
      memory.largest_free ? text(" and ", bytes_text(*memory.largest_free), " in one piece") : "");
}

}  // namespace

std::string memory_text(const LoadedPrograms& devices, const Plan& plan, std::size_t program,
                        const LoadedProgram* loaded) {
  const auto stats = stats_of(devices);
  const std::string cap =
      stats && stats->limit ? text("; --memory-cap ", *stats->limit, " chooses among these") : "";
  return text("program ", plan.programs[program].name, " wants ", wanted_text(plan, loaded),
              ", and ", there_text(stats),
              "; less is needed with a lower --micro-batch-size (the same numbers), "
              "--recompute-granularity full, ",
              plan.ranks() > 1 ? "--zero-stage 3" : "more --devices and --zero-stage 3",
              " or --bf16", cap);
}

}  // namespace tessera
