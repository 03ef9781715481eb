/// Plans in files: what they were made for, and that they say the flags.

#include "tessera/planner/plan_file.h"

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {
namespace {

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
  const PlanFile read = parse_plan_file(plan_file_text(recorded_run(), choice()), "a.toml");
  EXPECT_EQ(read.made_for, made_for(with(recorded_run(), choice())));
  for (const char* line :
       {"preset = \"gpt2-tiny\"", "devices = 4", "pipeline-layout = \"1,3\"", "zero-stage = 1",
        "micro-batch-size = 2", "recompute-granularity = \"full\"", "recompute-layers = \"0-1\"",
        "sequence-parallel = false"})
    EXPECT_NE(read.fields.find(text(line, "\n")), std::string::npos) << line << "\n" << read.fields;
  EXPECT_EQ(read.fields.find("[plan]"), std::string::npos);
}

TEST(PlanFile, IsRefusedForAnotherModelOrMachine) {
  const PlanFile plan = parse_plan_file(plan_file_text(recorded_run(), choice()), "a.toml");
  require_made_for(plan, recorded_run(), "a.toml");
  const auto refused = [&](const RunConfig& other, const std::string& told) {
    try {
      require_made_for(plan, other, "a.toml");
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
  refused(elsewhere, "was made for the machine this machine, cores = ");
}

TEST(PlanFile, OtherFilesAreRefused) {
  EXPECT_THROW(parse_plan_file("devices = 2\n", "a.toml"), Error);
}

}  // namespace
}  // namespace tessera
