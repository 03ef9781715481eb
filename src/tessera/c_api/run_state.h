#pragma once
/// One call, and what came of it: what tessera_run is.

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "tessera/c_api/c_api.h"
#include "tessera/c_api/kept.h"
#include "tessera/nn/optimizer.h"
#include "tessera/tensor/host_tensor.h"

struct tessera_run : tessera::Kept {
  std::atomic<bool> stop = false, save = false;
  std::atomic<double> lr = tessera::kRateAsItIs;
  // Arrays that came of it, each with the memory that it points to.
  std::vector<tessera::HostTensor> tensors;
  std::vector<std::string> names;
  std::vector<std::vector<std::int64_t>> shapes;
  std::vector<tessera_array> arrays;
};

namespace tessera {

/// These become arrays of the run.
void keep_arrays(tessera_run& run, const std::map<std::string, HostTensor, std::less<>>& tensors);

}  // namespace tessera
