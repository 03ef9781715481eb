#pragma once
/// The machine: its devices, the links between them, its memory, and what work and messages cost
/// there. Decisions, redistribution, the times of a pipeline and predictions take their prices from
/// here. docs/reference/machines.md explains each number.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/tensor/dtype.h"
#include "tessera/tensor/mesh.h"

namespace tessera {

/// The links of one level, each of which some devices share.
struct LinkSpeed {
  double gigabytes_per_s = 0;  // 1e9 bytes, in each direction
  double microseconds = 0;     // from the first word sent to the first word there
  /// How many units of the level below are one of this level (of core: devices); 0: all there are.
  std::int64_t units = 0;
  std::int64_t sharing = 1;  // consecutive devices that share one link
  friend bool operator==(const LinkSpeed&, const LinkSpeed&) = default;
};

/// In whole femtoseconds, so that equal prices are equal.
struct LinkPrice {
  double per_byte = 0, per_step = 0;
};

/// How fast a device computes with one kind of floats. Products of m x k times k x n:
///
///   gigaflops_per_s * m / (m + half_m) * n / (n + half_n) * k / (k + half_k)
struct FloatSpeed {
  double gigaflops_per_s = 100;               // 1e9 operations
  double half_m = 0, half_n = 0, half_k = 0;  // at which sizes it is half as fast
  double attention = 1;  // of attention, as a share of what its products alone would reach
  double others = 1;     // of all other kernels, as a share of DeviceSpeed::other_gigaflops_per_s
  friend bool operator==(const FloatSpeed&, const FloatSpeed&) = default;
};

/// What one device can do.
struct DeviceSpeed {
  FloatSpeed f32, bf16, f16;
  double other_gigaflops_per_s = 100;  // arithmetic of kernels that are no products, in f32
  double memory_gigabytes_per_s = 20;  // read and written
  double start_microseconds = 0;       // of each kernel
  std::int64_t memory_bytes = 0;       // 0: not said
  /// So many devices take turns at one core, as ranks do that outnumber cores. Each has the rates
  /// above while all work; what waits leaves its turn to others.
  std::int64_t sharing = 1;
  /// What moves between devices, and to and from the host, moves while kernels run; else while one
  /// waits for it, as where the cores that compute also copy.
  bool overlap = false;

  const FloatSpeed& of(DType dtype) const;  // f32, where a type has no speed of its own
  friend bool operator==(const DeviceSpeed&, const DeviceSpeed&) = default;
};

/// The memory beside the devices, and the link between it and each device.
struct HostSpeed {
  std::int64_t memory_bytes = 0;  // per device; 0: not said
  double gigabytes_per_s = 10, microseconds = 5;
  friend bool operator==(const HostSpeed&, const HostSpeed&) = default;
};

/// The seconds of a step are alpha x computing + beta1 x sums that finish results of ops + beta2 x
/// all else that moves between ops + gamma x sums and gathers of data parallel ranks.
struct CostWeights {
  double alpha = 1, beta1 = 1, beta2 = 1, gamma = 1;
  friend bool operator==(const CostWeights&, const CostWeights&) = default;
};

/// One axis of the ranks of a group: so many members, each `stride` devices from the next.
struct AxisSpan {
  Level level = Level::Core;
  std::int64_t stride = 1, size = 1;
};
/// Of an axis of the mesh, or a part of one. Errors: an axis of time.
AxisSpan span_of(const Mesh& mesh, std::string_view axis);
std::vector<AxisSpan> spans_of(const Mesh& mesh, const std::vector<std::string>& axes);

/// What a kernel does.
struct KernelWork {
  double flops = 0;
  double bytes = 0;          // read and written
  DType dtype = DType::F32;  // of its operands
  struct Product {
    double m = 0, n = 0, k = 0;
    bool attention = false;  // of queries and keys, and all that attention does with it
  };
  std::optional<Product> product = {};
};

/// Whose kernels plans are made of: this processor's, or nobody's, where a machine is only
/// described.
enum class KernelSource : std::uint8_t { Cpu, Described };

/// Devices are numbered so that neighbours are near: those of a core unit first, then the next core
/// unit of the same socket unit, and so on; nothing moves along an axis of time. The defaults are
/// round figures of one server and a 100 Gb/s network: they order what could be done; what is
/// measured replaces them.
struct Machine {
  std::string name;  // empty: the defaults
  KernelSource kernels = KernelSource::Cpu;
  LinkSpeed core{15, 1};
  LinkSpeed socket{10, 2};
  LinkSpeed host{10, 5};
  LinkSpeed rack{5, 20};
  DeviceSpeed device;
  HostSpeed memory;
  CostWeights weights;
  /// How far predicted times are known to be off, as "3 % on average, 7 % at most, of the 9 runs
  /// that it was fitted to"; empty: nobody has compared any.
  std::string known_error;

  /// Errors: the level of time.
  const LinkSpeed& link(Level level) const;
  /// Devices in one unit of a level; 0: all there are.
  std::int64_t devices(Level level) const;
  std::int64_t devices() const { return devices(Level::Rack); }
  /// The lowest level of which one unit has every group of `devices` neighbours, the first of which
  /// has a number that they divide. Where they do not divide a unit, groups at its end lie in two:
  /// those among the first `in_use` devices count (0: all of the machine).
  Level level_of(std::int64_t devices, std::int64_t in_use = 0) const;

  /// What each member of a group pays per byte that it receives and per step, where the group's
  /// members differ along `axes`, and all groups along these axes do the same at one time. A group
  /// passes its bytes from member to member and so over a shared link once, however many of its
  /// members are behind it. So with `sharing` devices behind a link of the level, `members` of them
  /// of one group, as many groups as fit share its speed: sharing / members. That holds on every
  /// level that the group spans; the slowest counts.
  LinkPrice price(const std::vector<AxisSpan>& axes) const;
  /// The levels whose links such a group uses: bit l of Level l.
  unsigned levels_of(const std::vector<AxisSpan>& axes) const;
  /// What price() says per byte, not rounded; of a link between cores that nobody shares: 1.
  double relative_price(const AxisSpan& axis) const;
  /// Until `bytes` have come, in so many steps.
  double move_seconds(const std::vector<AxisSpan>& axes, double bytes, double steps = 1) const;
  /// Of a message between two devices, of stages that each have so many, all of which send one.
  double message_seconds(std::int64_t from, std::int64_t to, std::int64_t senders,
                         double bytes) const;
  /// Of a copy between a device's memory and the host's.
  double copy_seconds(double bytes) const;
  /// Of a kernel: its arithmetic or its bytes, whichever takes longer, after its start.
  double kernel_seconds(const KernelWork& work) const;
  friend bool operator==(const Machine&, const Machine&) = default;
};

/// In how many steps a message reaches all of so many ranks: the exponent of the least power of two
/// that is not below.
int steps_among(std::int64_t ranks);

/// The levels at which devices are linked, inner first, with their names ("core").
struct MachineLevel {
  std::string_view name;
  Level level;
  LinkSpeed Machine::*link;
};
const std::array<MachineLevel, 4>& machine_levels();

}  // namespace tessera
