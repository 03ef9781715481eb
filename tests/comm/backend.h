#pragma once
/// The backend under test: each has a program of its own with these tests.

#include <functional>
#include <vector>

#include "tessera/comm/communicator.h"

namespace tessera {

/// Sizes of worlds to try.
const std::vector<int>& worlds();
/// True where a world of n ranks can be made, whose groups may be joined.
bool has_world(int n);
/// Runs body(world) on n ranks and waits for all of them; does nothing where there are not so many.
/// A world that is smaller than what the program was started with is a group of it.
void run_world(int n, const std::function<void(Communicator& world)>& body);

}  // namespace tessera
