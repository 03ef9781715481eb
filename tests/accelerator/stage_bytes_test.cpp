/// What devices of stages hold: counted from modules, beside what a plugin holds in a run.

#include "tessera/accelerator/stage_bytes.h"

#include <gtest/gtest.h>

#include "accelerator/test_run.h"
#include "pjrt/real_plugin.h"
#include "tessera/accelerator/compile_within.h"
#include "tessera/accelerator/loaded_programs.h"
#include "tessera/accelerator/program_modules.h"

namespace tessera::test {
namespace {

using pjrt::TestPlugin;

std::vector<const Plan*> stages_of(const Devices& on) {
  const std::vector<Plan>& plans = plans_of(on);
  std::vector<const Plan*> out;
  for (int s = 0; s < on.stages; ++s)
    out.push_back(&plans[static_cast<std::size_t>(plans[0].rank_of(s, 0))]);
  return out;
}

/// Of a compiler that needs nothing beside arguments and results, as the plugin of the tests.
pjrt::CompiledMemory bare_memory(const hlo::Module& module) {
  pjrt::CompiledMemory out;
  for (const hlo::Port& port : module.arguments) out.argument += port.result.type.bytes();
  for (const hlo::Port& port : module.results) out.output += port.result.type.bytes();
  for (const auto& [argument, result] : module.donations)
    out.alias += module.results[static_cast<std::size_t>(result)].result.type.bytes();
  return out;
}

std::vector<StageBytes> bare_bytes(const ProgramModules& modules) {
  std::vector<std::vector<PieceMemory>> stages;
  for (const std::vector<hlo::Piece>& pieces : modules.stages) {
    std::vector<PieceMemory>& stage = stages.emplace_back();
    for (const hlo::Piece& piece : pieces)
      stage.push_back({&piece.module, bare_memory(piece.module)});
  }
  return stage_bytes(modules.starts, stages, /*pinned_host=*/true);
}

/// The second step, as then all is there that steps leave.
TEST(StageBytes, AreThoseOfARun) {
  for (const Devices& on : {Devices{2, 2}, Devices{4, 2}, Devices{2, 1}}) {
    const TestPlugin plugin;
    const std::shared_ptr<Accelerator> accelerator =
        make_accelerator(options_of(plugin, on.devices));
    on_engines(*accelerator, on, [&](Engine& engine, Communicator* world) {
      engine.run(kInitProgram);
      step(engine);
      meet(world, "the first step");
      for (auto& most : plugin.control().most_bytes) most = 0;
      meet(world, "the second");
      step(engine);
    });
    const std::vector<StageBytes> counted =
        bare_bytes(modules_of(stages_of(on), kTrainProgram, {"test"}));
    for (int rank = 0; rank < on.devices; ++rank) {
      const StageBytes& stage = counted[static_cast<std::size_t>(rank * on.stages / on.devices)];
      SCOPED_TRACE(text("rank ", rank, " of ", on.devices, " in ", on.stages,
                        " stages: ", stage.module, ", micro-batch ", stage.microbatch));
      EXPECT_EQ(plugin.control().most_bytes[static_cast<std::size_t>(rank)], stage.peak());
      EXPECT_EQ(stage.beside > 0, on.stages > 1);
    }
  }
}

/// Temporaries are those of the piece that runs then; a stage whose pieces need none is not fuller
/// for those of another.
TEST(StageBytes, CountTemporariesWhileTheirPieceRuns) {
  const ProgramModules modules = modules_of(stages_of({2, 2}), kTrainProgram, {"test"});
  const std::vector<StageBytes> bare = bare_bytes(modules);
  constexpr std::int64_t kTemporary = std::int64_t{1} << 30;
  std::vector<std::vector<PieceMemory>> stages;
  for (const std::vector<hlo::Piece>& pieces : modules.stages) {
    std::vector<PieceMemory>& stage = stages.emplace_back();
    for (const hlo::Piece& piece : pieces) {
      stage.push_back({&piece.module, bare_memory(piece.module)});
      const bool forward = piece.region == RegionKind::Forward && stages.size() == 1;
      if (forward) stage.back().memory.temp = kTemporary;
    }
  }
  const std::vector<StageBytes> out = stage_bytes(modules.starts, stages, /*pinned_host=*/true);
  EXPECT_EQ(out[0].temporary, kTemporary);
  EXPECT_EQ(out[0].module, "train_stage0_forward");
  EXPECT_LE(out[0].peak(), bare[0].peak() + kTemporary);
  EXPECT_EQ(out[1].peak(), bare[1].peak());
}

/// Stage 1 is large, and less so with the leaner flags.
struct OneLargeStage {
  const ProgramModules modules = modules_of(stages_of({2, 2}), kTrainProgram, {"test"});
  const std::vector<StageBytes> bare = bare_bytes(modules);
  std::int64_t leaner_temp = 1 << 10;
  std::vector<int> anew = {};  // stages whose pieces were compiled with flags

