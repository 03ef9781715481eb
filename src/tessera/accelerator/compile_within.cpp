#include "tessera/accelerator/compile_within.h"

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
  const std::vector<StageBytes> first = stage_bytes(modules.starts, stages, pinned_host);
  const pjrt::NamedValues leaner = pjrt::leaner_flags(platform);
  const auto is_large = [&](int s) { return most && first[at(s)].peak() > *most; };
  if (leaner.empty()) return first;
  for (int s = 0; s < num_stages; ++s) {
    if (is_large(s)) stages[at(s)] = compile_stage(modules, s, leaner, compile);
  }
  std::vector<StageBytes> out = stage_bytes(modules.starts, stages, pinned_host);
  for (int s = 0; s < num_stages; ++s) out[at(s)].hides_latency = !is_large(s);
  return out;
}

}  // namespace tessera
