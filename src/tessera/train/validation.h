#pragma once
/// What a validation scores.

#include "tessera/data/token_stream.h"
#include "tessera/train/prepare.h"

namespace tessera {

/// The windows of the held-out text, or as many from its beginning as --eval-iters says: the same
/// labels on any mesh. They refer to the run's tokens.
EvalWindows validation_windows(const PreparedRun& run);

}  // namespace tessera
