#pragma once
/// The cores that a thread may run on.

#include <sched.h>

namespace tessera {

/// Those on which the calling thread may run, and threads that it makes: all of the machine's,
/// unless a launcher, a container or taskset has left fewer. Of a machine with more than 1024, the
/// first 1024.
cpu_set_t usable_cores();
/// At least 1.
int num_usable_cores();

}  // namespace tessera
