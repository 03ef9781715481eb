#include "tessera/pjrt/compile_options.h"

#include <filesystem>

#include "tessera/base/error.h"
#include "tessera/pjrt/c/proto.h"

namespace tessera::pjrt {

namespace {

/// DeviceAssignmentProto: 1 replicas, 2 partitions, 3 for each partition {1 its device per replica}.
std::string assignment_bytes(const CompileOptions& options) {
  const auto& assignment = options.device_assignment;
  check(static_cast<int>(assignment.size()) == options.num_replicas,
        "compile options: a device assignment of ", assignment.size(), " replicas, and there are ",
        options.num_replicas);
  std::string out;
  c::put_number(out, 1, options.num_replicas);
  c::put_number(out, 2, options.num_partitions);
  for (int partition = 0; partition < options.num_partitions; ++partition) {
    std::vector<std::int64_t> devices;
    for (const std::vector<std::int64_t>& of_replica : assignment) {
      check(static_cast<int>(of_replica.size()) == options.num_partitions,
            "compile options: a replica with ", of_replica.size(), " devices, and there are ",
            options.num_partitions, " partitions");
      devices.push_back(of_replica[static_cast<std::size_t>(partition)]);
    }
    std::string computation;
    c::put_numbers(computation, 1, devices);
    c::put_bytes(out, 3, computation);
  }
  return out;
}

/// An entry of the map of overrides: 1 name, 2 {1 text, 2 bool, 3 integer, 4 double}.
std::string flag_bytes(const NamedValue& flag) {
  std::string value;
  if (const auto* string = std::get_if<std::string>(&flag.value)) {
    c::put_bytes(value, 1, *string);
  } else if (const auto* boolean = std::get_if<bool>(&flag.value)) {
    c::put_number(value, 2, *boolean ? 1 : 0);
  } else if (const auto* number = std::get_if<std::int64_t>(&flag.value)) {
    c::put_number(value, 3, *number);
  } else {
    const auto* real = std::get_if<float>(&flag.value);
    check(real != nullptr, "compile options: flag ", flag, " is a list; give a text or a number");
    c::put_double(value, 4, static_cast<double>(*real));
  }
  std::string out;
  c::put_bytes(out, 1, flag.name);
  c::put_bytes(out, 2, value);
  return out;
}

}  // namespace

NamedValues flags_for(const Plugin& plugin) {
  namespace fs = std::filesystem;
  std::error_code ignored;  // a folder that cannot be seen is not there
  const fs::path at = fs::absolute(plugin.file()).parent_path();
  const fs::path cuda = at.parent_path().parent_path() / "nvidia" / "cu13";
  if (!fs::is_directory(cuda, ignored)) return {};
  return {{"xla_gpu_cuda_data_dir", cuda.string()}};
}

NamedValues leaner_flags(std::string_view platform) {
  if (platform != "cuda" && platform != "rocm") return {};
  return {{"xla_gpu_enable_latency_hiding_scheduler", false}};
}

std::string to_bytes(const CompileOptions& options) {
  check(options.num_replicas >= 1 && options.num_partitions >= 1,
        "compile options: ", options.num_replicas, " replicas of ", options.num_partitions,
        " partitions; at least 1");
  std::string build;  // ExecutableBuildOptionsProto
  c::put_number(build, 4, options.num_replicas);
  c::put_number(build, 5, options.num_partitions);
  if (!options.device_assignment.empty()) c::put_bytes(build, 9, assignment_bytes(options));
  std::string out;
  c::put_bytes(out, 3, build);
  for (const NamedValue& flag : options.flags) c::put_bytes(out, 7, flag_bytes(flag));
  return out;
}

}  // namespace tessera::pjrt
