#pragma once
/// Ranks as processes of this machine, without any other launcher: they join over TCP.

#include <string>
#include <vector>

namespace tessera {

/// Starts `ranks` processes of a command and waits for all. Each gets the variables of torchrun,
/// with an address of this machine and a port that the system picks. Rank 0 gets the standard
/// input, and the socket that listens at the port already, so that no other program can take it.
/// All get a secret that was drawn for them (TESSERA_SECRET), without which nothing else joins.
/// Where `bound`, each rank keeps to cores of its own; there are at least as many.
///
/// What has come up ends together: once one has failed, the others have a few seconds to say why,
/// and SIGTERM to this process ends them all: at once, or, where they `tidy`, with a second to
/// remove files that they have not finished.
///
/// Returns the exit code of the first that failed (128 + n: signal n ended it), or 0.
/// Errors:  Fault::Resource: the system starts no more processes, or has no port.
int start_ranks(int ranks, std::vector<std::string> command, bool bound = false, bool tidy = false);

}  // namespace tessera
