#pragma once
/// Where the ranks of a run get the secret by which they know each other.

#include <string>

#include "tessera/launch/environment.h"

namespace tessera {

/// The first of these that there is:
///
///   secret_file           what --secret-file named
///   TESSERA_SECRET        the secret itself; `tessera launch` draws one and hands it on so
///   TESSERA_SECRET_FILE   a file with it
///   the user's own file   $XDG_CACHE_HOME/tessera/secret or ~/.cache/tessera/secret, made at its
///                         first use: so the ranks of one user know each other on one machine, and
///                         on several that share home folders
///
/// Files must be of this user (or of root) and closed to all others.
/// Errors:  Fault::Usage: a file that others can read, or that is missing or too short.
///          Fault::Resource: the user's own file cannot be made.
std::string run_secret(const std::string& secret_file, const EnvironmentVariables& environment);

/// What is in a file like these; `what` begins messages: "--token-file: 'FILE'". Errors: as above.
std::string secret_of_file(const std::string& path, const std::string& what);

}  // namespace tessera
