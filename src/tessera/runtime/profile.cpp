#include "tessera/runtime/profile.h"
#include "tessera/base/format.h"
#include "tessera/base/median.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <tuple>

namespace tessera {

namespace {

constexpr double kLargeShare = 0.02, kFarFromFloor = 0.5;
constexpr double kSmallShare = 0.001;  // rows below are one line of the table

/// "layers.7.attn" -> "layers.*.attn"
std::string any_number(const std::string& path) {
  std::vector<std::string> parts = split(path, '.');
  for (std::string& part : parts) {
    if (!part.empty() && part.find_first_not_of("0123456789") == std::string::npos) part = "*";
  }
  return join(parts, ".");
}

void add(KernelRow& to, const KernelRow& row) {
  to.calls += row.calls;
  to.seconds += row.seconds;
  to.flops += row.flops;
  to.bytes += row.bytes;
  to.floor_seconds += row.floor_seconds;
}

double seconds_of(const CallTime& time) {
  return static_cast<double>(time.end_ns - time.begin_ns) * 1e-9;
}

/// Calls, milliseconds and share of the step.
std::string costs(const KernelRow& row, double whole) {
  return format("%8lld %10.3f %6.2f%%", static_cast<long long>(row.calls), row.seconds * 1e3,
                100 * row.seconds / whole);
}

std::string speeds(const KernelRow& row, bool slow) {
  return format(" %9.1f %8.1f %6.0f%% %c ", row.flops / row.seconds * 1e-9,
                row.bytes / row.seconds * 1e-9, 100 * row.share_of_floor(), slow ? '!' : ' ');
}

/// "onednn:matmul layers.*.mlp.up f32[...", the op only where the kernel's name does not say it.
std::string name_of(const KernelRow& row) {
  std::vector<std::string> words = {row.kernel};
  if (split(row.kernel, ':').back() != row.op) words.push_back(row.op);
  if (!row.where.empty()) words.push_back(row.where);
  words.push_back(row.types);
  return join(words, " ");
}

std::string head(const Profile& profile) {
  const DeviceRates& rates = profile.rates;
  std::vector<std::string> streams;
  for (const StreamRate& stream : rates.streams) {
    streams.push_back(format("%.0f of %s", stream.bytes_per_s * 1e-9,
                             bytes_text(static_cast<std::int64_t>(stream.bytes)).c_str()));
  }
  return text(
      "profile of steps ", profile.steps.front().step, " to ", profile.steps.back().step, " on ",
      profile.device, "; measured before: ", format("%.1f", rates.flops_per_s * 1e-9),
      " GFLOP/s in an f32 product; GB/s by bytes ", "moved: ", join(streams), "\n",
      "   calls    ms/step   share   GFLOP/s     GB/s   floor   kernel, op, block, types\n");
}

}  // namespace

double Profile::seconds_outside_kernels() const {
  const std::size_t of_step = calls.size() / steps.size();
  std::vector<double> all;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    double outside = static_cast<double>(steps[s].end_ns - steps[s].begin_ns) * 1e-9;
    for (std::size_t i = 0; i < of_step; ++i) outside -= seconds_of(calls[s * of_step + i]);
    all.push_back(outside);
  }
  return median(std::move(all));
}

double Profile::step_seconds() const {
  std::vector<double> all;
  for (const StepTime& step : steps)
    all.push_back(static_cast<double>(step.end_ns - step.begin_ns) * 1e-9);
  return median(std::move(all));
}

std::vector<KernelRow> kernel_rows(const Profile& profile) {
  std::vector<KernelRow> rows;
  std::vector<std::set<std::string>> blocks;
  std::map<std::tuple<std::string_view, std::string, std::string>, std::size_t> row_of_kind;
  const std::size_t steps = profile.steps.size(), of_step = profile.calls.size() / steps;
  check(of_step * steps == profile.calls.size(), "steps of a profile differ in their calls");
  for (std::size_t i = 0; i < of_step; ++i) {
    const Call& call = *profile.calls[i].call;
    std::vector<double> seconds;
    for (std::size_t s = 0; s < steps; ++s)
      seconds.push_back(seconds_of(profile.calls[s * of_step + i]));
    KernelRow row{std::string(kernel_name(call)), op_text(call), types_text(call), "", 1};
    row.seconds = median(std::move(seconds));
    row.flops = call.flops, row.bytes = call.bytes;
    row.floor_seconds = profile.rates.floor_seconds(call.flops, call.bytes);
    const auto [found, fresh] =
        row_of_kind.try_emplace({kernel_name(call), row.op, row.types}, rows.size());
    if (fresh) {
      rows.push_back(std::move(row));
      blocks.emplace_back();
    } else {
      add(rows[found->second], row);
    }
    blocks[found->second].insert(any_number(call.block.str()));
  }
  for (std::size_t i = 0; i < rows.size(); ++i)
    rows[i].where = blocks[i].size() == 1 ? *blocks[i].begin() : text(blocks[i].size(), " blocks");
  std::stable_sort(rows.begin(), rows.end(),
                   [](const KernelRow& a, const KernelRow& b) { return a.seconds > b.seconds; });
  return rows;
}

bool is_slow(const KernelRow& row, const Profile& profile) {
  return row.seconds > kLargeShare * profile.step_seconds() && row.share_of_floor() < kFarFromFloor;
}

std::string table(const Profile& profile) {
  const double whole = profile.step_seconds();
  std::string out = head(profile);
  KernelRow all, small;
  std::size_t others = 0;
  for (const KernelRow& row : kernel_rows(profile)) {
    add(all, row);
    if (row.seconds < kSmallShare * whole) {
      add(small, row);
      ++others;
      continue;
    }
    out += text(costs(row, whole), speeds(row, is_slow(row, profile)), name_of(row), "\n");
  }
  if (others > 0) {
    out += text(costs(small, whole), speeds(small, false), others,
                " kinds of less than 0.1 % of the step each\n");
  }
  const auto line = [&](std::int64_t calls, double seconds, const char* what) {
    KernelRow row;
    row.calls = calls, row.seconds = seconds;
    out += text(costs(row, whole), std::string(29, ' '), what, "\n");
  };
  const double outside = profile.seconds_outside_kernels(),
               interruptions = whole - all.seconds - outside;
  line(0, outside, "in no kernel");
  line(0, std::abs(interruptions) < 1e-9 ? 0 : interruptions,  // sums of times in ns
       "interruptions: the step beyond the medians of its kernels");
  line(all.calls, whole, "the step");
  return out + "! more than 2 % of the step, at less than half of the floor's speed\n";
}

}  // namespace tessera
