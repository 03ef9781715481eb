#pragma once
/// A step's record as bytes, for ranks that hear of it.

#include <string>
#include <string_view>

#include "tessera/train/callbacks.h"

namespace tessera {

std::string to_bytes(const StepRecord& record);
/// The record with the same bits. Errors: Broken: other bytes.
StepRecord step_of_bytes(std::string_view bytes);

}  // namespace tessera
