#pragma once
/// A program's samples and scores, as the functions of an ordinary run.

#include <atomic>

#include "tessera/c_api/c_api.h"
#include "tessera/user_code/own_run.h"

namespace tessera {

enum class ProgramUse { Train, Evaluate };  // without training, samples may lack labels

/// `program` outlives them. `failed` is set before one of them throws because a function of the
/// program failed. Errors: Fault::Data: what problem() says; samples that are not what was asked
/// for; rows that were filled up, which the model would read.
OwnFunctions functions_of(const tessera_program& program, ProgramUse use,
                          std::atomic<bool>& failed);

}  // namespace tessera
