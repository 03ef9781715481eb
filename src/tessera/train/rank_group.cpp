#include "tessera/train/rank_group.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>

#include "tessera/checkpoint/shared_folder.h"
#include "tessera/comm/share_text.h"
#include "tessera/comm/work_alone.h"
#include "tessera/tensor/shard_copy.h"
#include "tessera/train/rank_writer.h"
#include "tessera/train/step_bytes.h"

namespace tessera {

namespace {

constexpr const char* kReports = "reports of ranks";

TensorType whole_type(const StatePlan& state) { return {state.type.dtype, state.logical, {}}; }

std::string key_of(const std::string& program, const std::string& name) {
  return program + "/" + name;
}

/// True for one rank of those that hold the same shard.
bool speaks(const Sharding& sharding, const Coordinates& at) {
  return std::all_of(at.begin(), at.end(), [&](const auto& axis) {
    return axis.second == 0 || sharding.dim_of(axis.first) >= 0;
  });
}

}  // namespace

std::vector<TensorEntry> entries_of(const Plan& plan) {
  std::vector<TensorEntry> out;
  for (const StatePlan& state : plan.states) {
    if (!is_saved(state.state.role)) continue;
    out.push_back({state.state.path, whole_type(state), state.state.role});
  }
  return out;
}

RankGroup::RankGroup(Plan plan, const Backend& backend, Communicator* world, EngineOptions options)
    : engine_(backend.start(std::move(plan), world, options)),
      world_(world),
      at_(coordinates_of(engine_->plan().mesh, engine_->plan().rank_in_stage())) {
  if (world_ == nullptr) return;
  for (const ProgramPlan& program : this->plan().programs) {
    BatchInputs& inputs = inputs_.try_emplace(program.name, program.name).first->second;
    for (const NamedTensor& input : program.batch) {
      const TensorType whole{input.type.dtype, input.logical, {}};
      HostTensor& batch = batches_[key_of(program.name, input.name)] = HostTensor(whole);
      inputs.add(input.name, whole, batch.bytes().data(), input.range);
    }
  }
}

std::int64_t RankGroup::count_of(std::string_view path) const {
  std::int64_t out = 0;
  std::memcpy(&out, engine_->read_state(path).bytes.data(), sizeof out);
  return out;
}

BatchInputs& RankGroup::whole_inputs(const std::string& program) {
  BatchInputs& out = inputs_.at(program);
  out.begin();
  return out;
}

/// The leader's bytes, on every rank.
void RankGroup::share(void* data, std::int64_t bytes, const char* what) {
  world_->run(Collective::broadcast(DType::I32, {(bytes + 3) / 4}, 0, what), data, data);
}

void RankGroup::send_order(Order order, std::int64_t argument) {
  if (world_ == nullptr) return;
  std::int64_t words[3] = {static_cast<std::int64_t>(order), argument, step_};
  share(words, sizeof words, "what comes next");
}

void RankGroup::send_text(Order order, std::string said) {
  if (world_ == nullptr) return;
  send_order(order, static_cast<std::int64_t>(said.size()));
  said.resize((said.size() + 3) / 4 * 4);
  share(said.data(), static_cast<std::int64_t>(said.size()), "what an order is about");
}

void RankGroup::send_path(Order order, const std::string& path) {
  if (world_ == nullptr) return;
  send_text(order, std::filesystem::absolute(path).string());  // ranks may have other folders
}

std::string RankGroup::receive_text(std::int64_t size) {
  std::string out(static_cast<std::size_t>((size + 3) / 4 * 4), ' ');
  share(out.data(), static_cast<std::int64_t>(out.size()), "what an order is about");
  out.resize(static_cast<std::size_t>(size));
  return out;
}

void RankGroup::require_shared_folder(const std::string& folder, const FileCalls& calls) {
  if (world_ == nullptr) return;
  std::optional<SharedFolderProbe> probe;
  run_alone([&] { probe.emplace(folder, calls); });
  send_path(Order::Probe, probe->path());
  const std::vector<std::string> answers = gather_texts(world_, "", kReports);
  run_alone([&] { probe->require(answers); });
}

std::string RankGroup::probed(const std::string& folder) {
  std::string out;
  run_alone([&] { out = probe_folder(folder, world_->rank(), writer_->calls()); });
  return out;
}

void RankGroup::write_shares(const std::string& folder, bool now) {
  send_path(now ? Order::WriteNow : Order::Write, folder);
  write_share(folder, now);
}

void RankGroup::write_share(const std::string& folder, bool now) {
  const auto begin = [&] {
    std::map<std::string, StateBytes, std::less<>> held;  // each is read once
    const auto bytes_of = [&](std::string_view path) {
      auto found = held.find(path);
      if (found == held.end()) found = held.emplace(path, engine_->read_state(path)).first;
      return found->second.bytes;
    };
    writer_->begin(folder, pieces_of(writer_->shares(), plan(), bytes_of), now);
  };
  now ? run_alone(begin) : begin();
}

void RankGroup::run_alone(const std::function<void()>& work) { work_alone(world_, work); }

bool RankGroup::shares_written() {
  send_order(Order::Ask);
  return all_written();
}

bool RankGroup::all_written() {
  const std::int32_t mine = writer_->finished() ? 1 : 0;
  if (world_ == nullptr) return mine == 1;
  std::vector<std::int32_t> all(static_cast<std::size_t>(world_->size()));
  world_->run(Collective::all_gather(DType::I32, {world_->size()}, 0, "which shares are written"),
              &mine, all.data());
  return std::find(all.begin(), all.end(), 0) == all.end();
}

RankResult RankGroup::take_share() {
  RankResult out;
  run_alone([&] { out = writer_->take(); });
  return out;
}

std::vector<std::string> RankGroup::collect_shares() {
  send_order(Order::Collect);
  return gather_texts(world_, to_text(take_share()), kReports);
}

void RankGroup::set_step(std::int64_t step) {
  step_ = step;
  if (world_ != nullptr) world_->set_step(step);
}

void RankGroup::share_batch(const ProgramPlan& program, BatchInputs& shards) {
  for (const NamedTensor& input : program.batch) {
    HostTensor& whole = batches_.at(key_of(program.name, input.name));
    share(whole.bytes().data(), whole.type().bytes(), "batch");
    cut_shard(whole.bytes(), input.logical, input.type.dtype, input.placement->sharding,
              plan().mesh, at_, shards.fill(input.name, input.type.dtype));
  }
}

void RankGroup::finish(const std::string& program, BatchInputs& shards, const RunOptions& options) {
  const bool measured = options.used_bytes != nullptr;
  if (world_ != nullptr) {
    inputs_.at(program).require_filled();
    const ProgramPlan& what = plan().program(program);
    send_order(measured ? Order::RunMeasured : Order::Run, &what - plan().programs.data());
    share_batch(what, shards);
  }
  engine_->finish(program, options);
  if (measured) note_used(program, *options.used_bytes);
}

void RankGroup::run_led(const ProgramPlan& program, bool measured) {
  UsedBytes used;
  const RunOptions options{.used_bytes = measured ? &used : nullptr};
  share_batch(program, engine_->begin(program.name, options));
  engine_->finish(program.name, options);
  if (measured) note_used(program.name, used);
}

void RankGroup::note_used(const std::string& program, const UsedBytes& bytes) {
  for (const Memory memory : kMemories)
    used_bytes_[memory] = std::max(used_bytes_[memory], bytes[memory]);
  check(engine_->guard_intact(), "program ", program, " wrote beyond the end of a pool");
}

UsedBytes RankGroup::most_used_bytes() {
  send_order(Order::Used);
  return all_used();
}

UsedBytes RankGroup::all_used() {
  UsedBytes out = used_bytes_;
  if (world_ == nullptr) return out;
  for (const Memory memory : kMemories) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(world_->size()));
    world_->run(Collective::all_gather(DType::I64, {world_->size()}, 0, "what was used of pools"),
                &used_bytes_[memory], all.data());
    out[memory] = *std::ranges::max_element(all);
  }
  return out;
}

