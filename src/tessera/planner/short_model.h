#pragma once
/// The same model with few layers, compiled for real: what one layer more takes, and the rest.
///
/// A Transformer's layers are alike, so what a stage takes is what its layers take, and what the
/// parts before, between and after them do. The short model has stages of its own for each of
/// these: its first has what comes before the layers and one of them, its second one layer, its
/// third two, its last one and what comes after them. Of a model of two stacks, as an encoder and a
/// decoder are, each stack has such stages. So however many layers a model has, reading it costs
/// the same. Of layers with and without experts a layer is the mean, of a model in which all have them
/// and one in which none has.

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "tessera/device/device.h"
#include "tessera/planner/choice.h"
#include "tessera/planner/stage_use.h"
#include "tessera/schedule/pipeline.h"

namespace tessera {

/// What stages are made of: base + layers + what else they have.
struct ModelUse {
  StageUse base, before, after;
  std::vector<StageUse> layer;    // by stack
  std::vector<StageUse> between;  // before the layers of the stacks but the first
  double sample_bytes = 0;        // of a micro-batch, on a stage that reads it
  double message_bytes = 0;       // of a micro-batch, from stage to stage: the most

  /// With so many times the seconds of a micro-batch.
  ModelUse with_loop(double times) const;
  /// And what `with` takes more than `without`.
  void add_difference(const ModelUse& with, const ModelUse& without);
};

/// Devices for plans: kernels as `config` says.
using DeviceOf = std::function<Device&(const RunConfig& config)>;

class ShortModels {
 public:
  ShortModels(const RunConfig& base, const Machine& machine, DeviceOf device_of)
      : base_(base), machine_(machine), device_of_(std::move(device_of)) {}

  /// Of `choice`, but for its pipeline's size and schedule, and for the layers that it computes
  /// again, which are all. nullptr: it does not compile, as some sizes do not go together.
  const ModelUse* of(const PlanChoice& choice, std::int64_t micro_batches);
  /// About the same, of far fewer short models: of two data parallel ranks, whose transfers are
  /// priced as those of all; and what recomputing and offloading take more is added up.
  const ModelUse* about(const PlanChoice& choice, std::int64_t micro_batches);
  /// Its seconds alone, of still fewer: of two ranks, or two groups of ranks, whatever ZeRO shares
  /// out among them.
  const ModelUse* seconds_about(const PlanChoice& choice, std::int64_t micro_batches);
  /// How many have been compiled.
  std::int64_t compiled() const { return compiled_; }

 private:
  struct Key {
    std::int64_t data, experts, tensor, context, micro_batch_size, zero, shard_size;
    int flags;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  /// The plans of a short model: in stages; or whole, with two layers in each stack, then with one
  /// more in one of them.
  struct Short {
    std::vector<std::vector<Plan>> plans;  // less what tells of bytes, once these are known
    std::vector<std::vector<StageUse>> bytes;
    std::unique_ptr<Pipeline> pipeline;
    double sample_bytes = 0, message_bytes = 0;
    bool in_stages = false;
    std::map<std::pair<std::string, std::int64_t>, ModelUse> priced;  // by order and data ranks
  };
  Key key_of(const PlanChoice& choice, std::int64_t micro_batches) const;
  const ModelUse* priced(const PlanChoice& compiled, const PlanChoice& choice,
                         std::int64_t micro_batches);
  enum class Ranks : std::uint8_t { TwoWhereWhole, Two };
  const ModelUse* of_two_ranks(const PlanChoice& choice, std::int64_t micro_batches, Ranks ranks);
  const ModelUse* added_up(const PlanChoice& choice, std::int64_t micro_batches, Ranks ranks);
  void keep(Short& model);
  ModelUse price(Short& model, const PlanChoice& compiled, const PlanChoice& choice) const;
  Short read(const PlanChoice& choice, std::int64_t micro_batches);
  Short in_stages(const PlanChoice& choice, std::int64_t micro_batches);
  Short in_one_stage(const PlanChoice& choice, std::int64_t micro_batches);
  /// The share of layers without experts, of a model in which others have them.
  double dense_share() const;
  std::vector<Plan> compile(const PlanChoice& choice, const std::vector<std::int64_t>& layers,
                            std::int64_t micro_batches, bool experts = true);
  ModelUse use_of(const Short& model, std::span<const std::vector<StageUse>> uses) const;
  std::size_t stacks() const;

  const RunConfig& base_;
  const Machine& machine_;
  DeviceOf device_of_;
  std::map<Key, Short> known_;
  std::deque<Short*> kept_;
  std::map<std::tuple<Key, std::string, Ranks>, std::unique_ptr<ModelUse>> about_;  // and order
  std::int64_t compiled_ = 0;
};

}  // namespace tessera
