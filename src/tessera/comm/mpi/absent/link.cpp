/// What stands in where no MPI was found when the program was built.

#include "tessera/comm/mpi/link.h"

#include "tessera/base/error.h"
#include "tessera/comm/mpi.h"

namespace tessera::mpi {

std::unique_ptr<Link> open_link() {
  fail(Fault::Usage,
       "ranks in several processes need MPI, and this program was built without it; install Open "
       "MPI (on Debian: apt-get install libopenmpi-dev openmpi-bin) and build again, or give "
       "--devices N, which makes ranks of threads");
}

}  // namespace tessera::mpi

namespace tessera {
bool has_mpi() { return false; }
}  // namespace tessera
