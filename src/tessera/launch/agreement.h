#pragma once
/// Launched ranks are one run: they hold the same program and the same configuration, and what one
/// of them finds out for all, all know.

#include <functional>
#include <map>
#include <span>
#include <string>

#include "tessera/comm/communicator.h"
#include "tessera/config/config.h"
#include "tessera/config/problems.h"

namespace tessera {

/// What a rank was asked to do, by name: "command", "--lr" and every other flag.
using Asked = std::map<std::string, std::string>;

/// The flags of `config`, for Asked, and what the command has beside them.
Asked asked_of(const std::string& command, const RunConfig& config, const Asked& own = {});

/// A hash of the running program's file, so that two builds of one version are told apart.
std::string program_text();

/// What the ranks, in order, were asked differently: "--lr is 0.001 on rank 0 and 0.01 on rank 1".
/// Empty: nothing.
std::string differences(std::span<const Asked> ranks);

/// With what numbers depend on beside the flags: the program, and the version of the library of
/// matrix products, which is shared and so no part of the program's file.
Asked with_program(Asked asked, const Problems& problems);

/// Ends all ranks unless they were asked the same, by the same program and library, and none has
/// `problems` that others do not have. The first call of comm of a launched rank.
void require_same(Communicator& world, const Asked& asked, const Problems& problems);

/// What rank 0 finds out by `work`, on every rank; the others wait for it. Where it fails, all fail
/// with its error, which is told once. launched == nullptr: there is one rank.
std::map<std::string, std::string> from_leader(
    Communicator* launched, const std::function<std::map<std::string, std::string>()>& work);

}  // namespace tessera
