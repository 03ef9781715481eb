/// What a group reads into its states: checkpoints, and models in Hugging Face's folders.

#include <algorithm>
#include <optional>

#include "tessera/base/text.h"
#include "tessera/nn/lora.h"
#include "tessera/tensor/convert_floats.h"
#include "tessera/train/adapter_base.h"
#include "tessera/train/programs.h"
#include "tessera/train/rank_group.h"

namespace tessera {

namespace {

bool has_role(const Checkpoint& checkpoint, Role role) {
  return std::ranges::any_of(checkpoint.tensors(),
                             [&](const TensorEntry& entry) { return entry.role == role; });
}

/// What other ranks are told of a load, as one text.
struct LoadOrder {
  std::string path, anew = {}, base = {};  // base: Checkpoint::base_path
};
constexpr char kBehindPart = '\0';

std::string to_text(const LoadOrder& order) {
  return text(order.path, kBehindPart, order.anew, kBehindPart, order.base);
}

LoadOrder parse_load_order(const std::string& said) {
  const std::size_t first = said.find(kBehindPart), second = said.find(kBehindPart, first + 1);
  return {said.substr(0, first), said.substr(first + 1, second - first - 1),
          said.substr(second + 1)};
}

/// It is a parameter of the block; of no block, where that is empty.
bool is_in(std::string_view path, std::string_view block) {
  return !block.empty() && path.starts_with(text(block, "."));
}

bool is_weight(Role role) { return is_of_model(role) || role == Role::Reference; }

/// In f32 and in 16 bits they are the same parameters: a run may store those that it does not train
/// in fewer bits than the weights that it begins with.
std::vector<TensorEntry> as_f32(std::vector<TensorEntry> entries) {
  for (TensorEntry& entry : entries)
    if (is_weight(entry.role) && is_16_bit(entry.type.dtype)) entry.type.dtype = DType::F32;
  return entries;
}

/// Where a state begins in the weights of another run: the reference too is what is trained there.
std::string source_of(const State& state) {
  return std::string(state.role == Role::Reference ? parameter_path(state) : state.path);
}

/// Calls `read` with room for floats of the dtype `from`, which are then put into the bytes of a
/// state of dtype `to`.
template <typename Read>
void read_as(DType from, DType to, std::span<std::byte> into, const Read& read) {
  if (from == to) return read(into);
  std::vector<std::byte> values(into.size() / static_cast<std::size_t>(size_of(to)) *
                                static_cast<std::size_t>(size_of(from)));
  read(values);
  convert_floats(from, values, to, into);
}

/// What to tell of the parameters that the weights lack. Errors: as of RankGroup::load_weights.
std::string match_weights(std::vector<TensorEntry> wanted, std::vector<TensorEntry> found,
                          const std::string& path, std::string_view anew) {
  const auto has = [](const std::vector<TensorEntry>& all, const std::string& name) {
    return std::ranges::find(all, name, &TensorEntry::name) != all.end();
  };
  std::erase_if(wanted, [&](const TensorEntry& entry) {
    return !is_of_model(entry.role) || is_in(entry.name, anew);
  });
  std::vector<std::string> lacking;
  for (const TensorEntry& entry : wanted) {
    if (!has(found, entry.name)) lacking.push_back(entry.name);
  }
  // Adapters that a model without any gets leave it as it is.
  if (std::ranges::none_of(found, is_of_adapter, &TensorEntry::name))
    std::erase_if(lacking, is_of_adapter);
  if (lacking.size() < wanted.size()) {  // else all that there is shows what is wrong
    std::erase_if(found, [&](const TensorEntry& entry) { return !has(wanted, entry.name); });
    std::erase_if(wanted, [&](const TensorEntry& entry) { return !has(found, entry.name); });
  }
  const std::string mismatch = tensor_mismatch(as_f32(wanted), as_f32(found));
  if (!mismatch.empty()) fail(Fault::Checkpoint, "'", path, "' has another model: ", mismatch);
  if (lacking.empty()) return "";
  return text("'", path, "' lacks ", join(lacking), ", which are initialized at random");
}

}  // namespace

void RankGroup::load(const Checkpoint& from) {
  std::vector<TensorEntry> wanted = entries_of(plan()), found;
  // A run that was in other floats has no loss scale: it begins with the first.
  const auto lacking = std::erase_if(
      wanted, [&](const TensorEntry& w) { return is_setting(w.role) && !has_role(from, w.role); });
  if (lacking > 0) run(kInitProgram);
  for (const TensorEntry& entry : from.tensors()) {
    const bool is_wanted = std::any_of(wanted.begin(), wanted.end(),
                                       [&](const TensorEntry& w) { return w.role == entry.role; });
    if (is_wanted) found.push_back(entry);
  }
  const std::string mismatch = tensor_mismatch(as_f32(wanted), as_f32(found));
  if (!mismatch.empty())
    fail(Fault::Checkpoint, "checkpoint '", from.path(), "' is of another model: ", mismatch);
  send_path(Order::Load, to_text({from.path(), "", from.base_path()}));
  load_shards(from, Order::Load);
  run_copies();
}

/// 16-bit copies of parameters that were loaded.
void RankGroup::run_copies() {
  const bool copies = std::ranges::any_of(
      plan().programs, [](const ProgramPlan& program) { return program.name == kCopyProgram; });
  if (copies) run(kCopyProgram);
}

std::string RankGroup::load_weights(const Checkpoint& from, const std::string& anew) {
  std::vector<TensorEntry> found;
  for (const TensorEntry& entry : from.tensors()) {
    if (is_of_model(entry.role)) found.push_back(entry);
  }
  const std::string lacking = match_weights(entries_of(plan()), found, from.path(), anew);
  send_path(Order::LoadWeights, to_text({from.path(), anew, from.base_path()}));
  load_shards(from, Order::LoadWeights, anew);
  run_copies();
  return lacking;
}

std::string RankGroup::load_weights(const PretrainedModel& from, const std::string& anew) {
  std::vector<TensorEntry> found;
  for (const auto& [name, shape] : from.parameters())
    found.push_back({name, {DType::F32, shape, {}}, Role::Parameter});
  // Of config.json alone nothing is loaded, by no rank, whatever weights lie beside it.
  if (found.empty()) return "";
  const std::string lacking = match_weights(entries_of(plan()), found, from.path(), anew);
  send_path(Order::LoadPretrained, to_text({from.path(), anew}));
  load_shards(from, anew);
  run_copies();
  return lacking;
}

void RankGroup::load_shards(const PretrainedModel& from, std::string_view anew) {
  run_alone([&] {
    for (const StatePlan& state : plan().states) {
      const std::string path = source_of(state.state);
      const bool has = plan().has(state) && is_weight(state.state.role);
      if (!has || !from.parameters().contains(path) || is_in(path, anew)) continue;
      if (!engine_->writes_state(state.state.path)) continue;
      engine_->write_state(state.state.path, [&](std::span<std::byte> all) {
        read_as(DType::F32, state.type.dtype, all, [&](std::span<std::byte> into) {
          if (world_ == nullptr) {
            read_whole(from, path, into);
          } else {
            read_shard(from, path, state.state.home->sharding, plan().mesh, at_, into);
          }
        });
      });
    }
  });
  await_base();
}

/// What another rank of the process has read for this one is there. Of a pipeline's stages some may
/// have nothing in common: all ranks wait.
void RankGroup::await_base() {
  if (world_ == nullptr) return;
  std::vector<std::int32_t> all(static_cast<std::size_t>(world_->size()));
  const std::int32_t mine = 1;
  world_->run(Collective::all_gather(DType::I32, {world_->size()}, 0, "weights are read"), &mine,
              all.data());
}

void RankGroup::load_shards(const Checkpoint& from, Order what, std::string_view anew) {
  run_alone([&] {
    for (const StatePlan& state : plan().states) {
      if (!plan().has(state) || !is_saved(state.state.role)) continue;
      const bool weights = what == Order::LoadWeights;
      const std::string path = weights ? source_of(state.state) : state.state.path;
      if (weights ? !is_weight(state.state.role) || from.find(path) == nullptr || is_in(path, anew)
                  : !has_role(from, state.state.role))
        continue;
      if (!engine_->writes_state(state.state.path)) continue;
      engine_->write_state(state.state.path, [&](std::span<std::byte> all) {
        read_as(from.find(path)->type.dtype, state.type.dtype, all, [&](std::span<std::byte> into) {
          if (world_ == nullptr) {
            from.read(path, into);
          } else {
            from.read_shard(path, state.state.home->sharding, plan().mesh, at_, into);
          }
        });
      });
    }
  });
  await_base();
}

void RankGroup::load_ordered(Order what, const std::string& said) {
  const LoadOrder order = parse_load_order(said);
  if (what == Order::LoadPretrained) {
    std::optional<PretrainedModel> from;
    run_alone([&] { from.emplace(PretrainedModel::open(order.path, {.task_given = true})); });
    load_shards(*from, order.anew);
  } else {
    std::optional<Checkpoint> from;
    run_alone(
        [&] { from.emplace(open_with_base(order.path, {.check = false, .at = order.base})); });
    load_shards(*from, what, order.anew);
  }
}

}  // namespace tessera
