/// Guards around buffers: whichever call of a training step writes one byte too far is named.

#include "tessera/runtime/guards.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/plan/compile.h"
#include "tessera/runtime/executor.h"
#include "tessera/train/step.h"

namespace tessera {
namespace {

constexpr std::int64_t kGuardBatch = 4, kGuardLength = 8;

Plan guarded_plan(Device& device) {
  ModelConfig model;
  model.layers = 1;
  model.heads = 2;
  model.width = 16;
  model.context = kGuardLength;
  model.vocabulary = 19;
  model.dropout = 0.1;
  CompileOptions options;
  options.guard_bytes = 64;
  const Graph step = train_step(model, {}, kGuardBatch, kGuardLength);
  return compile({{"init", initialise(step), one_device(1)}, {"train", step, one_device(2)}},
                 device, options);
}

/// Runs a kernel, then changes the byte at `offset` from where `writes` points.
class Careless final : public Kernel {
 public:
  enum Writes { Result, Workspace };
  Careless(std::shared_ptr<const Kernel> inner, Writes writes, std::int64_t offset)
      : inner_(std::move(inner)), writes_(writes), offset_(offset) {}
  std::string_view name() const override { return "careless"; }
  std::int64_t workspace_bytes() const override { return inner_->workspace_bytes(); }
  void run(const KernelArgs& args) const override {
    inner_->run(args);
    void* const base = writes_ == Result ? args.outs[0] : args.workspace;
    static_cast<unsigned char*>(base)[offset_] ^= 1;
  }

 private:
  std::shared_ptr<const Kernel> inner_;
  Writes writes_;
  std::int64_t offset_;
};

/// What a step says when call `i` of the region is careless; empty where nothing is noticed.
std::string said(Plan plan, RegionKind region, std::size_t i, Careless::Writes writes,
                 std::int64_t offset, Device& device) {
  auto& kernel = plan.programs[1].regions[plan.programs[1].index_of(region)].calls[i].kernel;
  kernel = std::make_shared<Careless>(kernel, writes, offset);
  Executor executor(std::move(plan), device);
  executor.run("init");
  const auto fill = [](BatchInputs& batch) {
    for (const char* name : {"ids", "labels"}) std::ranges::fill(batch.fill<std::int32_t>(name), 0);
  };
  try {
    executor.run("train", fill);
    return {};
  } catch (const Broken& error) {
    return error.what();
  }
}

/// The bytes of the buffer in which `place` lies.
std::int64_t bytes_at(const Plan& plan, const Place& place, std::int32_t time) {
  for (const StatePlan& state : plan.states) {
    if (state.place == place) return state.type.bytes();
  }
  for (const GuardedBuffer& b : plan.programs[1].guarded) {
    if (b.place == place && b.first <= time && time <= b.last) return b.bytes;
  }
  return -1;
}

TEST(Guards, EveryCallThatWritesAByteTooFarIsNamed) {
  const std::unique_ptr<Device> device = make_cpu_device({2, -1});
  const Plan plan = guarded_plan(*device);
  int calls = 0, workspaces = 0;
  for (const RegionPlan& region : plan.programs[1].regions) {
    for (std::size_t i = 0; i < region.calls.size(); ++i) {
      const Call& call = region.calls[i];
      SCOPED_TRACE(text(call.op->name, " ", call.block));
      const std::int64_t bytes = bytes_at(plan, call.outs[0], call.time);
      ASSERT_GT(bytes, 0);
      const std::string who = text("kernel careless of ", call.op->name);
      const auto expect = [&](Careless::Writes writes, std::int64_t offset, const char* where) {
        const std::string what = said(plan, region.kind, i, writes, offset, *device);
        EXPECT_NE(what.find(who), std::string::npos) << offset << " " << what;
        EXPECT_NE(what.find(where), std::string::npos) << offset << " " << what;
      };
      expect(Careless::Result, bytes, " wrote behind ");
      expect(Careless::Result, -1, " wrote before ");
      ++calls;
      const std::int64_t workspace = call.kernel->workspace_bytes();
      if (workspace == 0) continue;
      expect(Careless::Workspace, workspace + 63, " wrote behind the workspace of ");
      ++workspaces;
    }
  }
  EXPECT_GT(calls, 80);
  EXPECT_GT(workspaces, 0);
}

TEST(Guards, WhatStaysInItsBufferIsNoMatter) {
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  const Plan plan = guarded_plan(*device);
  EXPECT_EQ(said(plan, RegionKind::Forward, 0, Careless::Result, 0, *device), "");
}

TEST(Guards, StatesAndInputsAreNamedAsTheUserNamesThem) {
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  const Plan plan = guarded_plan(*device);
  const Call& call = plan.programs[1].region(RegionKind::Forward).calls[0];
  const std::int64_t out = call.outs[0].offset + plan.state_bytes.device;  // in the arena
  const StatePlan& state = plan.states[0];
  EXPECT_NE(
      said(plan, RegionKind::Forward, 0, Careless::Result, state.place.offset - 1 - out, *device)
          .find(text("before state '", state.state.path, "'")),
      std::string::npos);
  const NamedTensor& ids = plan.programs[1].batch[0];
  EXPECT_NE(said(plan, RegionKind::Forward, 0, Careless::Result,
                 ids.place.offset + ids.type.bytes() + plan.state_bytes.device - out, *device)
                .find(text("behind batch input '", ids.name, "'")),
            std::string::npos);
}

}  // namespace
}  // namespace tessera
