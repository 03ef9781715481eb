/// What stands in where no MPI was found when the program was built.

#include "tessera/comm/process/link.h"

#include "tessera/base/error.h"
#include "tessera/comm/processes.h"

namespace tessera::process {

std::unique_ptr<Link> open_mpi_link() {
  fail(Fault::Usage,
       "ranks in several processes need MPI, and this program was built without it; install Open "
       "MPI (on Debian: apt-get install libopenmpi-dev openmpi-bin) and build again, or give "
       "--devices N, which makes ranks of threads");
}

}  // namespace tessera::process

namespace tessera {
bool has_mpi() { return false; }
}  // namespace tessera
