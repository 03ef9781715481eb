/// Transfers under way: nobody touches what they read and write, all are waited for, little memory
/// is held for them, and the numbers are those without overlap.

#include <gtest/gtest.h>

#include <array>
#include <map>

#include "tessera/comm/local.h"
#include "tessera/train/rank_group.h"
#include "train/step_plan.h"

namespace tessera {
namespace {

constexpr std::int64_t kBatch = 24;

ModelConfig overlapped_model(const std::string& family) {
  ModelConfig c;
  c.family = family;
  c.layers = 3;
  c.heads = 8;
  c.width = 64;
  c.context = 16;
  c.vocabulary = 65;
  c.dropout = family == "gpt2" ? 0.1 : 0;
  return c;
}

Plan overlapped_plan(const std::string& family, const ParallelConfig& parallel, Device& device,
                     bool overlap = true, int rank = 0, std::int64_t guard_bytes = 0) {
  CompileOptions options;
  options.overlap = overlap;
  options.rank = rank;
  options.guard_bytes = guard_bytes;
  return step_plan(overlapped_model(family), kBatch, parallel, device, options);
}

ParallelConfig in_buckets(ParallelConfig out) {
  out.bucket_mb = 16;
  return out;
}

struct NamedMesh {
  const char* name;
  ParallelConfig parallel;
};

std::vector<NamedMesh> meshes() {
  ParallelConfig cube{.devices = 8, .tensor = 2, .context = 2, .sequence = true};
  cube.micro_batches = 2;
  ParallelConfig sharded = cube;
  sharded.shard_optimizer = sharded.shard_gradients = sharded.shard_parameters = true;
  return {{"dp2", zero(2, 0)},
          {"dp3, 4 micro-batches", zero(3, 0, 4)},
          {"dp2, one bucket", in_buckets(zero(2, 0))},
          {"dp3, 4 micro-batches, one bucket", in_buckets(zero(3, 0, 4))},
          {"dp2 cp2 tp2 sp, one bucket", in_buckets(cube)},
          {"zero1", zero(2, 1)},
          {"zero1, 3 micro-batches", zero(2, 1, 3)},
          {"zero2, 3 micro-batches", zero(2, 2, 3)},
          {"zero3", zero(3, 3)},
          {"zero3, 2 micro-batches", zero(2, 3, 2)},
          {"tp2", {.devices = 2, .tensor = 2}},
          {"tp2 sp", {.devices = 2, .tensor = 2, .sequence = true}},
          {"cp2", {.devices = 2, .context = 2}},
          {"dp2 cp2 tp2 sp", cube},
          {"dp2 cp2 tp2 sp zero3", sharded}};
}

/// A stretch of the arena.
struct Bytes {
  Place::Section section;
  std::int64_t begin, end;
  bool touches(const Bytes& other) const {
    return section == other.section && begin < other.end && other.begin < end;
  }
};
Bytes place_bytes(const Place& place, std::int64_t bytes) {
  return {place.section, place.offset, place.offset + bytes};
}

/// Walks a run of a program, with what is under way at each call.
class Walk {
 public:
  explicit Walk(const ProgramPlan& program) {
    for (const Action& action : program.actions) {
      for (const Call& call : program.region(action.region, action.chunk).calls) {
        if (program.runs(call, action)) step(call);
      }
    }
    EXPECT_TRUE(under_way_.empty()) << under_way_.size() << " transfers are never waited for";
  }

  /// Transfers with a kernel at work between start and wait, by op; and all.
  std::map<std::string, int> parted, all;

 private:
  struct UnderWay {
    const Call* start;
    Bytes in, out;
    bool kernels = false;
  };

  void step(const Call& call) {
    if (call.kernel) return kernel(call);
    if (!call.transfer) return wait(call);
    ++all[std::string(call.op->name)];
    const UnderWay fresh{&call, place_bytes(call.ins[0], call.types->ins[0].bytes()),
                         place_bytes(call.outs[0], call.types->outs[0].bytes())};
    for (const auto& [ticket, other] : under_way_) {
      EXPECT_FALSE(fresh.out.touches(other.in) || fresh.out.touches(other.out) ||
                   fresh.in.touches(other.out))
          << words(call) << " meets " << words(*other.start);
    }
    EXPECT_TRUE(under_way_.emplace(call.ticket, fresh).second) << words(call) << " starts twice";
  }

