#include "tessera/bench/peer.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tessera/base/text.h"
#include "tessera/files/file.h"
#include "tessera/models/family.h"
#include "tessera/tensor/host_tensor.h"
#include "tessera/train/programs.h"

namespace tessera {

namespace {

constexpr const char *kModelFile = "/model.json", *kBatchesFile = "/batches.bin";
struct Maker {
  const char *name, *program;
  bool on_several;  // it has modes for several devices
};
constexpr Maker kMakers[] = {{"PyTorch", "torch_turn.py", true}, {"JAX", "jax_turn.py", false}};
constexpr std::string_view kCausal = "gpt2", kMasked = "bert";  // families
constexpr double kSameLoss = 1e-3;  // relative: f32 summed in another order, for some steps

}  // namespace

std::string why_no_peer(const RunConfig& config) {
  const std::string_view family = config.model.family.name();
  if (family != kCausal && family != kMasked)
    return text("no peer has models of family ", family, ", only of ", kCausal, " and ", kMasked);
  if (config.optimizer.kind != OptimizerKind::AdamW)
    return "peers train only with AdamW; leave --optimizer out";
  if (!config.no_weight_decay_for.empty())
    return "peers have no parameter groups; leave --no-weight-decay-for out";
  return "";
}

std::vector<PeerRun> peer_runs(const RunConfig& config, std::int64_t threads) {
  const bool gpt2 = config.model.family.name() == kCausal;
  const Isa isa = config.choices.value_or(machine_choices()).isa;
  const std::int64_t devices = config.parallel.devices;
  std::vector<PeerRun> out;
  for (const Maker& maker : kMakers) {
    for (const char* dtype : {"f32", "bf16"}) {
      const bool bf16 = std::string_view(dtype) == "bf16";
      if (bf16 && !multiplies_16_bit(DType::BF16, isa) && !precision_of(config)) continue;
      const auto add = [&](const char* mode, const char* name, std::int64_t processes) {
        out.push_back({maker.name, maker.program, text(maker.name, name, bf16 ? " bf16" : ""),
                       dtype, mode, processes, threads});
      };
      add("eager", devices == 1 ? "" : " on one device", 1);
      if (devices == 1 || !maker.on_several) continue;
      add("ddp", " DDP", devices);
      add("fsdp2", " FSDP2", devices);
      if (gpt2) add("tp", " TP", devices);
    }
  }
  return out;
}

void write_peer_data(const PreparedRun& run, std::int64_t steps, const std::string& folder) {
  const RunConfig& config = run.config;
  const ModelConfig model = with_derived(config.model);
  const Task task = task_of(model);
  nlohmann::json model_json = {{"family", model.family.name()},
                               {"layers", model.layers},
                               {"heads", model.heads},
                               {"width", model.width},
                               {"ffn_width", model.hidden()},
                               {"context", model.context},
                               {"vocabulary", model.vocabulary},
                               {"dropout", model.dropout},
                               {"bias", model.bias},
                               {"tied_head", model.tied_head},
                               {"norm_eps", model.norm_eps},
                               {"batch", config.global_batch_size},
                               {"beta1", config.optimizer.beta1},
                               {"beta2", config.optimizer.beta2},
                               {"eps", config.optimizer.eps},
                               {"weight_decay", config.optimizer.weight_decay},
                               {"clip", config.optimizer.clip},
                               {"batches", folder + kBatchesFile},
                               {"inputs", nlohmann::json::array()}};
  BatchInputs inputs("train");
  std::vector<HostTensor> tensors;
  for (const TaskInput& input : task.inputs) {
    Shape shape{config.global_batch_size};
    for (const std::int64_t size : input.sample) shape.push_back(size);
    tensors.emplace_back(input.dtype, shape);
    model_json["inputs"].push_back(
        {{"name", input.name}, {"shape", std::vector<std::int64_t>(shape.begin(), shape.end())}});
    check(input.dtype == DType::I32, "input '", input.name, "' of a peer is ", input.dtype);
  }
  for (std::size_t i = 0; i < tensors.size(); ++i)
    inputs.add(task.inputs[i].name, tensors[i].type(), tensors[i].bytes().data());
  const std::unique_ptr<Samples> samples = task.train_samples(*run.data, sample_choices(config));
  std::ofstream batches(folder + kBatchesFile, std::ios::binary);
  for (std::int64_t step = 0; step < steps; ++step) {
    inputs.begin();
    samples->fill(step * config.global_batch_size, config.global_batch_size, inputs);
    for (const HostTensor& tensor : tensors)
      batches.write(reinterpret_cast<const char*>(tensor.bytes().data()),
                    static_cast<std::streamsize>(tensor.bytes().size()));
  }
  batches.close();
  if (!batches) fail(Fault::Resource, "cannot write ", folder, kBatchesFile, "; free some space");
  write_atomically(folder + kModelFile, model_json.dump());
}

std::string write_peer_task(const PeerRun& peer, const std::vector<double>& rates,
                            const std::string& weights, bool exact, const std::string& folder) {
  nlohmann::json task_json = nlohmann::json::parse(read_file(folder + kModelFile, Fault::Resource));
  if (exact) task_json["dropout"] = 0.0;
  task_json["dtype"] = peer.dtype, task_json["mode"] = peer.mode;
  task_json["processes"] = peer.processes, task_json["threads"] = peer.threads;
  task_json["cores"] = nlohmann::json::array();
  task_json["weights"] = weights;
  task_json["rates"] = rates;
  const std::string path = folder + "/task.json";
  write_atomically(path, task_json.dump());
  return path;
}

std::string difference_of_losses(const std::vector<double>& ours,
                                 const std::vector<double>& theirs) {
  if (ours.size() != theirs.size())
    return text("it made ", theirs.size(), " of ", ours.size(), " steps");
  for (std::size_t i = 0; i < ours.size(); ++i) {
    // Not so for nan either.
    if (!(std::abs(theirs[i] - ours[i]) <= kSameLoss * std::abs(ours[i])))
      return text("its loss in step ", i + 1, " is ", theirs[i], ", ours ", ours[i]);
  }
  return "";
}

}  // namespace tessera
