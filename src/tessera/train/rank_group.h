#pragma once
/// The engines of all ranks behind one interface: rank 0 leads, the others follow.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/checkpoint/checkpoint.h"
#include "tessera/pretrained/pretrained_model.h"
#include "tessera/runtime/backend.h"
#include "tessera/train/callbacks.h"

namespace tessera {

struct RankResult;
class RankWriter;

/// The leader (rank 0) says which program runs next, and every rank runs it; the others call
/// follow(). The leader sees whole batch inputs, metrics and states, whatever the mesh.
class RankGroup {
 public:
  /// `world`: nullptr if there is one rank. Errors and order of calls as of Engine.
  RankGroup(Plan plan, const Backend& backend, Communicator* world = nullptr,
            EngineOptions options = {});
  RankGroup(Plan plan, Device& device, Communicator* world = nullptr, EngineOptions options = {})
      : RankGroup(std::move(plan), CpuBackend(device), world, options) {}

  Engine& engine() { return *engine_; }  // of this rank
  const Plan& plan() const { return engine_->plan(); }
  /// Of a state of Role::Counter.
  std::int64_t count_of(std::string_view path) const;
  int ranks() const { return world_ == nullptr ? 1 : world_->size(); }
  /// What this rank does in saves; outlives the group's last call.
  void set_writer(RankWriter& writer) { writer_ = &writer; }

  // Of the leader:
  /// As Engine::run: `fill` writes all batch inputs of this run, whole. With `used_bytes` every
  /// rank measures what it uses.
  template <std::invocable<BatchInputs&> Fill>
  void run(const std::string& program, const Fill& fill, const RunOptions& options = {}) {
    BatchInputs& shards = engine_->begin(program, options);
    fill(world_ == nullptr ? shards : whole_inputs(program));
    finish(program, shards, options);
  }
  void run(const std::string& program, const RunOptions& options = {}) {
    run(
        program, [](BatchInputs&) {}, options);
  }
  /// By pool, of the rank that used most of it in runs that were measured; 0: none was.
  UsedBytes most_used_bytes();
  /// Names the step in messages about ranks.
  void set_step(std::int64_t step);
  /// The learning rate of later steps, kScheduledRate or kRateAsItIs.
  void set_rate(double rate);
  /// What a step brought, for the callbacks of the others.
  void send_step(const StepRecord& record);
  /// All states, or those that the plan has, from a checkpoint: each rank reads the blocks that it
  /// needs.
  /// Errors: Fault::Checkpoint: other tensors than the plan's, of the roles that it has; damage.
  void load(const Checkpoint& from);
  /// The parameters that a checkpoint or a folder has, but for those of the block `anew` (empty:
  /// none). Other states stay what they are. Returns what to tell of parameters that it lacks;
  /// empty: it has all. What the plan lacks is passed over: it is of another task.
  /// Errors: Fault::Checkpoint: parameters of other shapes; none of the plan's.
  std::string load_weights(const Checkpoint& from, const std::string& anew = "");
  std::string load_weights(const PretrainedModel& from, const std::string& anew = "");
  /// Errors: Fault::Resource: a rank does not see `folder`, where checkpoints go, or may not write
  /// there, as the leader does and may; names rank, host and folder.
  void require_shared_folder(const std::string& folder, const FileCalls& calls);
  /// Every rank writes its share of the states into `folder`: `now`, or from a copy in the
  /// background.
  void write_shares(const std::string& folder, bool now);
  /// True where all ranks have.
  bool shares_written();
  /// Waits until they have: what became of each share, a RankResult as text, in the order of ranks.
  std::vector<std::string> collect_shares();
  /// Runs long work that needs no other rank, while this rank shows the others, which may wait for
  /// it, that it is alive. `work` calls nothing of the group.
  void run_alone(const std::function<void()>& work);
  /// All states that checkpoints hold, whole; valid until the next run or forget_states().
  std::vector<CheckpointTensor> states();
  void forget_states() { whole_states_.clear(); }
  /// The last call: the others return from follow().
  void stop();

  /// Of the others: runs what the leader says, until stop(). `callbacks` hear of the steps that
  /// the leader tells.
  void follow(const std::vector<TrainCallback*>& callbacks = {});

 private:
  enum class Order : std::int64_t {
    Run,
    RunMeasured,
    Used,
    Load,
    LoadWeights,
    LoadPretrained,
    Gather,
    Probe,
    Write,
    WriteNow,
    Ask,
    Collect,
    Step,
    Rate,
    End
  };
  void send_order(Order order, std::int64_t argument = 0);
  void share(void* data, std::int64_t bytes, const char* what);
  BatchInputs& whole_inputs(const std::string& program);
  /// Says which program runs on which inputs, and runs it.
  void finish(const std::string& program, BatchInputs& shards, const RunOptions& options);
  void run_led(const ProgramPlan& program, bool measured);
  void note_used(const std::string& program, const UsedBytes& bytes);
  UsedBytes all_used();
  void share_batch(const ProgramPlan& program, BatchInputs& shards);
  /// An order with a text, which the others hear.
  void send_text(Order order, std::string said);
  void send_path(Order order, const std::string& path);
  std::string receive_text(std::int64_t size);
  /// What this rank answers to a probe of the folder.
  std::string probed(const std::string& folder);
  void write_share(const std::string& folder, bool now);
  void write_rate(double stored);
  bool all_written();
  RankResult take_share();
  void load_shards(const Checkpoint& from, Order what, std::string_view anew = "");
  void load_shards(const PretrainedModel& from, std::string_view anew);
  void await_base();
  void run_copies();
  /// Of the others: what the leader loads.
  void load_ordered(Order what, const std::string& path);
  /// On the leader, all of it.
  StateBytes gather(const StatePlan& state);

  std::unique_ptr<Engine> engine_;
  Communicator* world_;
  Coordinates at_;
  std::int64_t step_ = 0;
  UsedBytes used_bytes_;
  RankWriter* writer_ = nullptr;
  std::map<std::string, HostTensor> batches_;  // whole, by program and name
  std::map<std::string, BatchInputs> inputs_;  // the same, by program
  std::vector<StateBytes> whole_states_;
};

/// The tensors that a checkpoint must hold for the states of a plan: all but caches.
std::vector<TensorEntry> entries_of(const Plan& plan);

}  // namespace tessera
