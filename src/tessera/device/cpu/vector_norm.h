#pragma once
/// What the row functions of norms are handed.

#include <cstdint>

namespace tessera::cpu {

/// Rows of n numbers. layer_norm has a mean, and perhaps a bias; rms_norm has neither.
struct NormRows {
  const float *x, *weight, *bias, *mean_in, *rstd_in, *dy;
  float *y, *mean, *rstd;       // forward
  float *dx, *dweight, *dbias;  // backward; the last two are sums over the rows
  std::int64_t n;
  float eps;
};

}  // namespace tessera::cpu
