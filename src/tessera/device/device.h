#pragma once
/// The room `device`: kernels, and the interface by which a plan gets them. cpu/ is this machine's,
/// described.cpp has one that makes none, for plans of other machines.
/// For: an op on known shapes, at addresses that the plan decided.
/// Not for: memory (plan), order (runtime), other ranks (comm).
/// Rejected: oneDNN for products of bf16, and of f32 on AVX2: how fast it is depends on how
/// operands are placed, so these are our own; it makes the others. A library for a single loop
/// weighs more than 130 lines. One level of instructions for all machines: it is a value of the
/// device, so tests can run below the machine's, and ranks take the lowest among them.
///
/// A device: makes a kernel for an op on known shapes. The plan decides the addresses of operands,
/// results and scratch memory.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/device/isa.h"
#include "tessera/ir/op_def.h"
#include "tessera/tensor/sharding.h"

namespace tessera {

/// Which part of a tensor a rank holds. Its first element in micro-batch i is offset + i * step in
/// each dim. Of its elements those are real that lie before `limit` and are among the first `room`;
/// what follows is undefined, but for dims of an operand that the op reduces: there lies the
/// identity of the reduction (reduction_of_padding in ops/collective.h).
struct ShardInfo {
  Shape global;     // logical extents
  Shape offset;     // logical index of the first element
  Shape step;       // per micro-batch; zeros where the time axis does not shard the dim
  Shape limit;      // one past the last logical index that this rank may hold
  Shape room = {};  // without dims: all that is stored
  friend bool operator==(const ShardInfo&, const ShardInfo&) = default;
};

/// The op for which a kernel is wanted. Operands and results are dense and row-major unless
/// `in_strides` says otherwise.
struct KernelRequest {
  OpCall call;  // local types; valid only during make_kernel
  std::vector<Shape>
      in_strides;  // per operand, in elements; dense where the device does not accept strides
  std::vector<ShardInfo> ins, outs;
  std::uint64_t key = 0;        // of a random op
  std::uint64_t seed = 1;       // of random ops inside a body
  std::int64_t coordinate = 0;  // of this rank along the attribute `axes`, where there is one
};

struct KernelArgs {
  const void* const* ins;  // nullptr never
  void* const* outs;       // outs[j] == ins[i] only where the op's in_place column allows it
  void* workspace;         // workspace_bytes() bytes, 64-byte aligned
  std::int64_t microbatch;
};

/// An implementation of an op for given shapes. `run` allocates nothing and is called by one
/// thread; inside, it uses the threads of its device.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Which implementation it is, for profiles and plans: "onednn:matmul", "hwy:layer_norm",
  /// "reference".
  virtual std::string_view name() const = 0;
  virtual std::int64_t workspace_bytes() const { return 0; }
  virtual void run(const KernelArgs& args) const = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;
  /// The level of the instruction set that its kernels use; empty where there are no levels.
  virtual std::string isa() const { return ""; }
  /// How it multiplies matrices of f32, "fma" or "amx"; empty where there is no choice.
  virtual std::string f32_products() const { return ""; }
  /// The first kernel of the device's list for this op that accepts the case; the reference kernel
  /// is last.
  virtual std::unique_ptr<Kernel> make_kernel(const KernelRequest& request) = 0;
  /// True where the op's kernels read this operand at any strides whose last dim is contiguous.
  virtual bool accepts_strides(const OpDef& op, int operand) const = 0;
  /// The layout in which the device would read operand `operand` of a call that runs `uses` times a
  /// step, if a `pack` of it pays; make_kernel accepts what this returns, and makes the pack.
  virtual std::optional<Layout> wanted_layout(const OpCall& call, int operand,
                                              std::int64_t uses) const {
    (void)call, (void)operand, (void)uses;
    return std::nullopt;
  }
  /// A pool in that memory, zero-filled; freed with the device. On the device it is touched by the
  /// threads that will use it.
  virtual void* allocate(Memory memory, std::int64_t bytes) = 0;
  /// The same on the device for several ranks of this process: it lives until the last of them is
  /// done with it, whatever becomes of the device.
  virtual std::shared_ptr<std::byte> allocate_for_several(std::int64_t bytes) = 0;
  /// Bytes of what allocate gave that are on huge pages now, as far as the system says.
  virtual std::int64_t huge_page_bytes(const void* memory) const {
    (void)memory;
    return 0;
  }
  /// Ends the copies that are under way first.
  virtual void release(void* memory) = 0;

  // Pools are memory of this process. The program also reads and writes them by itself (states,
  // batch inputs, collectives, guards), where no kernel runs and no copy is under way that takes
  // part in those bytes. Either side of a copy may be memory outside of pools.
  virtual void fill(void* to, std::byte with, std::int64_t bytes) = 0;
  virtual void copy(void* to, const void* from, std::int64_t bytes) = 0;
  /// Makes ready for so many copies that are started and not yet done: up to these start_copy
  /// allocates nothing. Errors: Fault::Resource: what goes on beside kernels cannot be made.
  virtual void expect_copies(std::int64_t most) = 0;
  /// Begins a copy from one memory to another, which goes on beside kernels; what it reads and
  /// writes stays untouched until wait_copy. Copies run in the order of their starts. Its number.
  virtual std::uint64_t start_copy(void* to, const void* from, std::int64_t bytes) = 0;
  /// Returns when that copy, and so all that were started before it, is done.
  virtual void wait_copy(std::uint64_t number) = 0;
};

/// The best that this machine can take.
CpuChoices machine_choices();

/// The version of the library of matrix products, oneDNN, as it is loaded: other versions round in
/// other ways.
std::string product_library();

struct CpuOptions {
  int threads = 0;           // 0: one per core
  int first_core = -1;       // threads are pinned to this core and those after it, counted among
                             // those that the process may use; -1: not pinned
  bool pack_always = false;  // weights are packed even where that is not expected to pay; for tests
  std::optional<CpuChoices> choices = {};  // nullopt: machine_choices()
  std::int64_t block_bytes = 4 << 20;      // of what a kernel copies at a time to convert it
  std::string offload_folder = {};         // pools of the host are files there; empty: main memory
};
/// Errors: Fault::Usage: an instruction set that the machine lacks; one below avx512 beside an
/// earlier device of this process above it, or the other way round (cpu/isa.h).
std::unique_ptr<Device> make_cpu_device(const CpuOptions& options);

/// A device of which only sizes are known: plans for machines that are not here are compiled with
/// it. It makes a kernel for every op, without workspace, that reads operands as they are stored
/// and as the CPU's would; plans are the CPU's but for workspaces and packed weights, and the same
/// on every processor. Nothing runs on it. Errors: Fault::Usage: memory is asked of it; Broken: a
/// kernel is run.
std::unique_ptr<Device> make_described_device();

}  // namespace tessera
