/// MPI_Finalize of failing_ranks, in which one rank stops.

#include <signal.h>

extern int rank_that_stops_in_finalize, this_rank;

/// Of the MPI library, which calls it as well by its other name.
extern "C" int PMPI_Finalize();
extern "C" int MPI_Finalize() {
  if (rank_that_stops_in_finalize >= 0 && rank_that_stops_in_finalize == this_rank) raise(SIGSTOP);
  return PMPI_Finalize();
}
