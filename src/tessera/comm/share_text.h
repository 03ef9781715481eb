#pragma once
/// Texts that ranks hand each other outside of steps: few, and of any length.

#include <string>
#include <vector>

#include "tessera/comm/communicator.h"

namespace tessera {

/// Every rank's text, by rank. `name` stands in messages, as that of a collective.
std::vector<std::string> gather_texts(Communicator& world, const std::string& mine,
                                      const std::string& name);

/// The same; nullptr: there is one rank.
std::vector<std::string> gather_texts(Communicator* world, const std::string& mine,
                                      const std::string& name);

/// Rank 0's text.
std::string share_text(Communicator& world, const std::string& text, const std::string& name);

}  // namespace tessera
