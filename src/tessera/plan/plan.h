#pragma once
/// The plan: what one rank runs. Programs as lists of calls over shared states, and an address for
/// every tensor, all decided before the first step.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/comm/collective.h"
#include "tessera/comm/group.h"
#include "tessera/device/device.h"
#include "tessera/ir/graph.h"
#include "tessera/ir/strategy.h"
#include "tessera/passes/program.h"
#include "tessera/tensor/batch_inputs.h"
#include "tessera/tensor/per_memory.h"

namespace tessera {

/// An address in a pool. A rank has one pool in each memory that its plan uses: the arena on the
/// device, and another on the host where values lie there. The state section of a pool keeps its
/// content for the whole run; the work section is reused by all programs. 16-bit copies of
/// parameters end the state section: their offsets are counted from the work section and are below
/// 0, so that what a program computes may lie there too while they are idle. A ring has places for
/// values of several micro-batches: that of micro-batch k begins at offset + k % depth * stride.
struct Place {
  Memory memory = Memory::Device;
  /// Base: in a pool of its own on the device, one for all ranks of a process with the same base.
  enum class Section : std::uint8_t { State, Work, Base } section = Section::Work;
  std::int64_t offset = 0;
  std::int64_t stride = 0, depth = 1;
  friend bool operator==(const Place&, const Place&) = default;
};

/// In which micro-batches a call runs. Example: the first micro-batch writes an accumulator, later
/// ones add to it, and after the last one it can be sent.
enum class When : std::uint8_t { Always, First, Later, Last };
constexpr bool runs_in(When when, std::int64_t microbatch, std::int64_t microbatches) {
  switch (when) {
    case When::Always: return true;
    case When::First: return microbatch == 0;
    case When::Later: return microbatch > 0;
    case When::Last: return microbatch + 1 == microbatches;
  }
  return false;
}

/// Attributes and types of a call. Calls with equal ones share this object.
struct CallTypes {
  Attrs attrs;
  TensorTypes ins, outs;
  friend bool operator==(const CallTypes&, const CallTypes&) = default;
};

/// One rank's part in a collective, a permute or a message between stages.
struct Transfer {
  Collective collective;          // of a permute: the send
  std::vector<std::string> axes;  // along which the ranks of the group differ, major first
  Group group;                    // in ranks of the world; each message has one of its own
  int from = -1;                  // permute: the member whose shard this rank takes

  /// True of a message between stages: of its send on one of them, its receive on the other.
  bool is_message() const {
    return from < 0 &&
           (collective.kind == CollectiveKind::Send || collective.kind == CollectiveKind::Recv);
  }
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

/// One call of a program: a kernel with its addresses, the start of a transfer, or the wait for it.
struct Call {
  std::shared_ptr<const Kernel> kernel;
  Shared<Transfer> transfer;      // of a start
  std::int64_t copied_bytes = 0;  // of a start of a copy from one memory to another
  std::int32_t ticket = -1;       // the number of the transfer, the same for its start and its wait
  std::int32_t tickets = 1;       // a message: ticket + k % tickets is that of micro-batch k
  std::int32_t ahead = 0;         // it is of the micro-batch that comes so many after the action's
  std::vector<Place> ins, outs;
  Place workspace;
  When when = When::Always;
  // For profiles: what it computes, and the cost of it.
  const OpDef* op = nullptr;
  Shared<CallTypes> types;
  Name block;
  std::int32_t time = 0;  // on the program's timeline
  double flops = 0, bytes = 0;
  bool recomputed = false;  // forward did it before

  /// True where it begins a transfer: what waits for one has neither operands nor results.
  bool is_start() const { return !kernel && !(ins.empty() && outs.empty()); }
};

/// Which implementation runs it: a kernel's name, "comm", or "copy" from one memory to another.
std::string_view kernel_name(const Call& call);
std::int64_t workspace_bytes(const Call& call);
/// "matmul", "fused(mul,add)": the op, with those of its body where it has one.
std::string op_text(const Call& call);
/// "f32[4,256] f32[256,8]@packed -> f32[4,8]"
std::string types_text(const Call& call);

struct RegionPlan {
  RegionKind kind = RegionKind::Forward;
  int chunk = 0;
  std::vector<Call> calls;

