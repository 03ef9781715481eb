#include "tessera/tensor/machine.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "tessera/base/error.h"

namespace tessera {

namespace {

constexpr std::array<MachineLevel, 4> kMachineLevels = {
    MachineLevel{"core", Level::Core, &Machine::core},
    MachineLevel{"socket", Level::Socket, &Machine::socket},
    MachineLevel{"host", Level::Host, &Machine::host},
    MachineLevel{"rack", Level::Rack, &Machine::rack}};

/// How many of the group's members are among `devices` neighbours.
std::int64_t members_among(std::int64_t devices, const std::vector<AxisSpan>& group) {
  std::int64_t out = 1;
  for (const AxisSpan& axis : group)
    out *= std::clamp<std::int64_t>(devices / axis.stride, 1, axis.size);
  return out;
}

/// Not rounded.
struct Price {
  double nanoseconds_per_byte = 0, microseconds = 0;
};

/// True where members of the group are linked at that level: its own, or of inner levels one of
/// which a unit has several members.
bool crosses(const Machine& machine, Level level, const std::vector<AxisSpan>& group) {
  return std::ranges::any_of(group, [&](const AxisSpan& axis) {
    return axis.level == level || (axis.level > level && axis.stride < machine.devices(level));
  });
}

Price price_of(const Machine& machine, const std::vector<AxisSpan>& group) {
  Price out;
  for (const MachineLevel& row : kMachineLevels) {
    if (!crosses(machine, row.level, group)) continue;
    const LinkSpeed& link = machine.*row.link;
    const double users =
        static_cast<double>(link.sharing) / static_cast<double>(members_among(link.sharing, group));
    out.nanoseconds_per_byte = std::max(out.nanoseconds_per_byte, users / link.gigabytes_per_s);
    out.microseconds = std::max(out.microseconds, link.microseconds);
  }
  return out;
}

LinkPrice rounded(const Price& price) {
  return {std::round(1e6 * price.nanoseconds_per_byte), std::round(1e9 * price.microseconds)};
}

/// Of the highest speed, what is left at one extent.
double share_of(double extent, double half) { return extent > 0 ? extent / (extent + half) : 1; }

}  // namespace

const FloatSpeed& DeviceSpeed::of(DType dtype) const {
  return dtype == DType::BF16 ? bf16 : dtype == DType::F16 ? f16 : f32;
}

AxisSpan span_of(const Mesh& mesh, std::string_view axis) {
  check(!mesh.is_time(axis), "no bytes move along an axis of time");
  return {mesh.level(axis), mesh.stride(axis), mesh.size(axis)};
}

std::vector<AxisSpan> spans_of(const Mesh& mesh, const std::vector<std::string>& axes) {
  std::vector<AxisSpan> out;
  for (const std::string& axis : axes) out.push_back(span_of(mesh, axis));
  return out;
}

int steps_among(std::int64_t ranks) {
  return std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(ranks, 1)) - 1);
}

const std::array<MachineLevel, 4>& machine_levels() { return kMachineLevels; }

const LinkSpeed& Machine::link(Level level) const {
  check(level != Level::Time, "no bytes move along an axis of time");
  return this->*kMachineLevels[static_cast<std::size_t>(level) - 1].link;
}

std::int64_t Machine::devices(Level level) const {
  std::int64_t out = 1;
  for (const MachineLevel& row : kMachineLevels) {
    if (row.level <= level) out *= (this->*row.link).units;
  }
  return out;
}

Level Machine::level_of(std::int64_t count, std::int64_t in_use) const {
  std::int64_t end = devices();  // where there are no more groups; 0: nowhere
  if (in_use > 0) end = end == 0 ? in_use : std::min(end, in_use);
  for (const MachineLevel& row : kMachineLevels) {
    const std::int64_t unit = devices(row.level);
    if (unit == 0 || unit % count == 0 || (end > 0 && end <= unit)) return row.level;
  }
  return Level::Rack;
}

LinkPrice Machine::price(const std::vector<AxisSpan>& axes) const {
  return rounded(price_of(*this, axes));
}

unsigned Machine::levels_of(const std::vector<AxisSpan>& axes) const {
  unsigned out = 0;
  for (const MachineLevel& row : kMachineLevels) {
    if (crosses(*this, row.level, axes)) out |= 1U << static_cast<unsigned>(row.level);
  }
  return out;
}

double Machine::relative_price(const AxisSpan& axis) const {
  return core.gigabytes_per_s * price_of(*this, {axis}).nanoseconds_per_byte;
}

double Machine::move_seconds(const std::vector<AxisSpan>& axes, double bytes, double steps) const {
  const LinkPrice link = price(axes);
  return 1e-15 * (link.per_byte * bytes + link.per_step * steps);
}

double Machine::message_seconds(std::int64_t from, std::int64_t to, std::int64_t senders,
                                double bytes) const {
  const auto meet = std::ranges::find_if(kMachineLevels, [&](const MachineLevel& row) {
    const std::int64_t unit = devices(row.level);
    return unit == 0 || from / unit == to / unit;
  });
  const LinkSpeed& link = meet == kMachineLevels.end() ? rack : this->*meet->link;
  const auto users = static_cast<double>(std::clamp<std::int64_t>(senders, 1, link.sharing));
  return 1e-9 * bytes * users / link.gigabytes_per_s + 1e-6 * link.microseconds;
}

double Machine::copy_seconds(double bytes) const {
  return 1e-9 * bytes / memory.gigabytes_per_s + 1e-6 * memory.microseconds;
}

double Machine::kernel_seconds(const KernelWork& work) const {
  const FloatSpeed& speed = device.of(work.dtype);
  double rate = device.other_gigaflops_per_s * speed.others;
  if (work.product) {
    rate = speed.gigaflops_per_s * share_of(work.product->m, speed.half_m) *
           share_of(work.product->n, speed.half_n) * share_of(work.product->k, speed.half_k);
    if (work.product->attention) rate *= speed.attention;
  }
  const double busy =
      1e-9 * std::max(work.flops / rate, work.bytes / device.memory_gigabytes_per_s);
  return busy + 1e-6 * device.start_microseconds;
}

}  // namespace tessera
