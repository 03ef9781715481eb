#pragma once
/// How the ranks of a world find each other over TCP.

#include <chrono>
#include <string>
#include <vector>

#include "tessera/comm/process/tcp/secret.h"
#include "tessera/comm/process/tcp/sockets.h"

namespace tessera::process {

/// What a rank knows of its world before it has met the others.
struct Rendezvous {
  int rank = 0, size = 1;
  std::string address;       // of rank 0: a name or a number
  int port = 0;              // at which it listens
  std::string run;           // what tells two runs of one address and port apart; may be empty
  std::string source;        // where address and port were read, for messages
  int listener = -1;         // of rank 0: a file that listens there already; -1: none
  Secret secret = Secret();  // of the run
};

/// Connects this rank with every other, each pair once. By rank; that of this rank is not open.
///
/// Rank 0 leads: it listens at that port. The others tell it who they are and where they listen
/// themselves; when all are there, it tells every rank all addresses. Then each connects to those
/// below it, and says when it has all connections: nobody goes on before all have. Each of the two
/// parts may take `limit`.
///
/// Both sides of each connection prove that they know the secret of the run (introduce.h), and what
/// they say until they have met has keyed hashes (line.h). Anything else that listens where rank 0
/// is to be is left, and rank 0 waited for. Anything else that connects (another program, a rank of
/// another run, of another version, or without the secret) gets a sentence and is ignored; what
/// says nothing is let go when it is one of too many.
///
/// Errors:  Fault::Peer, Usage or Resource, on every rank that takes part: an address without a
///          host, a port in use, no more files; a rank that does not come within `limit`, cannot be
///          reached, comes twice, or was given another size or protocol. One rank throws the
///          message, the others Reported.
std::vector<Socket> meet(const Rendezvous& where, std::chrono::milliseconds limit);

}  // namespace tessera::process
