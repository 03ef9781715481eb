#pragma once
/// Constants of a machine from measured times.

#include <array>
#include <functional>
#include <span>
#include <vector>

#include "tessera/plan/predict.h"
#include "tessera/runtime/samples.h"

namespace tessera {

/// Positive parameters from `first` on, so that `seconds(parameters, i)` come near `times[i]`:
/// least squares of the logarithms of the ratios, in which a ratio beyond 1.5 counts as its
/// logarithm, not as the square, so that a few disturbed times do little.
std::vector<double> fit_logarithms(
    const std::function<double(std::span<const double>, std::size_t)>& seconds,
    const std::vector<double>& times, std::vector<double> first);

/// kernel_start, memory_bandwidth and, from kernels with much arithmetic, other_arithmetic.
void fit_streams(const std::vector<KernelSample>& streams,
                 const std::vector<KernelSample>& arithmetic, DeviceSpeed& device);
/// Of a device whose streams are known.
FloatSpeed fit_products(const std::vector<KernelSample>& samples, const DeviceSpeed& device);
/// The share of the speed of products that attention reaches; of floats whose products are known.
double fit_attention(const std::vector<KernelSample>& samples, const DeviceSpeed& device);
/// The share of the f32 speed that other kernels with much arithmetic reach.
double fit_others(const std::vector<KernelSample>& samples, const DeviceSpeed& device);
/// Speed and latency; `otherwise` without samples.
LinkSpeed fit_link(const std::vector<MoveSample>& samples, const LinkSpeed& otherwise);

/// A step that was predicted with weights of 1 and measured.
struct StepSample {
  PartSeconds exposed{};
  double bubble = 0;
  double seconds = 0;  // measured
};
/// Weights above 0 that make the sums of weighted parts come near what was measured: least squares
/// of relative errors, drawn to 1, which they stay where no step has the part. Weights of what is a
/// small part of all steps move little: what they are cannot be seen there.
CostWeights fit_weights(const std::vector<StepSample>& steps);

}  // namespace tessera
