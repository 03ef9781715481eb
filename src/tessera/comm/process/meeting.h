#pragma once
/// How the ranks of a world find each other over TCP.

#include <chrono>
#include <string>
#include <vector>

#include "tessera/comm/process/sockets.h"

namespace tessera::process {

/// What a rank knows of its world before it has met the others.
struct Place {
  int rank = 0, size = 1;
  std::string address;  // of rank 0: a name or a number
  int port = 0;         // at which it listens
  std::string run;      // what tells two runs of one address and port apart; may be empty
  std::string source;   // where address and port were read, for messages
};

/// Connects this rank with every other, each pair once. By rank; that of this rank is not open.
///
/// Rank 0 listens at the place's port. The others tell it who they are and where they listen
/// themselves; when all are there, it tells every rank all addresses. Then each connects to those
/// below it, and says when it has all connections: nobody goes on before all have.
///
/// Whatever else connects (another program, a rank of another run) is refused with words, and is
/// no part of the world.
///
/// Errors:  Fault::Peer or Fault::Usage, on every rank that takes part: an address without a host,
///          a port in use, a rank that does not come within `limit`, cannot be reached, comes
///          twice, or was told another size or protocol. One rank says it; others throw Reported.
std::vector<Socket> meet(const Place& place, std::chrono::milliseconds limit);

}  // namespace tessera::process