  void wait(const Call& call) {
    const auto found = under_way_.find(call.ticket);
    ASSERT_TRUE(found != under_way_.end()) << words(call) << " is waited for before its start";
    if (found->second.kernels) ++parted[std::string(call.op->name)];
    under_way_.erase(found);
  }

  void kernel(const Call& call) {
    std::vector<Bytes> writes;
    for (std::size_t i = 0; i < call.outs.size(); ++i)
      writes.push_back(place_bytes(call.outs[i], call.types->outs[i].bytes()));
    writes.push_back(place_bytes(call.workspace, workspace_bytes(call)));
    for (auto& [ticket, other] : under_way_) {
      other.kernels = true;
      for (const Bytes& written : writes) {
        EXPECT_FALSE(written.touches(other.in) || written.touches(other.out))
            << words(call) << " writes what is under way: " << words(*other.start);
      }
      for (std::size_t i = 0; i < call.ins.size(); ++i) {
        EXPECT_FALSE(place_bytes(call.ins[i], call.types->ins[i].bytes()).touches(other.out))
            << words(call) << " reads what is under way: " << words(*other.start);
      }
    }
  }

  static std::string words(const Call& call) {
    return text(kernel_name(call), " ", op_text(call), " in ", call.block, " ", types_text(call));
  }