  std::vector<StageBytes> within(std::optional<std::int64_t> most, std::string_view platform) {
    return compile_within(
        most, modules, platform, [&](int stage, int piece, const pjrt::NamedValues& flags) {
          const auto place = static_cast<std::size_t>(stage);
          pjrt::CompiledMemory out =
              bare_memory(modules.stages[place][static_cast<std::size_t>(piece)].module);
          if (!flags.empty()) anew.push_back(stage);
          if (stage == 1) out.temp = flags.empty() ? 1 << 30 : leaner_temp;
          return out;
        });
  }
};

TEST(CompileWithin, CompilesStagesAnewThatAreTooLarge) {
  OneLargeStage program;
  const std::vector<StageBytes> out = program.within(1 << 29, "cuda");
  EXPECT_EQ(program.anew, std::vector<int>(program.modules.stages[1].size(), 1));
  EXPECT_TRUE(out[0].hides_latency);
  EXPECT_FALSE(out[1].hides_latency);
  EXPECT_EQ(out[0].peak(), program.bare[0].peak());
  EXPECT_LE(out[1].peak(), program.bare[1].peak() + (1 << 10));
}

TEST(CompileWithin, KeepsWhatTakesLess) {
  OneLargeStage program;
  program.leaner_temp = std::int64_t{1} << 31;
  const std::vector<StageBytes> out = program.within(1 << 29, "cuda");
  EXPECT_FALSE(program.anew.empty());
  EXPECT_TRUE(out[1].hides_latency);
  EXPECT_LT(out[1].peak(), std::int64_t{1} << 31);
}

TEST(CompileWithin, LeavesWhatFitsAndWhatHasNoChoice) {
  for (const auto& [most, platform] :
       {std::pair<std::optional<std::int64_t>, const char*>{std::nullopt, "cuda"},
        {std::int64_t{1} << 40, "rocm"},
        {1, "test"}}) {
    SCOPED_TRACE(platform);
    OneLargeStage program;
    const std::vector<StageBytes> out = program.within(most, platform);
    EXPECT_TRUE(program.anew.empty());
    EXPECT_TRUE(out[1].hides_latency);
    EXPECT_GT(out[1].peak(), 1 << 30);
  }
}

/// XLA's own figures for a GPU that is not here.
TEST(StageBytes, OfStagesForAnH100) {
  const std::string plugin = pjrt::real_plugin("cuda");
  if (plugin.empty()) GTEST_SKIP() << pjrt::how_to_get("cuda13");
  const Devices on{2, 2};
  AcceleratorOptions options;
  options.plugin = plugin;
  const CompiledBytes compiled =
      compile_for_gpu(options, "NVIDIA H100 80GB HBM3", stages_of(on), kTrainProgram);
  const std::vector<StageBytes> bare =
      bare_bytes(modules_of(stages_of(on), kTrainProgram, {"cuda"}));
  ASSERT_EQ(compiled.stages.size(), bare.size());
  for (std::size_t s = 0; s < bare.size(); ++s) {
    EXPECT_GE(compiled.stages[s].peak(), bare[s].peak()) << "stage " << s;
    EXPECT_LT(compiled.stages[s].peak(), 3 * bare[s].peak()) << "stage " << s;
    EXPECT_TRUE(compiled.stages[s].hides_latency);
  }
  options.most_bytes = 1;
  const CompiledBytes leaner =
      compile_for_gpu(options, "NVIDIA H100 80GB HBM3", stages_of(on), kTrainProgram);
  for (std::size_t s = 0; s < bare.size(); ++s) {
    EXPECT_LE(leaner.stages[s].peak(), compiled.stages[s].peak()) << "stage " << s;
    EXPECT_EQ(leaner.stages[s].hides_latency, leaner.stages[s].peak() == compiled.stages[s].peak());
  }
}

}  // namespace
}  // namespace tessera::test
