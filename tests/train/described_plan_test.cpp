/// Plans for a device that is only described.

#include <gtest/gtest.h>

#include "tessera/base/text.h"
#include "tessera/config/presets.h"
#include "tessera/machines/find_machine.h"
#include "tessera/train/programs.h"

namespace tessera {
namespace {

struct DescribedCase {
  const char *name, *preset;
  void (*change)(RunConfig& config);
};

const DescribedCase kDescribedCases[] = {
    {"one device", "gpt2-tiny", [](RunConfig&) {}},
    {"a mesh", "llama-tiny",
     [](RunConfig& c) {
       c.parallel.devices = 8;
       c.parallel.tensor = 2;
       c.zero3 = true;
     }},
    {"16 bits", "bert-tiny",
     [](RunConfig& c) {
       c.parallel.devices = 4;
       c.bf16 = true;
       c.parallel.tensor = 2;
       c.parallel.sequence = true;
     }},
    {"stages", "transformer-tiny",
     [](RunConfig& c) {
       c.parallel.devices = 4;
       c.parallel.pipeline = 2;
       c.micro_batch_size = 2;
     }},
};

RunConfig configure(const DescribedCase& c) {
  RunConfig out;
  find_preset(c.preset).apply(out);
  out.model.vocabulary = 65;
  out.model.dropout = 0.1;
  c.change(out);
  complete(out);
  return out;
}

/// All of a plan but kernels, workspaces and, with them, addresses.
std::string outline(const Plan& plan) {
  std::string out = text(plan.mesh, " ", plan.stages, " ", plan.state_bytes[Memory::Device]);
  for (const StatePlan& state : plan.states)
    out += text("\n", state.state.path, " ", state.type, " ", state.place.offset);
  for (const ProgramPlan& program : plan.programs) {
    out += text("\n", program.name, " ", program.flops);
    for (const RegionPlan& region : program.regions) {
      out += text("\n", static_cast<int>(region.kind), " ", region.chunk);
      for (const Call& call : region.calls)
        out += text("\n", call.time, " ", call.block, " ", op_text(call), " ", types_text(call),
                    " ", call.flops, " ", call.bytes, call.recomputed ? " again" : "");
    }
  }
  return out;
}

std::vector<Plan> plans_for(const RunConfig& config, Device& device) {
  Compiled compiled =
      compile_programs(RunSetup(config), {.evaluate = false, .texts = 0, .stages = true}, device);
  std::vector<Plan> out = std::move(compiled.others);
  out.insert(out.begin(), std::move(compiled.plan));
  return out;
}

TEST(DescribedPlan, IsThatOfProcessorsButForWorkspacesAndPacking) {
  const auto described = make_described_device();
  const auto processor =
      make_cpu_device({.threads = 1, .choices = CpuChoices{machine_choices().isa, false}});
  for (const DescribedCase& c : kDescribedCases) {
    SCOPED_TRACE(c.name);
    const RunConfig config = configure(c);
    const std::vector<Plan> ours = plans_for(config, *described),
                            theirs = plans_for(config, *processor);
    ASSERT_EQ(ours.size(), theirs.size());
    for (std::size_t i = 0; i < ours.size(); ++i) {
      EXPECT_EQ(outline(ours[i]), outline(theirs[i]));
      EXPECT_LE(ours[i].peak_bytes(), theirs[i].peak_bytes());
      for (const ProgramPlan& program : ours[i].programs) {
        for (const RegionPlan& region : program.regions) {
          for (const Call& call : region.calls) EXPECT_EQ(workspace_bytes(call), 0);
        }
      }
    }
  }
}

/// Whatever device is at hand: for a machine that is only described there is one plan.
TEST(DescribedPlan, DependsOnNoProcessor) {
  const CpuChoices lower = {machine_choices().at_most(Isa::Avx512).isa, false};
  const auto plain = make_cpu_device({.threads = 1, .choices = lower}),
             packing = make_cpu_device({.threads = 2, .pack_always = true});
  for (const DescribedCase& c : kDescribedCases) {
    SCOPED_TRACE(c.name);
    RunConfig config = configure(c);
    config.parallel.machine = find_machine("a100-1024");
    const std::vector<Plan> one = plans_for(config, *plain), other = plans_for(config, *packing);
    ASSERT_EQ(one.size(), other.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      EXPECT_EQ(outline(one[i]), outline(other[i]));
      EXPECT_EQ(one[i].peak_bytes(), other[i].peak_bytes());
      for (const ProgramPlan& program : one[i].programs) {
        for (const RegionPlan& region : program.regions) {
          for (const Call& call : region.calls) {
            EXPECT_TRUE(!call.kernel || call.kernel->name() == "described") << op_text(call);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tessera
