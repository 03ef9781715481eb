#pragma once
/// What `tessera sample` is asked to do.

#include <string>
#include <string_view>
#include <vector>

#include "tessera/apps/command.h"
#include "tessera/apps/flags.h"
#include "tessera/apps/ranks.h"
#include "tessera/train/generate.h"

namespace tessera {

/// Fields of a run's configuration that say where text is written, not what.
inline constexpr std::string_view kSampleMachineFields[] = {"devices",
                                                            "tensor-model-parallel-size",
                                                            "pipeline-model-parallel-size",
                                                            "distributed-timeout",
                                                            "threads",
                                                            "max-isa",
                                                            "amx",
                                                            "pack-weights"};

/// All flags of the command: its own, and those fields.
std::vector<Flag> sample_flags();

/// What `tessera sample` was asked to do.
struct SampleRequest {
  RanksCommand command{.name = "sample", .config = {}, .problems = {}};
  std::vector<std::string> notices;
  std::string checkpoint, prompt, input, output;
  bool prompt_told = false, warm = false;  // --prompt and --temperature were given
  std::int64_t rows = 16;
  GenerateOptions options;
  bool help = false;
};

/// Problems are in the request's command.
SampleRequest read_sample_request(const Arguments& arguments, const OwnFamilies& families);

}  // namespace tessera
