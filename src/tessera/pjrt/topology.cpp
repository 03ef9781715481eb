#include "tessera/pjrt/topology.h"

#include <algorithm>
#include <cctype>

#include "tessera/pjrt/c/call.h"
#include "tessera/pjrt/c/gpu_descriptions.h"
#include "tessera/pjrt/c/program.h"

namespace tessera::pjrt {

namespace {

Handle<c::TopologyDescription> create_topology(const Plugin& plugin, const std::string& name,
                                               const NamedValues& options) {
  const std::vector<c::NamedValue> views = c::views(options);
  auto create = c::arguments<c::TopologyDescriptionCreate>();
  create.name = c::view(name);
  create.options = {views.data(), views.size()};
  c::call(plugin, create);
  return Handle<c::TopologyDescription>(plugin, create.topology);
}

Topology described_topology(const Plugin& plugin, const c::GpuDescription& gpu, int hosts,
                            int devices) {
  const std::string counts = text("1x", hosts, "x", devices);
  return Topology(plugin, "", {{"target_config", gpu.text}, {"topology", counts}},
                  gpu.memory_bytes);
}

/// Those that the plugin compiles for: plugins have the descriptions of other platforms' GPUs too,
/// and do not refuse them.
std::vector<c::GpuDescription> known_gpus(const Plugin& plugin) {
  std::vector<c::GpuDescription> known = c::gpu_descriptions(plugin.file());
  if (known.empty()) return known;
  std::string own = described_topology(plugin, known[0], 1, 1).platform_name();
  for (char& letter : own) letter = static_cast<char>(std::toupper(letter));
  std::erase_if(known, [&](const c::GpuDescription& gpu) { return gpu.platform != own; });
  return known;
}

/// The description that has that name, or the only one with that part in it.
const c::GpuDescription& gpu_of(const Plugin& plugin, std::string_view gpu,
                                const std::vector<c::GpuDescription>& known) {
  std::vector<const c::GpuDescription*> found;
  std::vector<std::string> names, all;
  for (const c::GpuDescription& row : known) {
    if (row.name == gpu) return row;
    all.push_back(row.name);
    if (row.name.find(gpu) == std::string::npos) continue;
    found.push_back(&row);
    names.push_back(row.name);
  }
  require(!known.empty(), plugin.file(), " has no description of a GPU; give a plugin for GPUs");
  require(found.size() == 1, plugin.file(), " has descriptions of ", found.size(), " GPUs called ",
          gpu, "; give one of ", join(found.empty() ? all : names));
  return *found[0];
}

}  // namespace

Topology::Topology(const Plugin& plugin, const std::string& name, const NamedValues& options,
                   std::optional<std::int64_t> device_bytes)
    : topology_(create_topology(plugin, name, options)), device_bytes_(device_bytes) {}

std::string Topology::platform_name() const {
  return c::get_text<c::TopologyDescriptionPlatformName>(topology_.plugin(), topology_.get());
}
std::string Topology::platform_version() const {
  return c::get_text<c::TopologyDescriptionPlatformVersion>(topology_.plugin(), topology_.get());
}

std::vector<DescribedDevice> Topology::devices() const {
  const Plugin& plugin = topology_.plugin();
  constexpr c::Call kCall = c::Call::TopologyDescriptionGetDeviceDescriptions;
  const auto list = c::get<c::TopologyDescriptionGetDeviceDescriptions>(plugin, topology_.get());
  std::vector<DescribedDevice> out;
  for (c::DeviceDescription* const device : c::checked(plugin, kCall, list)) {
    out.push_back({c::get<c::DeviceDescriptionId>(plugin, device),
                   c::get<c::DeviceDescriptionProcessIndex>(plugin, device),
                   c::get_text<c::DeviceDescriptionKind>(plugin, device),
                   c::attributes_of(plugin, device)});
  }
  return out;
}

Compiled Topology::compile(std::string_view mlir, const CompileOptions& options) const {
  const Plugin& plugin = topology_.plugin();
  const std::string bytes = to_bytes(options);
  const c::Program program = c::mlir_program(mlir);
  auto compile = c::arguments<c::Compile>();
  compile.topology = topology_.get();
  compile.program = &program;
  compile.options = c::view(bytes);
  c::call(plugin, compile);
  return Compiled(Handle<c::Executable>(plugin, compile.executable));
}

Topology gpu_topology(const Plugin& plugin, std::string_view gpu, int hosts, int devices) {
  require(hosts >= 1 && devices >= 1, "a topology of ", hosts, " hosts with ", devices,
          " GPUs; give at least one of each");
  const std::vector<c::GpuDescription> known = known_gpus(plugin);
  return described_topology(plugin, gpu_of(plugin, gpu, known), hosts, devices);
}

std::vector<std::string> gpu_names(const Plugin& plugin) {
  std::vector<std::string> out;
  for (const c::GpuDescription& row : known_gpus(plugin)) out.push_back(row.name);
  return out;
}

}  // namespace tessera::pjrt
