#include "tessera/bench/peer.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tessera/base/text.h"
#include "tessera/files/file.h"
#include "tessera/models/family.h"
#include "tessera/sources/sample_choices.h"
#include "tessera/tensor/host_tensor.h"
#include "tessera/train/programs.h"

namespace tessera {

namespace {

constexpr const char *kModelFile = "/model.json", *kBatchesFile = "/batches.bin";
constexpr std::string_view kCausal = "gpt2", kMasked = "bert";  // families

/// A way in which a library trains.
struct Way {
  const char *maker, *program, *mode, *name;
  bool on_plugin = false;      // of a run on a plugin; else of one on processors
  bool on_several = false;     // on all devices; else on one
  std::string_view only = "";  // family that it knows; empty: all that peers have
};
constexpr const char *kTorch = "PyTorch", *kJax = "JAX";
constexpr const char *kTorchTurn = "torch_turn.py", *kJaxTurn = "jax_turn.py";
constexpr const char* kMakers[] = {kTorch, kJax};
constexpr Way kWays[] = {
    {kTorch, kTorchTurn, "eager", ""},
    {kTorch, kTorchTurn, "ddp", " DDP", false, true},
    {kTorch, kTorchTurn, "fsdp2", " FSDP2", false, true},
    {kTorch, kTorchTurn, "tp", " TP", false, true, kCausal},
    {kTorch, kTorchTurn, "compile", " compile", true},
    {kJax, kJaxTurn, "eager", ""},
    {kJax, kJaxTurn, "eager", "", true},
    {kJax, kJaxTurn, "dp", " dp", true, true},
};
constexpr double kSameLoss = 1e-3;  // relative: f32 summed in another order, for some steps

}  // namespace

std::string why_no_peer(const RunConfig& config) {
  const std::string_view family = config.model.family.name();
  if (family != kCausal && family != kMasked)
    return text("no peer has models of family ", family, ", only of ", kCausal, " and ", kMasked);
  if (config.optimizer.kind != OptimizerKind::AdamW)
    return "peers train only with AdamW; leave --optimizer out";
  if (find_task(config.model) != &config.model.family->tasks.front())
    return "peers learn what a family does without --task; leave it out";
  if (config.model.lora.rank > 0 || !config.freeze.empty())
    return "peers train all of a model; leave --lora-rank and --freeze out";
  if (!config.no_weight_decay_for.empty())
    return "peers have no parameter groups; leave --no-weight-decay-for out";
  return "";
}

std::vector<PeerRun> peer_runs(const RunConfig& config, std::int64_t threads) {
  const Isa isa = config.choices.value_or(machine_choices()).isa;
  const bool on_plugin = !plugin_of(config).empty(), narrow = precision_of(config).has_value();
  const std::int64_t devices = config.parallel.devices;
  std::vector<const char*> dtypes;
  if (!on_plugin || !narrow) dtypes.push_back("f32");
  if (narrow || (!on_plugin && multiplies_16_bit(DType::BF16, isa))) dtypes.push_back("bf16");
  std::vector<PeerRun> out;
  for (const char* maker : kMakers) {
    for (const char* dtype : dtypes) {
      for (const Way& way : kWays) {
        if (std::string_view(way.maker) != maker || way.on_plugin != on_plugin) continue;
        if (way.on_several && devices == 1) continue;
        if (!way.only.empty() && way.only != config.model.family.name()) continue;
        const char* one = way.on_several || devices == 1 ? "" : " on one device";
        const char* narrowed = std::string_view(dtype) == "bf16" ? " bf16" : "";
        const std::int64_t all = way.on_several ? devices : 1;
        out.push_back({way.maker, way.program, text(maker, way.name, one, narrowed), dtype,
                       way.mode, on_plugin ? 1 : all, threads, on_plugin ? all : 1});
      }
    }
  }
  return out;
}

void write_peer_data(const PreparedRun& run, const std::string& plugin, std::int64_t steps,
                     const std::string& folder) {
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
                               {"device", plugin.empty() ? config.device : plugin_of(config)},
                               {"plugin", plugin},
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
                            const std::string& weights, const std::string& folder) {
  nlohmann::json task_json = nlohmann::json::parse(read_file(folder + kModelFile, Fault::Resource));
  task_json["dtype"] = peer.dtype, task_json["mode"] = peer.mode;
  task_json["processes"] = peer.processes, task_json["threads"] = peer.threads;
  task_json["devices"] = peer.devices;
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
