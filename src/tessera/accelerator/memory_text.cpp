#include "tessera/accelerator/memory_text.h"

#include <algorithm>
#include <optional>

#include "tessera/accelerator/program_modules.h"
#include "tessera/accelerator/stage_bytes.h"
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

/// On the devices of the stage that wants most, as compilers say.
std::optional<StageBytes> compiled_bytes(const LoadedProgram& loaded, bool pinned_host) {
  return quietly([&] {
    std::vector<std::vector<PieceMemory>> stages;
    for (const std::vector<LoadedModule>& pieces : loaded.stages) {
      std::vector<PieceMemory>& stage = stages.emplace_back();
      for (const LoadedModule& piece : pieces)
        stage.push_back({&piece.module, piece.executable.compiled().memory()});
    }
    return CompiledBytes{{}, stage_bytes(loaded.starts, stages, pinned_host)}.most();
  });
}

std::string wanted_text(const Plan& plan, const std::optional<StageBytes>& bytes) {
  if (!bytes) return text("about ", bytes_text(plan.peak_bytes()), " by our own plan");
  return text(
      bytes_text(bytes->peak()), " as its compiler says (arguments ", bytes_text(bytes->argument),
      ", results beside them ", bytes_text(std::max<std::int64_t>(bytes->output - bytes->alias, 0)),
      ", temporaries ", bytes_text(bytes->temporary),
      bytes->beside == 0 ? "" : text(", and what it does not read ", bytes_text(bytes->beside)),
      ")");
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
  const auto bytes =
      loaded == nullptr
          ? std::nullopt
          : compiled_bytes(*loaded, reaches_pinned_host(devices.client().platform_name()));
  const std::string cap =
      stats && stats->limit ? text("; --memory-cap ", *stats->limit, " chooses among these") : "";
  return text("program ", plan.programs[program].name, " wants ", wanted_text(plan, bytes),
              ", and ", there_text(stats),
              "; less is needed with a lower --micro-batch-size (the same numbers), "
              "--recompute-granularity full, ",
              plan.ranks() > 1 ? "--zero-stage 3" : "more --devices and --zero-stage 3",
              " or --bf16", cap);
}

}  // namespace tessera
