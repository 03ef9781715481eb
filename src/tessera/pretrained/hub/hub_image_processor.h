#pragma once
/// preprocessor_config.json: how pictures become what a model reads.

#include <cstdint>
#include <string>

#include "tessera/data/image_processor.h"

namespace tessera {

inline constexpr const char* kHubImageProcessor = "preprocessor_config.json";

/// That of a folder, as to_text writes it; empty: it has none. Keys that are not there are those of
/// its class. Errors: Fault::Data: a class, or work on pictures, that is not known here.
std::string read_image_processor(const std::string& folder);
/// The file, with the class of transformers that does the same.
std::string image_processor_json(const ImageProcessor& processor, std::int64_t channels);

}  // namespace tessera
