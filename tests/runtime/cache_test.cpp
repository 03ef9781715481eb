/// Keys and values that lie in states of Role::Cache: written in place, a window per run, by
/// programs that share them.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tessera/base/philox.h"
#include "tessera/comm/local.h"
#include "tessera/ops/attention.h"
#include "tessera/ops/dynamic_update.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/interpret.h"
#include "tessera/ops/reduce.h"
#include "tessera/plan/compile.h"
#include "tessera/runtime/executor.h"
#include "tessera/tensor/shard_copy.h"

namespace tessera {
namespace {

struct Sizes {
  std::int64_t b = 2, T = 48, g = 4, r = 2, e = 8;
  int layers = 2;
};

/// n new tokens at `position`: each layer attends to all tokens so far.
Graph cached(const Sizes& z, std::int64_t n) {
  Builder builder;
  const Value position = builder.batch("position", {DType::I32, {}, {}});
  const Shape scores = {z.b, n, z.T};
  const Value key = iota(builder, scores, 2, DType::I32),
              query = iota(builder, scores, 1, DType::I32);
  const Value mask = less_equal(key, query + broadcast_to(position, scores));
  for (int layer = 0; layer < z.layers; ++layer) {
    const Scope block(builder, text("layers.", layer, ".attn"));
    const auto batch = [&](const char* name, Shape shape) {
      return builder.batch(text(name, layer), {DType::F32, shape, {}});
    };
    const auto updated = [&](const char* name, const char* fresh) {
      const Value old =
          builder.state(name, {DType::F32, {z.b, z.T, z.g, z.e}, {}}, Role::Cache, {});
      const Value next = dynamic_update(old, batch(fresh, {z.b, n, z.g, z.e}), 1, position);
      builder.next(old, next);
      return next;
    };
    const Value keys = updated("keys", "k"), values = updated("values", "v");
    AttentionOptions options;
    options.causal = false;
    const Value q = batch("q", {z.b, n, z.g, z.r, z.e});
    builder.output(Output::Kind::Metric, text("y", layer),
                   attention(q, keys, values, mask, {}, options).y);
  }
  return builder.finish();
}

std::vector<ProgramSource> cache_programs(const Sizes& z, const Strategy& strategy) {
  return {{"many", cached(z, 16), strategy}, {"one", cached(z, 1), strategy}};
}

HostTensor random_of(Shape shape, std::uint64_t key) {
  HostTensor out(DType::F32, shape);
  for (std::int64_t i = 0; i < out.numel(); ++i)
    out.set(i, unit_float(philox_bits(key, static_cast<std::uint64_t>(i), 0)) * 2 - 1);
  return out;
}

/// q, k or v of a layer for all tokens: [b, T, ...].
HostTensor all_tokens(const Sizes& z, char what, int layer) {
  const Shape shape = what == 'q' ? Shape{z.b, z.T, z.g, z.r, z.e} : Shape{z.b, z.T, z.g, z.e};
  return random_of(shape, static_cast<std::uint64_t>(what * 10 + layer));
}

/// Tokens [from, from + n).
HostTensor cut_tokens(const HostTensor& all, std::int64_t from, std::int64_t n) {
  Shape shape = all.shape();
  const std::int64_t rows = shape[1], row = all.numel() / shape[0] / rows;
  shape[1] = n;
  HostTensor out(DType::F32, shape);
  for (std::int64_t i = 0; i < out.numel(); ++i)
    out.set(i, all.at(i / (n * row) * rows * row + from * row + i % (n * row)));
  return out;
}

/// One run: tokens [from, from + n).
struct Tokens {
  const char* program;
  std::int64_t from, n;
};
/// The last one lies where the window ends at the end of the cache.
constexpr Tokens kRuns[] = {{"many", 0, 16},  {"one", 16, 1}, {"one", 17, 1},
                            {"many", 18, 16}, {"one", 34, 1}, {"one", 47, 1}};

/// What attention over whole sequences says of tokens [from, from + n), up to `from + n`.
HostTensor truth(const Sizes& z, int layer, const Tokens& run) {
  const Attrs causal = {true, 1 / std::sqrt(static_cast<double>(z.e)), 0.0, false, std::string()};
  Interpretation how;
  how.f64 = true;
  const HostTensor y = evaluate(
      kAttention, {all_tokens(z, 'q', layer), all_tokens(z, 'k', layer), all_tokens(z, 'v', layer)},
      causal, how)[0];
  return cut_tokens(y, run.from, run.n);
}

/// Runs of one rank; `part` cuts a whole tensor to the rank's shard.
using Part = std::function<HostTensor(const HostTensor&)>;
void run_cached(Executor& executor, const Sizes& z, const Tokens& run, const Part& part) {
  executor.run(run.program, [&](BatchInputs& batch) {
    batch.fill<std::int32_t>("position")[0] = static_cast<std::int32_t>(run.from);
    for (int layer = 0; layer < z.layers; ++layer) {
      for (const char what : {'q', 'k', 'v'}) {
        const HostTensor shard = part(cut_tokens(all_tokens(z, what, layer), run.from, run.n));
        std::ranges::copy(shard.bytes(), batch.fill(text(what, layer), DType::F32).begin());
      }
    }
  });
}

void expect_truth(Executor& executor, const Sizes& z, const Tokens& run, const Part& part) {
  for (int layer = 0; layer < z.layers; ++layer) {
    if (run.from == 47) continue;  // tokens 35 ... 46 are not there
    const HostTensor have = executor.metric(run.program, text("y", layer)),
                     want = part(truth(z, layer, run));
    ASSERT_EQ(have.shape(), want.shape());
    for (std::int64_t i = 0; i < have.numel(); ++i)
      ASSERT_NEAR(have.at(i), want.at(i), 1e-5) << run.program << " at " << run.from;
  }
}

const HostTensor& whole_part(const HostTensor& all) { return all; }

TEST(Cache, OfOneDeviceIsWrittenInPlace) {
  const Sizes z;
  const auto device = make_cpu_device({.threads = 2});
  CompileOptions options;
  options.guard_bytes = 64;
  const Plan plan = compile(cache_programs(z, one_device(1)), *device, options);
  const std::int64_t bytes = z.b * z.T * z.g * z.e * std::int64_t{sizeof(float)};
  ASSERT_EQ(plan.states.size(), 4U);
  EXPECT_EQ(plan.program("one").memory.caches, 4 * bytes);
  EXPECT_EQ(plan.program("one").memory.optimizer + plan.program("one").memory.parameters, 0);
  Sizes large = z;
  large.T = 2048;
  EXPECT_LT(compile(cache_programs(large, one_device(1)), *device).program("one").work.device.bytes,
            bytes / z.T * large.T)
      << "a cache is not copied";
  for (const ProgramPlan& program : plan.programs) {
    int updates = 0;
    for (const RegionPlan& region : program.regions) {
      for (const Call& call : region.calls) {
        for (const Place& out : call.outs) {
          if (out.section != Place::Section::State) continue;
          EXPECT_EQ(call.op, &kDynamicUpdate);
          EXPECT_EQ(out, call.ins[0]);
          ++updates;
          EXPECT_EQ(call.bytes, 2.0 * static_cast<double>(bytes / z.T) *
                                    static_cast<double>(program.name == "one" ? 1 : 16));
        }
      }
    }
    EXPECT_EQ(updates, 4) << program.name;
  }
  Executor executor(plan, *device);
  for (const StatePlan& state : plan.states)
    EXPECT_TRUE(std::ranges::all_of(executor.read_state(state.state.path).bytes,
                                    [](std::byte b) { return b == std::byte{0}; }));
  for (const Tokens& run : kRuns) {
    run_cached(executor, z, run, whole_part);
    expect_truth(executor, z, run, whole_part);
    EXPECT_TRUE(executor.guard_intact());
  }
}

/// Tokens outside the window have the bits that they had, whatever these are.
TEST(Cache, KeepsWhatLiesOutsideTheWindow) {
  const Sizes z;
  const auto device = make_cpu_device({.threads = 2});
  Executor executor(compile(cache_programs(z, one_device(1)), *device), *device);
  executor.write_state("layers.1.attn.keys", [](std::span<std::byte> keys) {
    for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<std::byte>(i % 61);
  });
  run_cached(executor, z, {"many", 18, 16}, whole_part);
  const StateBytes after = executor.read_state("layers.1.attn.keys");
  const std::span<const std::byte> keys = after.bytes;
  const HostTensor fresh = cut_tokens(all_tokens(z, 'k', 1), 18, 16);
  const std::int64_t row = z.g * z.e;
  for (std::int64_t i = 0; i < z.b * z.T * row; ++i) {
    const std::int64_t t = i / row % z.T;
    std::byte want[4];
    for (std::size_t k = 0; k < 4; ++k)
      want[k] = static_cast<std::byte>((static_cast<std::size_t>(i) * 4 + k) % 61);
    if (t >= 18 && t < 34) {
      const auto value =
          static_cast<float>(fresh.at((i / row / z.T * 16 + t - 18) * row + i % row));
      std::memcpy(want, &value, 4);
    }
    ASSERT_EQ(std::memcmp(want, keys.data() + i * 4, 4), 0) << "token " << t;
  }
}

/// Who reads the old content gets it, though the new one has been written.
TEST(Cache, OfWhichTheOldContentIsReadIsCopied) {
  Builder builder;
  const TensorType type{DType::F32, {4, 3}, {}};
  const Value old = builder.state("x", type, Role::Cache, {});
  const Value update = builder.batch("update", {DType::F32, {1, 3}, {}});
  const Value start = builder.batch("start", {DType::I32, {}, {}});
  const Value next = dynamic_update(old, update, 0, start);
  builder.next(old, next);
  const Value sums = sum(next, {0}, KeepDim::No);
  builder.output(Output::Kind::Metric, "new", sums);
  // Needs the new content first, then reads the old one.
  builder.output(Output::Kind::Metric, "old", old * broadcast_to(sums, type.shape));
  const auto device = make_cpu_device({.threads = 1});
  Executor executor(compile({{"step", builder.finish(), one_device(1)}}, *device), *device);
  for (const float step : {1.0F, 2.0F}) {
    executor.run("step", [&](BatchInputs& batch) {
      std::ranges::fill(batch.fill<float>("update"), step);
      batch.fill<std::int32_t>("start")[0] = 2;
    });
    EXPECT_EQ(executor.metric("step", "new").at(0), step);
    const HostTensor seen = executor.metric("step", "old");
    EXPECT_EQ(seen.at(6), (step - 1) * step) << "of the step before";
    EXPECT_EQ(seen.at(0), 0);
  }
}

/// Batch rows over dp, key-value heads over tp: nothing is sent at all.
TEST(Cache, IsSplitOverAMesh) {
  const Sizes z;
  Strategy strategy;
  strategy.mesh = Mesh({{"dp", 2}, {"tp", 2}});
  strategy.batch = {{"dp"}};
  strategy.pins = {{"layers.*.attn.keys", parse_sharding("[dp,-,tp,-]")},
                   {"layers.*.attn.values", parse_sharding("[dp,-,tp,-]")},
                   {"position", parse_sharding("[]")}};
  for (int layer = 0; layer < z.layers; ++layer) {
    strategy.cut_outputs.push_back(text("y", layer));
    for (const char* name : {"k", "v"})
      strategy.pins.push_back({text(name, layer), parse_sharding("[dp,-,tp,-]")});
    strategy.pins.push_back({text("q", layer), parse_sharding("[dp,-,tp,-,-]")});
  }
  run_ranks(4, [&](Communicator& world) {
    const auto device = make_cpu_device({1, -1});
    CompileOptions options;
    options.rank = world.rank();
    const Plan plan = compile(cache_programs(z, strategy), *device, options);
    for (const StatePlan& state : plan.states)
      EXPECT_EQ(state.type.shape, Shape({z.b / 2, z.T, z.g / 2, z.e}));
    const Sharding heads = parse_sharding("[dp,-,tp,-]"), queries = parse_sharding("[dp,-,tp,-,-]");
    const Coordinates at = coordinates_of(strategy.mesh, world.rank());
    const Part part = [&](const HostTensor& all) {
      const Sharding& sharding = all.shape().ndim() == 5 ? queries : heads;
      HostTensor out(DType::F32, local_shape(all.shape(), sharding, strategy.mesh));
      cut_shard(all.bytes(), all.shape(), DType::F32, sharding, strategy.mesh, at, out.bytes());
      return out;
    };
    Executor executor(plan, *device, &world);
    for (const Tokens& run : kRuns) {
      run_cached(executor, z, run, part);
      expect_truth(executor, z, run, part);
    }
    EXPECT_TRUE(executor.sent().empty());
  });
}

}  // namespace
}  // namespace tessera
