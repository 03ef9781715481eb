#pragma once
/// What a run trains, on what and with what, in a few lines for people.

#include <string>
#include <vector>

#include "tessera/train/prepare.h"
#include "tessera/train/run_setup.h"

namespace tessera {

/// Model, data and devices, a line each; `samples` are those that train.
std::vector<std::string> about_run(const PreparedRun& run, const RunSetup& setup,
                                   const Samples& samples);

/// "gpt2, 12 layers, width 768, 12 heads, context 1024, vocabulary 50,257"; says where it is the
/// default model, unless a checkpoint brings it.
std::string model_text(const RunConfig& config, bool from_checkpoint);
/// "4 devices of 2 threads, in bf16 with parameters and updates in f32"
std::string devices_text(const RunConfig& config);

}  // namespace tessera
