#include "tessera/accelerator/accelerator.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>
#include <numeric>

#include "tessera/accelerator/board.h"
#include "tessera/accelerator/compile_within.h"
#include "tessera/accelerator/engine.h"
#include "tessera/accelerator/plugin_work.h"
#include "tessera/accelerator/product_rate.h"
#include "tessera/accelerator/program_modules.h"
#include "tessera/base/error.h"
#include "tessera/base/index.h"
#include "tessera/base/text.h"
#include "tessera/comm/share_text.h"
#include "tessera/pjrt/plugin.h"
#include "tessera/pjrt/topology.h"

namespace tessera {

namespace {

constexpr int kAllDevices = 0;          // that there are; of XLA's CPU one
constexpr float kShareOfMemory = 0.9F;  // XLA alone takes three quarters; CUDA needs some, too
constexpr int kGpusOfHost = 8;          // where many are described

/// XLA's CPU makes as many devices as it is told. Of GPUs this process takes as many, and with `all_memory` most of their memory at once, as XLA's
/// allocator does best.
pjrt::Client client_of(const pjrt::Plugin& plugin, const Processes& processes,
                       const std::map<std::string, int>& visible, bool all_memory = true,
                       pjrt::KeyValueStore store = {}) {
  const std::string file = std::filesystem::path(plugin.file()).filename().string();
  const auto is = [&](const char* kind) { return file.find(kind) != std::string::npos; };
  const ProcessRanks& here = processes.here();
  pjrt::NamedValues options;
  if (is("cpu")) options.push_back({"cpu_device_count", std::int64_t{std::max(here.count, 1)}});
  for (const char* const kind : {"cuda", "rocm"}) {
    if (!is(kind)) continue;
    const auto seen = visible.find(kind);
    std::vector<std::int64_t> own(static_cast<std::size_t>(here.count));
    std::iota(own.begin(), own.end(),
              std::int64_t{first_gpu(here, seen == visible.end() ? 0 : seen->second)});
    if (here.count != kAllDevices) options.push_back({"visible_devices", own});
    options.push_back({"preallocate", all_memory});
    if (all_memory) options.push_back({"memory_fraction", kShareOfMemory});
  }
  if (processes.all.size() > 1) {
    options.push_back({"node_id", std::int64_t{processes.own}});
    options.push_back({"num_nodes", static_cast<std::int64_t>(processes.all.size())});
  }
  return pjrt::Client(plugin, options, std::move(store));
}

const pjrt::Plugin& plugin_of(const AcceleratorOptions& options) {
  return pjrt::load_plugin(pjrt::find_plugin(options.plugin, options.folder));
}

std::string name_of(const pjrt::Plugin& plugin, const std::string& platform) {
  return text("pjrt:", platform, " ", std::filesystem::path(plugin.file()).filename().string(), " ",
              to_text(plugin.version()));
}

/// "2 x NVIDIA H100 80GB HBM3, 79.6 GiB each"
std::string devices_text(const pjrt::Client& client) {
  std::map<std::string, std::int64_t> kinds;
  for (const pjrt::Device& device : client.local_devices()) {
    const std::optional<pjrt::MemoryStats> memory = client.memory_stats(device);
    ++kinds[memory && memory->limit ? text(device.kind, ", ", bytes_text(*memory->limit), " each")
                                    : device.kind];
  }
  std::vector<std::string> out;
  for (const auto& [kind, count] : kinds) out.push_back(text(count, " x ", kind));
  return join(out, "; ");
}

/// What a run may take of a device's memory.
std::optional<std::int64_t> share_of(std::optional<std::int64_t> bytes) {
  if (!bytes) return bytes;
  return static_cast<std::int64_t>(static_cast<double>(kShareOfMemory) *
                                   static_cast<double>(*bytes));
}

/// Of limits; nothing: there is none.
std::optional<std::int64_t> least_of(std::optional<std::int64_t> a, std::optional<std::int64_t> b) {
  return a && b ? std::min(a, b) : a ? a : b;
}

/// So many of a GPU, on hosts as many are usually put into.
pjrt::Topology topology_of(const pjrt::Plugin& plugin, std::string_view gpu, int gpus) {
  const int hosts = gpus % kGpusOfHost == 0 ? gpus / kGpusOfHost : 1;
  return pjrt::gpu_topology(plugin, gpu, hosts, gpus / hosts);
}

/// Modules for devices that are not here; stages in the middle of a pipeline are often the same.
class CompiledOnce {
 public:
  CompiledOnce(const pjrt::Topology& topology, const pjrt::Plugin& plugin)
      : topology_(topology), flags_(pjrt::flags_for(plugin)) {}

  pjrt::CompiledMemory memory(const hlo::Module& module, const pjrt::NamedValues& more_flags) {
    pjrt::CompileOptions options{.num_replicas = static_cast<int>(module.replicas()),
                                 .flags = flags_};
    options.flags.insert(options.flags.end(), more_flags.begin(), more_flags.end());
    const std::string all_but_name =
        to_bytes(options) + module.text.substr(module.text.find(" attributes"));
    const auto [known, fresh] = known_.try_emplace(all_but_name);
    if (fresh) known->second = topology_.compile(module.text, options).memory();
    return known->second;
  }

