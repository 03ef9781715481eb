/// Plans in files: what they were made for, and that they say the flags.

#include "tessera/planner/plan_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/config/fields.h"
#include "tessera/planner/choice.h"

namespace tessera {
namespace {

constexpr int kCores = 4;

RunConfig recorded_run() {
  RunConfig out;
  out.model.vocabulary = 96;
  out.preset = "gpt2-tiny";
  out.max_isa = "avx2";
  complete(out);
  return out;
}

PlanChoice choice() {
  return {.data = 2,
          .pipeline = 2,
          .layout = {1, 3},
          .micro_batch_size = 2,
          .zero = 1,
          .recompute = Recompute::Full,
          .recomputed = {1, 1}};
}

TEST(PlanFile, SaysAllFlags) {
  const PlanFile read = parse_plan_file(plan_file_text(recorded_run(), choice(), kCores), "a.toml");
  EXPECT_EQ(read.made_for, made_for(with(recorded_run(), choice()), kCores));
  for (const char* line :
       {"preset = \"gpt2-tiny\"", "devices = 4", "pipeline-layout = \"1,3\"", "zero-stage = 1",
        "micro-batch-size = 2", "recompute-granularity = \"full\"", "recompute-layers = \"0-1\"",
        "sequence-parallel = false"})
    EXPECT_NE(read.fields.find(text(line, "\n")), std::string::npos) << line << "\n" << read.fields;
  EXPECT_EQ(read.fields.find("[plan]"), std::string::npos);
}

/// Where a machine has two ways to multiply f32; a machine that is only described has none.
TEST(PlanFile, SaysHowF32ProductsAreMade) {
  RunConfig run = recorded_run();
  const auto says = [&] {
    const std::string file = plan_file_text(run, choice(), kCores);
    const std::size_t at = file.find("f32-products = ");
    return at == std::string::npos ? "" : file.substr(at, file.find('\n', at) - at);
  };
  EXPECT_EQ(says(), "");
  run.choices = CpuChoices{Isa::Avx2, true};
  EXPECT_EQ(says(), "");
  for (const F32Products products : {F32Products::Fma, F32Products::Amx}) {
    run.choices = CpuChoices{Isa::Amx, true, products};
    EXPECT_EQ(says(), text("f32-products = \"", to_text(products), "\""));
  }
  run.given["f32-products"] = "--f32-products amx";
  EXPECT_EQ(says(), "f32-products = \"amx\"");
  run.given.clear();
  run.parallel.machine.kernels = KernelSource::Described;
  EXPECT_EQ(says(), "");
}

TEST(PlanFile, IsRefusedForAnotherModelOrMachine) {
  const PlanFile plan = parse_plan_file(plan_file_text(recorded_run(), choice(), kCores), "a.toml");
  require_made_for(plan, recorded_run(), kCores, "a.toml");
  const auto refused = [&](const RunConfig& other, const std::string& told) {
    try {
      require_made_for(plan, other, kCores, "a.toml");
      ADD_FAILURE() << "it is not refused";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(told), std::string::npos) << error.what();
    }
  };
  RunConfig other = recorded_run();
  other.model.layers = 6;
  refused(other,
          "the plan 'a.toml' was made for gpt2 of 4 layers, width 128, context 64, vocabulary 96, "
          "batches of 8, and this run has gpt2 of 6 layers");
  RunConfig elsewhere = recorded_run();
  elsewhere.max_isa = "avx512";
  refused(elsewhere, "was made for the machine this machine, cores = 4");
  EXPECT_THROW(require_made_for(plan, recorded_run(), kCores - 1, "a.toml"), Error);
}

/// Editors and version control may change the ends of lines, and people the order of tables.
TEST(PlanFile, IsReadAsToml) {
  const std::string file = plan_file_text(recorded_run(), choice(), kCores);
  const PlanFile as_written = parse_plan_file(file, "a.toml");
  std::string with_returns;
  for (const char c : file) with_returns += c == '\n' ? std::string("\r\n") : std::string(1, c);
  EXPECT_EQ(parse_plan_file(with_returns, "a.toml").made_for, as_written.made_for);
}

TEST(PlanFile, NoticesChanges) {
  const std::string file = plan_file_text(recorded_run(), choice(), kCores);
  const std::size_t at = file.find("devices = 4");
  ASSERT_NE(at, std::string::npos);
  for (const std::string& changed : {std::string(file).replace(at, 11, "devices = 8"),
                                     std::string(file).erase(at, 12), "lr = 1e-3\n" + file}) {
    try {
      parse_plan_file(changed, "a.toml");
      ADD_FAILURE() << "it is not noticed";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("its digest does not match its fields"),
                std::string::npos)
          << error.what();
    }
  }
  EXPECT_EQ(parse_plan_file("# a remark\n" + file, "a.toml").made_for,
            parse_plan_file(file, "a.toml").made_for);
}

TEST(PlanFile, DecidesNoFieldOfTheRun) {
  for (const char* name : {"lr", "seed", "output", "data", "steps", "resume"})
    EXPECT_FALSE(may_be_in_plan(*find_field(name).field)) << name;
  for (const char* name : {"devices", "preset", "machine", "layers", "micro-batch-size", "bf16"})
    EXPECT_TRUE(may_be_in_plan(*find_field(name).field)) << name;
}

TEST(PlanFile, HasTheWholePathOfAMachineFile) {
  RunConfig run = recorded_run();
  run.machine = "m.toml";
  const std::string path = (std::filesystem::current_path() / "m.toml").string();
  EXPECT_NE(plan_file_text(run, choice(), kCores).find(text("machine = \"", path, "\"\n")),
            std::string::npos);
  run.machine = "h100-256";
  EXPECT_NE(plan_file_text(run, choice(), kCores).find("machine = \"h100-256\"\n"),
            std::string::npos);
}

TEST(PlanFile, OtherFilesAreRefused) {
  const std::string file = plan_file_text(recorded_run(), choice(), kCores);
  const std::pair<std::string, std::string> cases[] = {
      {"devices = 2\n", "'a.toml' is not a plan: it has no table [plan]"},
      {file.substr(0, file.size() - 5), "a.toml:"},
      {file.substr(0, file.find("model-digest")), "its table [plan] has no model-digest"},
      {file.substr(0, file.find("digest = ", file.find("model-digest") + 15)),
       "the plan 'a.toml' has no digest of its fields: it was written by an older"},
      {file + "cores = 2\n", "unknown key plan.cores; make one with"}};
  for (const auto& [toml, told] : cases) {
    try {
      parse_plan_file(toml, "a.toml");
      ADD_FAILURE() << "it is not refused: " << told;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(told), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace tessera