  bool runs_in(const Action& action) const {
    return kind == action.region && chunk == action.chunk;
  }
};

struct NamedTensor {
  std::string name;
  TensorType type;  // of the shard
  Place place;
  Shape logical;  // of the whole
  Shared<Placement> placement;
  InputRange range = {};  // of a batch input
};

/// A buffer of the work section, or a copy below it, in a plan with guards: there are free bytes on
/// both sides of it at the times first ... last.
struct GuardedBuffer {
  static constexpr std::int32_t kEver = std::numeric_limits<std::int32_t>::max();  // as last
  Place place;
  std::int64_t bytes = 0;
  std::int32_t first = 0, last = 0;
  std::string copy = {};  // the path of that state; empty: it is none
};

/// Bytes at the fullest moment of a program on the device: of the work section by content, of the
/// state section by role.
struct MemoryUse {
  std::int64_t parameters = 0, optimizer = 0, caches = 0, gradients = 0, activations = 0,
               packed = 0, temporaries = 0, inputs = 0;
};

/// A program's use of the work section of a pool.
struct WorkUse {
  std::int64_t bytes = 0;
  std::int64_t lower_bound_bytes = 0;  // most bytes alive at once
  std::int64_t unshared_bytes = 0;     // if no two buffers were at one place
};

/// Bytes that forward of a block of the model keeps for backward, and work of it that backward
/// repeats. A block is "layers.3", or a part outside of layers: "wte".
struct BlockUse {
  std::string block;
  PerMemory<std::int64_t> kept_bytes;         // of one micro-batch
  double recomputed_flops = 0;                // of one step
  std::map<std::string, int> recomputed_ops;  // how many of each, in one micro-batch
};

/// A bucket: values that one all_reduce sums.
struct BucketUse {
  RegionKind region = RegionKind::Update;
  std::int64_t values = 0;
  std::int64_t bytes = 0;         // of all of them
  std::int64_t copied_bytes = 0;  // of these: of values that could not be computed in the bucket
  friend bool operator==(const BucketUse&, const BucketUse&) = default;
};

struct ProgramPlan {
  std::string name;
  /// What it computes on this rank, in Form::Local; null unless CompileOptions::keeps_local.
  std::shared_ptr<const Program> local = {};
  std::int64_t microbatches = 1;
  std::int32_t transfers = 0;  // their tickets are 0 ... transfers - 1
  std::vector<RegionPlan> regions;
  Actions actions;
  std::vector<EdgeBytes> edges;    // of the whole pipeline
  std::vector<NamedTensor> batch;  // by name, so that all ranks have one order
  std::vector<NamedTensor> metrics;
  PerMemory<WorkUse> work;
  MemoryUse memory;
  std::vector<GuardedBuffer> guarded;  // empty without guards
  double flops = 0;                    // of one step
  double recomputed_flops = 0;         // of these: of what backward computes again
  std::vector<BlockUse> blocks;        // in the order of forward
  std::vector<BucketUse> buckets;      // by region, in the order of their nodes

  std::size_t index_of(RegionKind kind, int chunk = 0) const {
    return static_cast<std::size_t>(region_index(regions, kind, chunk));
  }
  const RegionPlan& region(RegionKind kind, int chunk = 0) const {
    return regions[index_of(kind, chunk)];
  }
  bool runs(const Call& call, const Action& action) const {
    return runs_in(call.when, action.microbatch, microbatches) &&
           action.microbatch + call.ahead < microbatches;
  }
};

/// A scalar that programs read, written once at start.
struct ConstantPlan {
  DType dtype = DType::F32;
  double value = 0;
  Place place;
};

struct StatePlan {
  State state;                    // `value` is of no meaning here
  TensorType type;                // of the shard
  Place place;                    // on ranks that have it
  Shape logical;                  // of the whole
  std::vector<int> stages = {0};  // that have it, in order

  bool is_on(int stage) const { return std::ranges::find(stages, stage) != stages.end(); }
};

/// Everything that one rank runs.
struct Plan {
  Mesh mesh;                   // of the ranks of one stage: without axes of time
  int stages = 1;              // of the pipeline
  std::uint64_t seed = 1;      // of random ops
  bool tf32 = false;           // products of f32 may be made of operands in TF32, by GPUs
  bool vendor_kernels = true;  // attention may be a kernel of the accelerator's vendor
  int rank = 0;  // of the world: the ranks of stage 0 come first, then those of stage 1, ...
  std::vector<ChunkPin> cut;      // the blocks of each chunk; empty: one chunk
  std::vector<StatePlan> states;  // of all stages, in an order that all ranks share
  std::vector<ConstantPlan> constants;
  PerMemory<std::int64_t> state_bytes;
  std::int64_t base_bytes = 0;   // of states that no program writes, which other ranks have too
  std::int64_t guard_bytes = 0;  // on each side of every buffer, for tests; 0: buffers touch
  std::vector<ProgramPlan> programs;

  /// How many ranks the world has.
  std::int64_t ranks() const { return mesh.ranks() * stages; }
  int rank_of(int stage, int rank_in_stage) const {
    return static_cast<int>(stage * mesh.ranks()) + rank_in_stage;
  }
  int stage() const { return static_cast<int>(rank / mesh.ranks()); }
  int rank_in_stage() const { return static_cast<int>(rank % mesh.ranks()); }
  bool has(const StatePlan& state) const { return state.is_on(stage()); }
  const ProgramPlan& program(std::string_view name) const;
  /// One that this rank has; nullptr otherwise.
  const StatePlan* find_state(std::string_view path) const;
  std::int64_t work_bytes(Memory memory = Memory::Device) const;
  /// Size of the pool in that memory: the state section and the largest work section.
  std::int64_t bytes(Memory memory) const { return state_bytes[memory] + work_bytes(memory); }
  /// What this rank needs on its device, with what it has in common with others.
  std::int64_t peak_bytes() const { return bytes(Memory::Device) + base_bytes; }
  /// Which states of Section::Base this rank has, and which part of each: ranks of one process
  /// with the same key have one pool for them.
  std::string base_key() const;
  /// How many keys all ranks have.
  std::int64_t base_keys() const;
  std::int64_t host_bytes() const { return bytes(Memory::Host); }
  std::int64_t lower_bound_bytes(Memory memory = Memory::Device) const;
};

/// Everything in a pool starts at a multiple of this.
inline constexpr std::int64_t kAlignment = 64;
constexpr std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace tessera