 private:
  const pjrt::Topology& topology_;
  pjrt::NamedValues flags_;
  std::map<std::string, pjrt::CompiledMemory> known_;
};

class PluginBackend final : public Accelerator {
 public:
  PluginBackend(const AcceleratorOptions& options, const Processes& processes,
                const std::shared_ptr<Board>& board)
      : PluginBackend(plugin_of(options), options, processes, board) {}
  PluginBackend(const pjrt::Plugin& plugin, const AcceleratorOptions& options,
                const Processes& processes, const std::shared_ptr<Board>& board)
      : programs_(std::make_shared<LoadedPrograms>(
            client_of(plugin, processes, options.visible, /*all_memory=*/true,
                      board ? board->store() : pjrt::KeyValueStore{}),
            processes, board, options)),
        plans_(make_described_device()),
        name_(name_of(plugin, client().platform_name())) {}
  ~PluginBackend() override { programs_->let_go(); }

  std::string name() const override { return name_; }
  Device& device() const override { return *plans_; }
  bool in_main_memory() const override { return client().platform_name() == "cpu"; }
  bool reads_programs() const override { return true; }
  std::unique_ptr<Engine> start(Plan plan, Communicator* world, EngineOptions) const override {
    return std::make_unique<AcceleratorEngine>(*programs_, std::move(plan), world);
  }
  bool failed() const override { return programs_->failed() || client().plugin().failed(); }
  double product_rate(double seconds) const override {
    return tessera::product_rate(*programs_, seconds);
  }

 private:
  const pjrt::Client& client() const { return programs_->client(); }

  std::shared_ptr<LoadedPrograms> programs_;
  std::unique_ptr<Device> plans_;
  std::string name_;
};

/// Where ranks of a process find what the one that leads has made, by a name of its own.
class SharedBackends {
 public:
  static std::string add(const std::shared_ptr<Accelerator>& made) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(all_, [](const auto& entry) { return entry.second.expired(); });
    std::string name = text(++last_);
    all_[name] = made;
    return name;
  }
  /// Errors: Fault::Peer: the rank that made it has failed meanwhile.
  static std::shared_ptr<Accelerator> find(const std::string& name) {
    const std::scoped_lock lock(mutex_);
    const auto found = all_.find(name);
    std::shared_ptr<Accelerator> out = found == all_.end() ? nullptr : found->second.lock();
    if (out == nullptr)
      fail(Fault::Peer, "the rank that leads this process has failed; look at its error");
    return out;
  }

 private:
  static inline std::mutex mutex_;
  static inline std::map<std::string, std::weak_ptr<Accelerator>> all_;
  static inline std::int64_t last_ = 0;
};

}  // namespace

std::shared_ptr<Accelerator> make_accelerator(const AcceleratorOptions& options) {
  return std::make_shared<PluginBackend>(options, one_process(options.devices), nullptr);
}

std::shared_ptr<Accelerator> make_accelerator(const AcceleratorOptions& options,
                                              Communicator& world, const ProcessName& here) {
  const Processes processes = processes_of(world, here);
  const auto made = std::make_shared<std::shared_ptr<Accelerator>>();
  const auto board = processes.all.size() > 1 ? std::make_shared<Board>() : nullptr;
  const bool leads = processes.leads(world.rank());
  std::function<void()> make;
  if (leads)
    make = [options, processes, board, made] {
      *made = std::make_shared<PluginBackend>(options, processes, board);
    };
  PluginThreads threads;
  work_together(
      threads, make, [] {}, {}, board, &world);
  const std::vector<std::string> names =
      gather_texts(world, leads ? SharedBackends::add(*made) : "", "names of backends");
  if (!leads) *made = SharedBackends::find(names[static_cast<std::size_t>(processes.here().first)]);
  meet(&world, "a backend of the process");
  return *made;
}

CompiledBytes compile_for_gpu(const AcceleratorOptions& options, std::string_view gpu,
                              std::span<const Plan* const> plans, std::string_view program) {
  using Clock = std::chrono::steady_clock;
  const pjrt::Plugin& plugin = plugin_of(options);
  const auto ranks = static_cast<int>(plans[0]->ranks());
  const pjrt::Topology topology = topology_of(plugin, gpu, ranks / static_cast<int>(plans.size()));
  const std::string platform = topology.platform_name();
  const ProgramModules modules =
      modules_of(plans, program, {platform, topology.devices()[0].attributes});
  const Clock::time_point begin = Clock::now();
  CompiledBytes out;
  out.compiler = text(name_of(plugin, platform), " for ", ranks, " x ", topology.devices()[0].kind);
  CompiledOnce compiled(topology, plugin);
  for (const std::vector<hlo::Piece>& pieces : modules.stages) {
    for (const hlo::Piece& piece : pieces)
      out.code += static_cast<std::int64_t>(piece.module.text.size());
  }
  out.stages =
      compile_within(least_of(options.most_bytes, share_of(topology.device_bytes())), modules,
                     platform, [&](int stage, int piece, const pjrt::NamedValues& flags) {
                       return compiled.memory(modules.stages[at(stage)][at(piece)].module, flags);
                     });
  out.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return out;
}

std::vector<PluginFacts> plugins_there(const std::string& folder) {
  std::vector<PluginFacts> out;
  for (const std::string& name : pjrt::plugin_names()) {
    try {
      out.push_back({name, pjrt::find_plugin(name, folder), {}, {}, {}});
    } catch (const Error&) {  // not brought
    }
  }
  return out;
}

void ask(PluginFacts& plugin) {
  try {
    const pjrt::Plugin& loaded = pjrt::load_plugin(plugin.file);
    plugin.version = to_text(loaded.version());
    plugin.devices =
        devices_text(client_of(loaded, one_process(kAllDevices), {}, /*all_memory=*/false));
  } catch (const Error& error) {
    plugin.problem = error.what();
  }
}

}  // namespace tessera