std::vector<CheckpointTensor> RankGroup::states() {
  send_order(Order::Gather);
  forget_states();
  std::vector<CheckpointTensor> out;
  for (const StatePlan& state : plan().states) {
    if (!is_saved(state.state.role)) continue;
    const std::string& path = state.state.path;
    const StateBytes& whole =
        whole_states_.emplace_back(world_ == nullptr ? engine_->read_state(path) : gather(state));
    out.push_back({path, whole_type(state), state.state.role, whole.bytes});
  }
  return out;
}

/// Every shard once, from the ranks of the first stage that has it, in order, to the leader.
StateBytes RankGroup::gather(const StatePlan& state) {
  const Sharding& home = state.state.home->sharding;
  const Mesh& mesh = plan().mesh;
  const bool leads = world_->rank() == 0;
  if (!leads) {
    if (plan().stage() != state.stages[0] || !speaks(home, at_)) return {};
    const StateBytes mine = engine_->read_state(state.state.path);
    world_->run(Collective::send(state.type.dtype, state.type.shape, 0, state.state.path),
                mine.bytes.data(), nullptr);
    return {};
  }
  const auto whole = std::make_shared<HostTensor>(whole_type(state));
  HostTensor shard(state.type);
  for (int r = 0; r < mesh.ranks(); ++r) {
    const Coordinates at = coordinates_of(mesh, r);
    if (!speaks(home, at)) continue;
    const int from = plan().rank_of(state.stages[0], r);
    StateBytes its{shard.bytes()};
    if (from > 0)
      world_->run(Collective::recv(state.type.dtype, state.type.shape, from, state.state.path),
                  nullptr, shard.bytes().data());
    else
      its = engine_->read_state(state.state.path);
    paste_shard(its.bytes, state.logical, state.type.dtype, home, mesh, at, whole->bytes());
  }
  return {std::as_const(*whole).bytes(), whole};
}

