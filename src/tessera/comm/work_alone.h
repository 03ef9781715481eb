#pragma once
/// Long work that one rank does while the others wait for it.

#include <functional>

#include "tessera/comm/communicator.h"

namespace tessera {

/// Runs `work` on a thread of its own, while this one shows the others that the rank is alive:
/// reading a text or writing a checkpoint may take longer than their deadline. `work` calls nothing
/// of comm. world == nullptr: there are no others. Rethrows what `work` throws.
void work_alone(Communicator* world, const std::function<void()>& work);

}  // namespace tessera
