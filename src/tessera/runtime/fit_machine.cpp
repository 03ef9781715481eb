#include "tessera/runtime/fit_machine.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace tessera {

namespace {

/// Of the squares of logarithms, with long tails cut.
double misfit(double ratio) {
  const double off = std::abs(std::log(ratio)), knee = std::log(1.5);
  return off <= knee ? off * off : knee * (2 * off - knee);
}

/// Positive parameters from `first` on, where `cost` is least: one after another, by smaller and
/// smaller factors.
std::vector<double> least(const std::function<double(std::span<const double>)>& cost,
                          std::vector<double> first) {
  double best = cost(first);
  for (double factor = 4; factor > 1.0005; factor = std::sqrt(factor)) {
    for (bool better = true; better;) {
      better = false;
      for (double& parameter : first) {
        for (const double by : {factor, 1 / factor}) {
          const double before = parameter;
          parameter *= by;
          const double now = cost(first);
          if (now < best * (1 - 1e-9)) {
            best = now;
            better = true;
          } else {
            parameter = before;
          }
        }
      }
    }
  }
  return first;
}

/// That member of the floats of the samples.
double fit_share(const std::vector<KernelSample>& samples, const DeviceSpeed& device,
                 double FloatSpeed::*share) {
  std::vector<double> times;
  for (const KernelSample& sample : samples) times.push_back(sample.seconds);
  Machine machine;
  machine.device = device;
  return fit_logarithms(
      [&](std::span<const double> at, std::size_t i) {
        for (FloatSpeed* speed : {&machine.device.f32, &machine.device.bf16, &machine.device.f16})
          speed->*share = at[0];
        return machine.kernel_seconds(samples[i].work);
      },
      times, {0.5})[0];
}

double& half_of(FloatSpeed& speed, std::size_t i) {
  return i == 0 ? speed.half_m : i == 1 ? speed.half_n : speed.half_k;
}

}  // namespace

std::vector<double> fit_logarithms(
    const std::function<double(std::span<const double>, std::size_t)>& seconds,
    const std::vector<double>& times, std::vector<double> first) {
  return least(
      [&](std::span<const double> at) {
        double out = 0;
        for (std::size_t i = 0; i < times.size(); ++i) out += misfit(seconds(at, i) / times[i]);
        return out;
      },
      std::move(first));
}

void fit_streams(const std::vector<KernelSample>& streams,
                 const std::vector<KernelSample>& arithmetic, DeviceSpeed& device) {
  const auto times_of = [](const std::vector<KernelSample>& samples) {
    std::vector<double> out;
    for (const KernelSample& sample : samples) out.push_back(sample.seconds);
    return out;
  };
  const std::vector<double> fitted = fit_logarithms(
      [&](std::span<const double> at, std::size_t i) {
        return 1e-6 * at[0] + 1e-9 * streams[i].work.bytes / at[1];
      },
      times_of(streams), {1, 10});
  device.start_microseconds = fitted[0];
  device.memory_gigabytes_per_s = fitted[1];
  if (arithmetic.empty()) return;
  device.other_gigaflops_per_s = fit_logarithms(
      [&](std::span<const double> at, std::size_t i) {
        return 1e-6 * fitted[0] + 1e-9 * arithmetic[i].work.flops / at[0];
      },
      times_of(arithmetic), {10})[0];
}

FloatSpeed fit_products(const std::vector<KernelSample>& samples, const DeviceSpeed& device) {
  std::vector<double> times;
  for (const KernelSample& sample : samples) times.push_back(sample.seconds);
  const auto speed_at = [](std::span<const double> at) {
    return FloatSpeed{at[0], at[1], at[2], at[3]};
  };
  Machine machine;
  machine.device = device;
  const std::vector<double> fitted = fit_logarithms(
      [&](std::span<const double> at, std::size_t i) {
        machine.device.f32 = machine.device.bf16 = machine.device.f16 = speed_at(at);
        return machine.kernel_seconds(samples[i].work);
      },
      times, {50, 16, 16, 16});
  FloatSpeed out = speed_at(fitted);
  for (std::size_t i = 0; i < 3; ++i) {
    if (half_of(out, i) < 0.01) half_of(out, i) = 0;
  }
  return out;
}

double fit_attention(const std::vector<KernelSample>& samples, const DeviceSpeed& device) {
  return fit_share(samples, device, &FloatSpeed::attention);
}

double fit_others(const std::vector<KernelSample>& samples, const DeviceSpeed& device) {
  return fit_share(samples, device, &FloatSpeed::others);
}

LinkSpeed fit_link(const std::vector<MoveSample>& samples, const LinkSpeed& otherwise) {
  if (samples.empty()) return otherwise;
  std::vector<double> times;
  for (const MoveSample& sample : samples) times.push_back(sample.seconds);
  const std::vector<double> fitted = fit_logarithms(
      [&](std::span<const double> at, std::size_t i) {
        return 1e-9 * samples[i].bytes / at[0] + 1e-6 * samples[i].steps * at[1];
      },
      times, {10, 1});
  LinkSpeed out = otherwise;
  out.gigabytes_per_s = fitted[0];
  out.microseconds = fitted[1];
  return out;
}

CostWeights fit_weights(const std::vector<StepSample>& steps) {
  // A weight that is e times or an e-th costs as much as a step that is 3 % off.
  constexpr double kDraw = 1e-3;
  const auto part = [](const StepSample& step, TimePart of) {
    return step.exposed[static_cast<std::size_t>(of)];
  };
  // Rows of what each weight multiplies, as shares of what was measured. Waiting is for the others:
  // it is theirs in equal parts.
  std::vector<std::array<double, 4>> rows;
  for (const StepSample& step : steps) {
    std::array<double, 4> row = {
        part(step, TimePart::Products) + part(step, TimePart::OtherKernels),
        part(step, TimePart::Inner), part(step, TimePart::Inter) + part(step, TimePart::Messages),
        part(step, TimePart::Data)};
    double sum = 0;
    for (const double seconds : row) sum += seconds;
    const double scale = sum > 0 ? (1 + step.bubble / sum) / step.seconds : 0;
    for (double& seconds : row) seconds *= scale;
    rows.push_back(row);
  }
  const std::vector<double> out = least(
      [&](std::span<const double> weights) {
        double cost = 0;
        for (const double weight : weights) cost += kDraw * std::log(weight) * std::log(weight);
        for (const auto& row : rows) {
          const double share = std::inner_product(row.begin(), row.end(), weights.begin(), 0.0);
          cost += (share - 1) * (share - 1);
        }
        return cost;
      },
      {1, 1, 1, 1});
  return {out[0], out[1], out[2], out[3]};
}

}  // namespace tessera
