#pragma once
/// A profile: when every kernel of some steps ran, and how near each came to what the device can
/// do.

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/runtime/executor.h"
#include "tessera/runtime/rates.h"

namespace tessera {

/// A recorded step, its batch being written included.
struct StepTime {
  std::int64_t step = 0, begin_ns = 0, end_ns = 0;
};

/// The recorded calls. They point into the plan of the executor that ran them.
struct Profile {
  std::string device;
  DeviceRates rates;
  std::vector<StepTime> steps;
  std::vector<CallTime> calls;  // of all steps, in order: as many of each

  double step_seconds() const;             // the median
  double seconds_outside_kernels() const;  // of a step, the median
};

/// The calls of one implementation, op and operand types, in a step.
struct KernelRow {
  std::string kernel, op, types;
  std::string where;  // "layers.*.mlp.up", "5 blocks"
  std::int64_t calls = 0;
  double seconds = 0, flops = 0, bytes = 0;  // seconds: of each call its median over the steps
  double floor_seconds = 0;                  // the least that these calls can take

  /// 1: as fast as the device can do it.
  double share_of_floor() const { return floor_seconds / seconds; }
};

/// The slowest first.
std::vector<KernelRow> kernel_rows(const Profile& profile);

/// True of a kernel that takes much of the step and is far from its floor: where to look first.
bool is_slow(const KernelRow& row, const Profile& profile);

/// For people: a line per row, the time in no kernel, interruptions, and the step; shares add up to
/// 100 %. A row is the median of its kernel, which leaves out steps in which another program took
/// the processor. The median step has some of these interruptions: they are a line of their own.
std::string table(const Profile& profile);

}  // namespace tessera
