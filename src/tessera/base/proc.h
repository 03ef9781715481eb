#pragma once
/// What Linux tells of memory, and of processors.

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

/// The number of kB behind `key` in a file of lines like "VmHWM:  1234 kB", in bytes; 0 where it is
/// not there.
std::int64_t proc_bytes(const std::string& file, std::string_view key);

/// What a control group (version 2) may still take, in its folder; a huge number where it has no
/// limit. What it holds of files counts as free.
std::int64_t free_of_group(const std::string& folder);

/// Main memory that programs started now can have without swapping: of the machine, or of this
/// process's control groups where these have less. 0 where the system does not say.
std::int64_t free_memory_bytes();

/// "AMD EPYC 9654 96-Core Processor"; empty where the system does not say.
std::string processor_name();

/// Seconds of all cores of the machine together, since it started.
struct CoreSeconds {
  double worked = 0;  // what other machines on the same hardware took counts too
  double all = 0;
};
/// Zeros where the system does not say.
CoreSeconds core_seconds();

/// Programs that ran or waited to run, on average over the last minute; 0 where the system does not
/// say.
double load_average();

}  // namespace tessera
