/// What a crew reads into its states: checkpoints, and models in Hugging Face's folders.

#include <algorithm>
#include <optional>

#include "tessera/base/text.h"
#include "tessera/train/crew.h"
#include "tessera/train/programs.h"

namespace tessera {

namespace {

bool has_role(const Checkpoint& checkpoint, Role role) {
  return std::ranges::any_of(checkpoint.tensors(),
                             [&](const TensorEntry& entry) { return entry.role == role; });
}

}  // namespace

void Crew::load(const Checkpoint& from, Order what) {
  std::vector<TensorEntry> wanted = entries_of(plan()), found;
  // A run that was in other floats has no loss scale: it begins with the first.
  if (!has_role(from, Role::Scale)) {
    const auto scales =
        std::erase_if(wanted, [](const TensorEntry& w) { return w.role == Role::Scale; });
    if (scales > 0 && what == Order::Load) run(kInitProgram);
  }
  if (what == Order::LoadWeights)
    std::erase_if(wanted, [](const TensorEntry& w) { return w.role != Role::Parameter; });
  for (const TensorEntry& entry : from.tensors()) {
    const bool is_wanted = std::any_of(wanted.begin(), wanted.end(),
                                       [&](const TensorEntry& w) { return w.role == entry.role; });
    if (is_wanted) found.push_back(entry);
  }
  const std::string mismatch = tensor_mismatch(wanted, found);
  if (!mismatch.empty())
    fail(Fault::Checkpoint, "checkpoint '", from.path(), "' is of another model: ", mismatch);
  say_path(what, from.path());
  load_shards(from, what);
  run_copies();
}

/// 16-bit copies of parameters that were loaded.
void Crew::run_copies() {
  const bool copies = std::ranges::any_of(
      plan().programs, [](const ProgramPlan& program) { return program.name == kCopyProgram; });
  if (copies) run(kCopyProgram);
}

std::string Crew::load_weights(const PretrainedModel& from) {
  std::vector<TensorEntry> wanted = entries_of(plan()), found;
  for (const auto& [name, shape] : from.parameters())
    found.push_back({name, {DType::F32, shape, {}}, Role::Parameter});
  std::vector<std::string> lacking;
  std::erase_if(wanted, [&](const TensorEntry& entry) {
    const bool is_lacking =
        entry.role == Role::Parameter && !from.parameters().contains(entry.name);
    if (is_lacking) lacking.push_back(entry.name);
    return is_lacking || entry.role != Role::Parameter;
  });
  const std::string mismatch = tensor_mismatch(wanted, found);
  if (!mismatch.empty())
    fail(Fault::Checkpoint, "'", from.path(), "' has another model: ", mismatch);
  say_path(Order::LoadPretrained, from.path());
  load_shards(from);
  run_copies();
  if (lacking.empty() || from.parameters().empty()) return "";
  return text("'", from.path(), "' lacks ", join(lacking), ", which begin with random numbers");
}

void Crew::load_shards(const PretrainedModel& from) {
  alone([&] {
    for (const StatePlan& state : plan().states) {
      const std::string& path = state.state.path;
      if (!plan().has(state) || !from.parameters().contains(path)) continue;
      const std::span<std::byte> into = executor_.state(path);
      if (world_ == nullptr) {
        read_whole(from, path, into);
      } else {
        read_shard(from, path, state.state.home->sharding, plan().mesh, at_, into);
      }
    }
  });
}

void Crew::load_shards(const Checkpoint& from, Order what) {
  alone([&] {
    for (const StatePlan& state : plan().states) {
      if (!plan().has(state) || !is_saved(state.state.role)) continue;
      if (what == Order::LoadWeights && state.state.role != Role::Parameter) continue;
      if (!has_role(from, state.state.role)) continue;
      const std::span<std::byte> into = executor_.state(state.state.path);
      if (world_ == nullptr) {
        from.read(state.state.path, into);
      } else {
        from.read_shard(state.state.path, state.state.home->sharding, plan().mesh, at_, into);
      }
    }
  });
}

void Crew::load_as_told(Order what, const std::string& path) {
  if (what == Order::LoadPretrained) {
    std::optional<PretrainedModel> from;
    alone([&] { from.emplace(PretrainedModel::open(path)); });
    load_shards(*from);
  } else {
    std::optional<Checkpoint> from;
    alone([&] { from.emplace(Checkpoint::open(path)); });
    load_shards(*from, what);
  }
}

}  // namespace tessera
