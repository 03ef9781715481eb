#include "tessera/accelerator/compile_within.h"

#include <utility>

#include "tessera/accelerator/stage_bytes.h"
#include "tessera/base/index.h"
#include "tessera/pjrt/compile_options.h"

namespace tessera {

namespace {

std::vector<PieceMemory> compile_stage(const ProgramModules& modules, int stage,
                                       const pjrt::NamedValues& flags,
                                       const CompilePiece& compile) {
  const std::vector<hlo::Piece>& pieces = modules.stages[at(stage)];
  std::vector<PieceMemory> out;
  for (int piece = 0; piece < std::ssize(pieces); ++piece)
    out.push_back({&pieces[at(piece)].module, compile(stage, piece, flags)});
  return out;
}

}  // namespace

std::vector<StageBytes> compile_within(std::optional<std::int64_t> most,
                                       const ProgramModules& modules, std::string_view platform,
                                       const CompilePiece& compile) {
  const int num_stages = static_cast<int>(modules.stages.size());
  const bool pinned_host = reaches_pinned_host(platform);
  std::vector<std::vector<PieceMemory>> stages;
  for (int s = 0; s < num_stages; ++s) stages.push_back(compile_stage(modules, s, {}, compile));
  std::vector<StageBytes> out = stage_bytes(modules.starts, stages, pinned_host);
  const pjrt::NamedValues leaner = pjrt::leaner_flags(platform);
  if (leaner.empty() || !most) return out;
  for (int s = 0; s < num_stages; ++s) {
    if (out[at(s)].peak() <= *most) continue;
    std::vector<PieceMemory> other = compile_stage(modules, s, leaner, compile);
    std::swap(stages[at(s)], other);
    StageBytes now = stage_bytes(modules.starts, stages, pinned_host)[at(s)];
    if (now.peak() < out[at(s)].peak()) {
      out[at(s)] = now;
      out[at(s)].hides_latency = false;
    } else {
      std::swap(stages[at(s)], other);
    }
  }
  return out;
}

}  // namespace tessera