  std::map<std::int32_t, UnderWay> under_way_;  // by ticket
};

TEST(Overlap, NobodyTouchesWhatIsUnderWayAndAllOfItIsWaitedFor) {
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  for (const NamedMesh& mesh : meshes()) {
    for (const std::string family : {"gpt2", "llama"}) {
      SCOPED_TRACE(text(mesh.name, " ", family));
      for (const bool overlap : {true, false}) {
        const Plan plan = overlapped_plan(family, mesh.parallel, *device, overlap);
        for (const ProgramPlan& program : plan.programs) {
          const Walk walk(program);
          const bool expected = overlap && program.name == kTrainProgram;
          EXPECT_TRUE(expected ? !walk.parted.empty() : overlap || walk.parted.empty());
        }
      }
    }
  }
}

/// Kernels and transfers of one block in one region, in order: "matmul start:all_reduce ...".
std::string order_in(const ProgramPlan& program, RegionKind region, std::string_view block) {
  std::vector<std::string> out;
  for (const Call& call : program.region(region).calls) {
    if (call.block.str().rfind(block, 0) != 0) continue;
    if (call.kernel && call.op->name != "matmul") continue;
    out.push_back(call.kernel ? "matmul" : text(call.transfer ? "start:" : "wait:", call.op->name));
  }
  return join(out, " ");
}

/// The sums of a tensor-parallel block are under way while gradients of weights are computed.
TEST(Overlap, TensorParallelSumsPassBesideTheGradientsOfWeights) {
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  const Plan plan = overlapped_plan("gpt2", {.devices = 2, .tensor = 2}, *device);
  for (const char* layer : {"layers.1.attn.qkv", "layers.1.mlp.up"}) {
    EXPECT_EQ(order_in(plan.program(kTrainProgram), RegionKind::Backward, layer),
              "matmul start:all_reduce matmul wait:all_reduce");
  }
}

/// In place, as sums are, nothing is held for a transfer.
TEST(Overlap, DataParallelSumsTakeNoMemoryAndPassBesideTheBackwardPass) {
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  for (const std::int64_t micro_batches : {1, 4}) {
    const Plan with = overlapped_plan("gpt2", zero(2, 0, micro_batches), *device),
               without = overlapped_plan("gpt2", zero(2, 0, micro_batches), *device, false);
    EXPECT_EQ(with.peak_bytes(), without.peak_bytes());
    const Walk walk(with.program(kTrainProgram));
    EXPECT_GE(walk.parted.at("all_reduce"), 35) << "of 40 gradients";
  }
}

/// A bucket starts when its last gradient is there, and lies where the gradients lay.
TEST(Overlap, BucketsTakeNoMemoryAndPassBesideTheBackwardPass) {
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  ParallelConfig parallel = zero(2, 0, 4);
  const Plan each = overlapped_plan("gpt2", parallel, *device);
  parallel.gradient_groups = 3;
  const Plan joined = overlapped_plan("gpt2", parallel, *device);
  const auto alive = [](const Plan& plan) {
    return plan.program(kTrainProgram).work.device.lower_bound_bytes;
  };
  EXPECT_EQ(alive(joined), alive(each));
  // Where buffers lie is found by a heuristic.
  EXPECT_NEAR(joined.peak_bytes(), each.peak_bytes(), 0.005 * each.peak_bytes());
  const ProgramPlan& step = joined.program(kTrainProgram);
  EXPECT_EQ(step.buckets.size(), 3u);
  const Walk walk(step);
  EXPECT_GE(walk.parted.at("all_reduce"), walk.all.at("all_reduce") - 2) << "but for two scalars";
}

/// What micro-batches summed up lives to the end of the loop: shards of it begin there.
TEST(Overlap, ScatteredSumsTakeNoMemoryInTheLoop) {
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  const ParallelConfig mesh = zero(2, 1, 4);
  const std::int64_t with = overlapped_plan("gpt2", mesh, *device).peak_bytes(),
                     without = overlapped_plan("gpt2", mesh, *device, false).peak_bytes();
  EXPECT_LE(with, without + without / 200) << "a shard under way, where all would be an eighth";
}

/// At most one gathered matrix more than without, and one gradient: those of an up, 2 x 64 x 64 x 4
/// with its gate.
TEST(Overlap, ShardedParametersAreGatheredOneAheadAndGradientsScatteredOneBehind) {
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  const Plan with = overlapped_plan("llama", zero(2, 3, 2), *device),
             without = overlapped_plan("llama", zero(2, 3, 2), *device, false);
  const ModelConfig model = overlapped_model("llama");
  const std::int64_t up = size_of(DType::F32) * 4 * model.width * model.width;
  EXPECT_LE(with.peak_bytes() - without.peak_bytes(), 2 * up);
  const Walk walk(with.program(kTrainProgram));
  for (const char* op : {"all_gather", "reduce_scatter"}) {
    EXPECT_GE(walk.parted.at(op), walk.all.at(op) * 3 / 4) << op;
  }
}

/// Tokens that differ from place to place.
void train(RankGroup& group, const std::string& family) {
  group.run(kTrainProgram, [&](BatchInputs& batch) {
    const std::span<std::int32_t> ids = batch.fill<std::int32_t>("ids"),
                                  labels = batch.fill<std::int32_t>("labels");
    const auto vocabulary = static_cast<std::size_t>(overlapped_model(family).vocabulary);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      ids[i] = static_cast<std::int32_t>(i * i % vocabulary);
      labels[i] = static_cast<std::int32_t>((i + 1) * (i + 1) % vocabulary);
    }
  });
}

/// Kernels beside transfers keep to their buffers.
TEST(Overlap, GuardsHold) {
  const ParallelConfig mesh = zero(2, 3, 2);
  run_ranks(2, [&](Communicator& world) {
    const std::unique_ptr<Device> device = make_cpu_device({1, -1});
    RankGroup group(overlapped_plan("gpt2", mesh, *device, true, world.rank(), 64), *device,
                    &world);
    if (world.rank() > 0) return group.follow();
    group.run(kInitProgram);
    train(group, "gpt2");
    group.stop();
  });
}

/// States after two steps on threads: the same bits with overlap and without.
TEST(Overlap, ChangesNoNumber) {
  for (const NamedMesh& mesh : meshes()) {
    for (const std::string family : {"gpt2", "llama"}) {
      SCOPED_TRACE(text(mesh.name, " ", family));
      std::array<std::map<std::string, std::vector<std::byte>>, 2> ends;  // by path
      for (const bool overlap : {false, true}) {
        run_ranks(static_cast<int>(mesh.parallel.devices), [&](Communicator& world) {
          const std::unique_ptr<Device> device = make_cpu_device({1, -1});
          RankGroup group(overlapped_plan(family, mesh.parallel, *device, overlap, world.rank()),
                          *device, &world);
          if (world.rank() > 0) return group.follow();
          group.run(kInitProgram);
          for (int i = 0; i < 2; ++i) train(group, family);
          for (const CheckpointTensor& state : group.states()) {
            ends[overlap ? 1 : 0][state.name].assign(state.bytes.begin(), state.bytes.end());
          }
          group.stop();
        });
      }
      for (const auto& [path, bytes] : ends[0]) EXPECT_TRUE(ends[1].at(path) == bytes) << path;
    }
  }
}

}  // namespace
}  // namespace tessera
