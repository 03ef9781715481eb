#include "tessera/accelerator/loaded_programs.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "tessera/accelerator/board.h"
#include "tessera/accelerator/check_attention.h"
#include "tessera/accelerator/compile_within.h"
#include "tessera/accelerator/plugin_work.h"
#include "tessera/accelerator/program_modules.h"
#include "tessera/accelerator/session.h"
#include "tessera/base/error.h"
#include "tessera/base/index.h"
#include "tessera/base/text.h"
#include "tessera/comm/collective.h"
#include "tessera/comm/share_text.h"

namespace tessera {

namespace {

/// The first devices of each process, by rank: a client lists those of others with their process.
std::vector<const pjrt::Device*> devices_of(const pjrt::Client& client,
                                            const Processes& processes) {
  const bool alone = processes.all.size() == 1;
  require(alone || client.devices().size() > client.local_devices().size(), client.plugin().file(),
          " sees no devices but those of its own process, and the run has ", processes.all.size(),
          " processes: it does not join them; start one, with all --devices");
  std::vector<const pjrt::Device*> out;
  for (std::size_t process = 0; process < processes.all.size(); ++process) {
    int missing = processes.all[process].count;
    for (const pjrt::Device& device : alone ? client.local_devices() : client.devices()) {
      if (missing == 0 || (!alone && device.process != static_cast<int>(process))) continue;
      out.push_back(&device);
      --missing;
    }
    const int asked = processes.all[process].count;
    require(missing == 0, "process ", process, " of ", processes.all.size(), " is to drive ", asked,
            " devices, and ", client.plugin().file(), " has ", asked - missing,
            " there; ask for at most as many");
  }
  return out;
}

/// Of what is asked for and what a device has; nothing where a compiler has no choice. (Some do not
/// tell what a program takes.)
std::optional<std::int64_t> most_bytes(const pjrt::Client& client,
                                       std::optional<std::int64_t> asked) {
  if (pjrt::leaner_flags(client.platform_name()).empty()) return std::nullopt;
  for (const pjrt::Device& device : client.local_devices()) {
    const auto stats = client.memory_stats(device);
    if (stats && stats->limit) asked = std::min(asked.value_or(*stats->limit), *stats->limit);
  }
  return asked;
}

/// Nothing where a plugin does not tell it.
pjrt::CompiledMemory memory_of(const pjrt::Executable& executable) {
  try {
    return executable.compiled().memory();
  } catch (const Error&) {
    return {};
  }
}

/// All that a compiled program depends on, but for its options and its text.
std::string device_text(const pjrt::Client& client) {
  const pjrt::Plugin& plugin = client.plugin();
  std::error_code ignored;
  std::string out = text(
      client.platform_name(), "\n", client.platform_version(), "\n", client.local_devices()[0].kind,
      "\n", to_text(plugin.version()), "\n", plugin.file(), " ",
      std::filesystem::file_size(plugin.file(), ignored), " ",
      std::filesystem::last_write_time(plugin.file(), ignored).time_since_epoch().count(), "\n");
  for (const pjrt::NamedValue& fact : plugin.attributes()) out += to_text(fact) + "\n";
  return out;
}

}  // namespace

LoadedPrograms::LoadedPrograms(pjrt::Client client, Processes processes,
                               std::shared_ptr<Board> board, const AcceleratorOptions& options)
    : board_(std::move(board)),
      client_(std::move(client)),
      processes_(std::move(processes)),
      devices_(devices_of(client_, processes_)),
      cache_(options.cache),
      most_bytes_(most_bytes(client_, options.most_bytes)),
      patience_(options.patience) {}

std::string_view LoadedPrograms::memory_kind(Memory memory) const {
  const bool pinned = memory == Memory::Host && reaches_pinned_host(client_.platform_name());
  return pinned ? "pinned_host" : "";
}

pjrt::Executable LoadedPrograms::compiled(const hlo::Module& module, int stage,
                                          const pjrt::NamedValues& flags, From from) const {
  pjrt::CompileOptions options;
  options.num_replicas = static_cast<int>(module.replicas());
  options.flags = pjrt::flags_for(client_.plugin());
  options.flags.insert(options.flags.end(), flags.begin(), flags.end());
  for (std::int64_t r = 0; r < module.replicas(); ++r) {
    options.device_assignment.push_back(
        {device(static_cast<int>(stage * module.replicas() + r)).id});
  }
  pjrt::Executable loaded = executable(module.text, options, from);
  std::vector<int> here;  // in the order of ranks
  for (const auto& of_replica : options.device_assignment) {
    const int id = static_cast<int>(of_replica[0]);
    if (client_.device(id).local) here.push_back(id);
  }
  check(loaded.devices() == here, "a module is loaded on devices ", join(loaded.devices()),
        ", and not on ", join(here));
  return loaded;
}

/// XLA's CPU compiles in seconds, and complains of what it loads, so nothing of it is kept.
bool LoadedPrograms::keeps() const { return client_.platform_name() != "cpu" && cache_.keeps(); }

pjrt::Executable LoadedPrograms::executable(const std::string& module,
                                            const pjrt::CompileOptions& options, From from) const {
  if (!keeps()) return pjrt::compile(client_, module, options);
  const std::string key = text(device_text(client_), to_bytes(options), module);
  try {
    const auto kept = from == From::Compiler ? std::nullopt : cache_.find(key);
    if (kept) return pjrt::load(client_, *kept);
  } catch (const Error&) {  // of another driver, say: compiled anew
  }
  if (from == From::Kept) throw NotKept{};
  pjrt::Executable out = pjrt::compile(client_, module, options);
  try {
    cache_.keep(key, out.compiled().serialize());
  } catch (const Error&) {  // a plugin that cannot
  }
  return out;
}

LoadedProgram LoadedPrograms::compile(const std::vector<std::shared_ptr<const Plan>>& plans,
                                      std::size_t number, From from) const {
  if (from == From::Kept && !keeps()) throw NotKept{};
  const Plan& plan = *plans[0];
  std::vector<const Plan*> of_stages;
  for (int s = 0; s < plan.stages; ++s) of_stages.push_back(plans[at(plan.rank_of(s, 0))].get());
  ProgramModules modules = modules_of(of_stages, plan.programs[number].name, target());
  if (modules.call_kernels())
    std::call_once(checked_kernels_, [&] { require_attention(client_, modules.options); });
  std::map<std::tuple<int, int, bool>, pjrt::Executable> executables;  // stage, piece, leaner
  const auto compile = [&](int stage, int piece, const pjrt::NamedValues& flags) {
    pjrt::Executable made =
        compiled(modules.stages[at(stage)][at(piece)].module, stage, flags, from);
    const pjrt::CompiledMemory memory = most_bytes_ ? memory_of(made) : pjrt::CompiledMemory{};
    executables.insert_or_assign({stage, piece, !flags.empty()}, std::move(made));
    return memory;
  };
  const std::vector<StageBytes> bytes =
      compile_within(most_bytes_, modules, client_.platform_name(), compile);
  LoadedProgram out{{}, std::move(modules.starts)};
  for (int s = 0; s < plan.stages; ++s) {
    std::vector<LoadedModule>& stage = out.stages.emplace_back();
    for (int p = 0; p < std::ssize(modules.stages[at(s)]); ++p)
      stage.push_back({std::move(modules.stages[at(s)][at(p)].module),
                       std::move(executables.at({s, p, !bytes[at(s)].hides_latency}))});
  }
  return out;
}

/// All processes compile alike, so the least of all counts.
void LoadedPrograms::agree_on_memory(int rank, Communicator& world) {
  constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
  std::int64_t least = kNoLimit;
  for (const std::string& bytes :
       gather_texts(world, text(most_bytes_.value_or(kNoLimit)), "memory of devices"))
    least = std::min<std::int64_t>(least, std::stoll(bytes));
  if (processes_.leads(rank) && least < kNoLimit) most_bytes_ = least;
}

/// The plans of ranks that come to open a session.
struct LoadedPrograms::Opening {
  std::vector<std::shared_ptr<const Plan>> plans;
  std::shared_ptr<Session> session;
};

std::shared_ptr<Session> LoadedPrograms::open(std::shared_ptr<const Plan> plan,
                                              Communicator* world) {
  const ProcessRanks& here = processes_.here();
  check(plan->ranks() == std::ssize(devices_), "a plan of ", plan->ranks(), " ranks on ",
        devices_.size(), " devices");
  require(plan->stages == 1 || processes_.all.size() == 1, "the plan has ", plan->stages,
          " stages, and the run ", processes_.all.size(),
          " processes: stages on accelerators hand each other values within one process; start one "
          "with all --devices, or leave the stages out");
  const int rank = plan->rank;
  std::int64_t ended = ended_calls();
  std::shared_ptr<Opening> opening;
  {
    const std::scoped_lock lock(mutex_);
    if (!opening_) opening_ = std::make_shared<Opening>();
    opening = opening_;
    opening->plans.resize(static_cast<std::size_t>(here.count));
    opening->plans[static_cast<std::size_t>(rank - here.first)] = std::move(plan);
  }
  meet(world, "plans of all ranks");
  if (processes_.leads(rank)) {
    const std::scoped_lock lock(mutex_);
    opening_.reset();
  }
  if (processes_.all.size() > 1) agree_on_memory(rank, *world);
  const auto compile = [&](From from) {
    const auto work = [self = shared_from_this(), opening, from] {
      try {
        opening->session = std::make_shared<Session>(self, opening->plans, from);
      } catch (const NotKept&) {
      }
    };
    call(
        rank, ended, work, [] {}, {}, world);
    ended = ended_calls();
  };
  if (processes_.all.size() == 1) {
    compile(From::KeptOrCompiler);
  } else {
    // Compilers may wait for each other: all processes load what was kept, or all compile.
    compile(From::Kept);
    const bool lacks = processes_.leads(rank) && opening->session == nullptr;
    const std::vector<std::string> answers =
        gather_texts(world, lacks ? "lacks" : "", "programs that were kept");
    if (std::ranges::find(answers, "lacks") != answers.end()) compile(From::Compiler);
  }
  meet(world, "programs that were compiled");
  return opening->session;
}

Patience LoadedPrograms::patience(const std::string& name,
                                  std::shared_ptr<std::atomic<std::int64_t>> signs) const {
  return {patience_, std::move(signs), text(client_.plugin().file(), ": ", name)};
}

/// Work is under way as long as it lives: until its thread ends, or none can be started.
std::shared_ptr<void> LoadedPrograms::counted() {
  ++under_way_;
  return {nullptr, [self = shared_from_this()](void*) { --self->under_way_; }};
}

void LoadedPrograms::call_alone(std::function<void()> work, const std::string& name) {
  PluginWork(
      threads_, std::move(work), [counted = counted()] {}, patience(name, nullptr))
      .wait(nullptr);
}

void LoadedPrograms::call(int rank, std::int64_t ended, std::function<void()> work,
                          std::function<void()> afterwards, const Patience& patience,
                          Communicator* world) {
  if (!processes_.leads(rank)) {
    work_together(threads_, {}, {}, {}, board_, world);
    return sleep_through_call(ended, world);
  }
  const std::shared_ptr<void> end(nullptr, [this](void*) { end_call(); });
  work_together(
      threads_, std::move(work),
      [counted = counted(), afterwards = std::move(afterwards)] { afterwards(); }, patience, board_,
      world);
}

std::int64_t LoadedPrograms::ended_calls() const {
  const std::scoped_lock lock(mutex_);
  return ended_calls_;
}

void LoadedPrograms::end_call() {
  {
    const std::scoped_lock lock(mutex_);
    ++ended_calls_;
  }
  call_ended_.notify_all();
}

/// Of the rank that leads; where it fails, this one hears it where ranks meet.
void LoadedPrograms::sleep_through_call(std::int64_t ended, Communicator* world) {
  std::unique_lock lock(mutex_);
  while (!call_ended_.wait_for(lock, kBetweenSigns, [&] { return ended_calls_ > ended; })) {
    lock.unlock();
    if (world->peer_failed()) return;
    lock.lock();
  }
}

void LoadedPrograms::give_up(std::shared_ptr<const Session> session) {
  const std::scoped_lock lock(mutex_);
  if (std::ranges::find(given_up_, session) == given_up_.end())
    given_up_.push_back(std::move(session));
}

void LoadedPrograms::let_go() {
  std::vector<std::shared_ptr<const Session>> gone;
  const std::scoped_lock lock(mutex_);
  gone.swap(given_up_);
}

bool LoadedPrograms::failed() const {
  const std::scoped_lock lock(mutex_);
  return under_way_ > 0 || !given_up_.empty();
}

void meet(Communicator* world, const char* where) {
  if (world != nullptr) world->run(Collective::barrier(where), nullptr, nullptr);
}

}  // namespace tessera
