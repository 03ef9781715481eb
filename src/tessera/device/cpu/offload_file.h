#pragma once
/// Memory of the host that is a file in a folder, such as one on an NVMe drive.

#include <cstdint>
#include <string>

namespace tessera::cpu {

/// A new file of that many bytes, all of them on the drive, mapped shared and zero-filled; munmap
/// ends it. It never has a name where the file system can make such files, and loses it at once
/// elsewhere, so that nothing of it stays behind, however the process ends.
///
/// Errors:  Fault::Resource: the folder is missing or refuses to be written; the drive or the limit
///          on file sizes leaves no room.
void* map_offload_file(const std::string& folder, std::int64_t bytes);

}  // namespace tessera::cpu