void RankGroup::send_step(const StepRecord& record) { send_text(Order::Step, to_bytes(record)); }

void RankGroup::set_rate(double rate) {
  if (std::isnan(rate)) return;
  const double stored = stored_rate(rate);
  send_order(Order::Rate, std::bit_cast<std::int64_t>(stored));
  write_rate(stored);
}

void RankGroup::write_rate(double stored) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(&stored, 1));
  for (const StatePlan& state : plan().states)
    if (state.state.role == Role::Rate && plan().has(state))
      engine_->write_state(state.state.path, bytes);
}

void RankGroup::stop() { send_order(Order::End); }

void RankGroup::follow(const std::vector<TrainCallback*>& callbacks) {
  while (true) {
    std::int64_t words[3] = {};
    share(words, sizeof words, "what comes next");
    set_step(words[2]);
    switch (static_cast<Order>(words[0])) {
      case Order::Run:
      case Order::RunMeasured:
        run_led(plan().programs.at(static_cast<std::size_t>(words[1])),
                static_cast<Order>(words[0]) == Order::RunMeasured);
        break;
      case Order::Used: all_used(); break;
      case Order::Load:
      case Order::LoadWeights:
      case Order::LoadPretrained:
        load_ordered(static_cast<Order>(words[0]), receive_text(words[1]));
        break;
      case Order::Gather:
        for (const StatePlan& state : plan().states) {
          if (is_saved(state.state.role)) gather(state);
        }
        break;
      case Order::Probe: gather_texts(world_, probed(receive_text(words[1])), kReports); break;
      case Order::Write:
      case Order::WriteNow:
        write_share(receive_text(words[1]), static_cast<Order>(words[0]) == Order::WriteNow);
        break;
      case Order::Ask: all_written(); break;
      case Order::Collect: gather_texts(world_, to_text(take_share()), kReports); break;
      case Order::Step:
        tell(callbacks, &TrainCallback::on_step, step_of_bytes(receive_text(words[1])));
        break;
      case Order::Rate: write_rate(std::bit_cast<double>(words[1])); break;
      case Order::End: return;
    }
  }
}

}  // namespace tessera
