#pragma once
/// What `tessera sample` is asked to do.

#include <string>
#include <string_view>
#include <vector>

#include "tessera/apps/command.h"
#include "tessera/apps/flags.h"
#include "tessera/launch/ranks.h"
#include "tessera/train/generate.h"

namespace tessera {

/// All flags of the command: its own, and kDeviceFields.
std::vector<Flag> sample_flags();

/// What `tessera sample` was asked to do.
struct SampleRequest {
  RanksCommand command{.name = "sample", .config = {}, .problems = {}};
  std::vector<std::string> notices;
  std::string checkpoint, prompt, output;
  std::string texts, texts_flag;   // the file of --prompts or --input, and which of the two
  std::vector<std::string> stops;  // texts that end a text
  std::int64_t samples = 1;        // of each prompt
  bool prompt_given = false, warm = false;  // --prompt and --temperature were given
  std::int64_t rows = 16;
  GenerateOptions options;
  bool help = false;
};

/// Problems are in the request's command.
SampleRequest read_sample_request(const Arguments& arguments, const OwnFamilies& families);

}  // namespace tessera
