#include "tessera/accelerator/loaded_programs.h"

#include <filesystem>

#include "tessera/accelerator/run_stages.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/comm/collective.h"
#include "tessera/comm/work_alone.h"

namespace tessera {

namespace {

int rank_in(const Communicator* world) { return world == nullptr ? 0 : world->rank(); }

/// Returns when all ranks have come. What they wrote before is seen by all behind it.
void meet(Communicator* world, const char* where) {
  if (world == nullptr) return;
  const std::int32_t mine = 0;
  std::vector<std::int32_t> all(static_cast<std::size_t>(world->size()));
  world->run(Collective::all_gather(DType::I32, {world->size()}, 0, where), &mine, all.data());
}

/// XLA's CPU has such memory too, and no way to it.
bool reaches_pinned_host(std::string_view platform) { return platform != "cpu"; }

hlo::EmitOptions options_of(const Plan& plan, std::string_view platform) {
  hlo::EmitOptions out;
  out.seed = plan.seed;
  out.pinned_host = reaches_pinned_host(platform);
  return out;
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

std::string_view LoadedPrograms::memory_kind(Memory memory) const {
  const bool pinned = memory == Memory::Host && reaches_pinned_host(client_.platform_name());
  return pinned ? "pinned_host" : "";
}

hlo::Module module_of(const Plan& plan, const ProgramPlan& program, std::string_view platform) {
  check(program.local != nullptr, "program ", program.name, " was compiled for kernels");
  return hlo::whole_module(program.name, *program.local, options_of(plan, platform));
}

LoadedModule LoadedPrograms::compiled(hlo::Module module, int stage) const {
  pjrt::CompileOptions options;
  options.num_replicas = static_cast<int>(module.replicas());
  options.flags = pjrt::flags_for(client_.plugin());
  for (std::int64_t r = 0; r < module.replicas(); ++r) {
    const auto rank = static_cast<std::size_t>(stage * module.replicas() + r);
    options.device_assignment.push_back({client_.local_devices()[rank].id});
  }
  pjrt::Executable loaded = executable(module.text, options);
  return {std::move(module), std::move(loaded)};
}

/// XLA's CPU compiles in seconds, and complains of what it loads, so nothing of it is kept.
pjrt::Executable LoadedPrograms::executable(const std::string& module,
                                            const pjrt::CompileOptions& options) const {
  if (client_.platform_name() == "cpu") return pjrt::compile(client_, module, options);
  const std::string key = text(device_text(client_), to_bytes(options), module);
  try {
    if (const auto kept = cache_.find(key)) return pjrt::load(client_, *kept);
  } catch (const Error&) {  // of another driver, say: compiled anew
  }
  pjrt::Executable out = pjrt::compile(client_, module, options);
  try {
    if (cache_.keeps()) cache_.keep(key, out.compiled().serialize());
  } catch (const Error&) {  // a plugin that cannot
  }
  return out;
}

std::unique_ptr<LoadedProgram> LoadedPrograms::compile(std::size_t number) const {
  const Plan& plan = *plans_[0];
  const std::string& name = plan.programs[number].name;
  auto out = std::make_unique<LoadedProgram>();
  if (plan.stages == 1) {
    LoadedStage& only = out->stages.emplace_back();
    only.actions = {{RegionKind::Begin, 0, 0}};
    only.pieces.push_back(
        {RegionKind::Begin, 0,
         compiled(module_of(plan, plan.programs[number], client_.platform_name()), 0)});
    return out;
  }
  std::vector<Program> stages;
  for (int s = 0; s < plan.stages; ++s)
    stages.push_back(*plans_[static_cast<std::size_t>(plan.rank_of(s, 0))]->programs[number].local);
  const hlo::EmitOptions options = options_of(plan, client_.platform_name());
  std::vector<std::vector<hlo::Piece>> pieces = hlo::staged_modules(name, stages, options);
  for (int s = 0; s < plan.stages; ++s) {
    std::vector<hlo::Piece>& mine = pieces[static_cast<std::size_t>(s)];
    LoadedStage& stage = out->stages.emplace_back();
    stage.actions = stages[static_cast<std::size_t>(s)].actions;
    if (mine.empty()) continue;  // nothing of the program is on this stage
    hlo::Module sums = hlo::first_sums(text(name, "_sums", s), mine, options);
    if (!sums.results.empty()) stage.sums = compiled(std::move(sums), s);
    for (hlo::Piece& piece : mine)
      stage.pieces.push_back({piece.region, piece.chunk, compiled(std::move(piece.module), s)});
  }
  return out;
}

std::vector<const LoadedProgram*> LoadedPrograms::load(const Plan& plan, Communicator* world) {
  meet(world, "programs that are to be compiled");  // no rank uses what is shared
  const auto rank = static_cast<std::size_t>(rank_in(world));
  if (rank == 0) {
    last_.clear();
    const auto ranks = static_cast<std::size_t>(plan.ranks());
    plans_.resize(ranks), seats_.resize(ranks);
  }
  meet(world, "places for plans");
  plans_[rank] = &plan;
  meet(world, "plans of all ranks");
  if (rank == 0) {
    work_alone(world, [&] {
      for (std::size_t i = 0; i < plan.programs.size(); ++i) {
        try {
          last_.push_back(programs_.emplace_back(compile(i)).get());
        } catch (const Error& error) {
          throw error.with(text("in program ", plan.programs[i].name));
        }
      }
    });
  }
  meet(world, "programs that were compiled");
  return last_;
}

void LoadedPrograms::run(const LoadedProgram& program, const Seat& seat, Communicator* world) {
  const auto rank = static_cast<std::size_t>(rank_in(world));
  const std::size_t ranks = world == nullptr ? 1 : static_cast<std::size_t>(world->size());
  check(seats_.size() == ranks, "a program of ", seats_.size(), " ranks is run by ", ranks);
  seats_[rank] = seat;
  meet(world, "arguments of a program");
  if (rank == 0) work_alone(world, [&] { run_stages(program, seats_, client_); });
  meet(world, "results of a program");
}

}  // namespace tessera
