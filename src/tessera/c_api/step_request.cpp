#include "tessera/c_api/step_request.h"

#include <algorithm>
#include <set>

#include "tessera/base/error.h"
#include "tessera/c_api/arguments.h"
#include "tessera/config/fields.h"
#include "tessera/config/run_needs.h"
#include "tessera/launch/ranks.h"
#include "tessera/launch/take_machine.h"
#include "tessera/models/parallel.h"
#include "tessera/shard/auto_parallel.h"
#include "tessera/shard/shard.h"
#include "tessera/train/programs.h"
#include "tessera/train/run_setup.h"
#include "tessera/train/step.h"

namespace tessera {

namespace {

/// Flags that say how a graph of one's own is computed; all others are of models and runs.
constexpr std::string_view kStepFlags =
    "devices machine rank-order data-parallel-size tensor-model-parallel-size sequence-parallel "
    "context-parallel-size cp-comm-type pipeline-model-parallel-size pipeline-schedule "
    "virtual-pipeline-stages pipeline-layout zero-stage optimizer-shard-size "
    "optimizer-shard-threshold fsdp-gather bucket-mb gradient-aggregation-group vocab-emb-dp "
    "recompute-granularity recompute-layers offload-optimizer offload-gradients "
    "offload-parameters offload-activations distributed-timeout bf16 fp16 tf32 reduce-dtype device "
    "threads family graph-optimization max-isa amx f32-products pack-weights seed micro-batch-size";
/// Of these, what a mesh says by itself.
constexpr const char* kMeshFlags[] = {"devices", "data-parallel-size", "tensor-model-parallel-size",
                                      "context-parallel-size", "micro-batch-size"};
/// What MindSpore's configuration says in other words.
constexpr const char* kSizeFlags[] = {"data-parallel-size",    "tensor-model-parallel-size",
                                      "context-parallel-size", "pipeline-model-parallel-size",
                                      "micro-batch-size",      "zero-stage",
                                      "vocab-emb-dp",          "gradient-aggregation-group",
                                      "recompute-granularity"};
constexpr std::array<std::string_view, 4> kModeWords = {"stand_alone", "data_parallel",
                                                        "semi_auto_parallel", "auto_parallel"};
constexpr std::array<std::string_view, 3> kSearchWords = {
    "dynamic_programming", "recursive_programming", "sharding_propagation"};

/// How many blocks "STACK.N" there are.
std::int64_t layers_in(const Graph& graph, std::string_view stack) {
  std::set<std::string, std::less<>> found;
  for (const Node& node : graph.nodes()) {
    const std::string_view block = node.block;
    if (!block.starts_with(stack)) continue;
    found.emplace(block.substr(0, block.find('.', stack.size())));
  }
  return std::ssize(found);
}

/// Of the family whose names tensor parallelism goes by; its layers are those that there are.
ModelConfig model_names(const FamilyRef& family, const Graph& graph) {
  ModelConfig out;
  out.family = family;
  out.layers = layers_in(graph, "layers.") + layers_in(graph, "encoder.layers.");
  out.decoder_layers = layers_in(graph, "decoder.layers.");
  out.heads = out.width = out.context = 0;
  return out;
}

class StepReader {
 public:
  StepReader(const CallJson& how, const std::vector<NamedGraph>& graphs)
      : fields_(how, "compile"), graphs_(graphs), main_(graphs.at(0).graph->finished()) {}

  StepRequest run() {
    read_config();
    out_.options.seed = static_cast<std::uint64_t>(out_.config.seed);
    out_.options.tf32 = out_.config.tf32;
    out_.options.machine = out_.config.parallel.machine;
    out_.options.optimize = Optimizations::all(out_.config.graph_optimization);
    ParallelStep step = is_by_op() ? by_op() : by_mesh();
    fields_.finish();
    out_.search = step.search;
    const bool scaled = std::ranges::any_of(
        main_.states(), [](const State& state) { return state.role == Role::Scale; });
    const bool trains = std::ranges::any_of(
        main_.outputs(), [](const Output& output) { return output.kind == Output::Kind::Next; });
    require(
        !out_.config.fp16 || scaled || !trains,
        "compile: fp16 needs an update with a loss scale; write it with loss_scale, or give bf16");
    if (const auto precision = precision_of(out_.config))
      step.graph = compute_in(step.graph, *precision);
    add_programs(std::move(step));
    return std::move(out_);
  }

 private:
  bool was_given(std::string_view flag) const { return !out_.config.defaulted.contains(flag); }

  void read_config() {
    const std::vector<Flag> known = step_flags();
    Problems problems;
    std::vector<std::string> notices;
    const CallJson* flags = fields_.find("flags");
    const ParsedFlags parsed =
        parse_flags(flags == nullptr ? Arguments{} : arguments_of(flags->dump()), known, problems);
    require(parsed.words.empty() && !parsed.help, "compile: flags are given by name, as devices=2");
    RunConfig& config = out_.config;
    config = configure(parsed, problems, notices);
    if (config.device != kProcessors && plugin_of(config).empty())
      problems.add(text("device is '", config.device, "'; it can be cpu, or pjrt: and a plugin"));
    if (std::ranges::find(kSumDTypes, config.reduce_dtype) == kSumDTypes.end())
      problems.add(
          text("reduce-dtype is '", config.reduce_dtype, "'; it can be ", join(kSumDTypes)));
    take_machine(config, nullptr, problems);
    config.model = model_names(config.model.family, main_);
    config.global_batch_size = 1;
    fields_.get("samples", config.global_batch_size);
    problems.raise();
    read_mesh();
    complete(config);
    problems.add(tessera::problems(config.parallel, config.model));
    const std::int64_t parts = config.parallel.data() * config.micro_batch_size;
    if (was_given("micro-batch-size") && config.global_batch_size % parts != 0)
      problems.add(text("a step has ", config.global_batch_size,
                        " samples, which micro-batch-size ", config.micro_batch_size, " on ",
                        config.parallel.data(),
                        " data parallel devices does not divide; give another"));
    problems.raise();
    config.parallel.micro_batches = config.micro_batches();
    read_op_parallel_config();
  }

  /// MindSpore's words for sizes, in place of flags.
  void read_op_parallel_config() {
    if (fields_.find("parallel_config") == nullptr) return;
    for (const char* flag : kSizeFlags)
      require(!was_given(flag), "compile: parallel_config and ", flag,
              " both say sizes; give one of them");
    require(!mesh_, "compile: parallel_config and mesh both say sizes; give one of them");
    TransformerOpParallelConfig words;
    CallFields fields = fields_.part("parallel_config");
    fields.get("data_parallel", words.data_parallel);
    fields.get("model_parallel", words.model_parallel);
    fields.get("expert_parallel", words.expert_parallel);
    fields.get("pipeline_stage", words.pipeline_stage);
    fields.get("micro_batch_num", words.micro_batch_num);
    fields.get("optimizer_shard", words.optimizer_shard);
    fields.get("gradient_aggregation_group", words.gradient_aggregation_group);
    fields.get("recompute", words.recompute);
    fields.get("vocab_emb_dp", words.vocab_emb_dp);
    fields.finish();
    RunConfig& config = out_.config;
    ParallelConfig on = words.on(was_given("devices") ? config.parallel.devices : words.parts());
    const std::int64_t parts = words.data_parallel * words.micro_batch_num;
    require(config.global_batch_size % parts == 0, "compile: a step has ", config.global_batch_size,
            " samples, which data_parallel ", words.data_parallel, " x micro_batch_num ",
            words.micro_batch_num, " does not divide; give others");
    on.machine = config.parallel.machine;
    config.parallel = std::move(on);
    Problems problems;
    problems.add(tessera::problems(config.parallel, config.model));
    problems.raise();
  }

  void read_mesh() {
    const CallJson* json = fields_.find("mesh");
    if (json == nullptr) return;
    for (const char* flag : kMeshFlags)
      require(!was_given(flag), "compile: mesh and ", flag, " both say sizes; give one of them");
    CallFields sizes(*json, "compile: mesh");
    std::vector<Axis> axes;
    for (const auto& [name, size] : json->items()) {
      const auto number = sizes.need<std::int64_t>(name.c_str());
      const bool time = name == kMicrobatchAxis;
      axes.push_back({name, number, time ? Level::Time : Level::Core});
    }
    mesh_ = Mesh(std::move(axes));
    require(mesh_->ranks() <= 4096, "compile: mesh ", *mesh_, " has ", mesh_->ranks(),
            " devices; give at most 4096");
    ParallelConfig& parallel = out_.config.parallel;
    parallel.devices = mesh_->ranks() * parallel.pipeline;
    parallel.tensor = mesh_->size(kTensorAxis);
    parallel.context = mesh_->size(kContextAxis);
  }

  bool is_by_op() {
    for (const char* name : {"parallel_mode", "search_mode", "dataset_strategy", "shard"}) {
      if (fields_.find(name) != nullptr) return true;
    }
    return !shards_of(graphs_[0].graph->builder).empty();
  }

  ParallelStep by_mesh() {
    for (const char* name :
         {"micro_batches", "gradients_mean", "loss_repeated_mean", "enable_parallel_optimizer"})
      require(fields_.find(name) == nullptr, "compile: ", name,
              " is read with parallel_mode; give that, as parallel_mode=\"auto_parallel\"");
    ParallelStep out{main_, cut_strategy(out_.config), {}};
    if (mesh_) out.strategy.mesh = *mesh_;
    name_layers(out.strategy);
    fields_.get("batch_axes", out.strategy.batch);
    require_axes(out.strategy.batch, out.strategy.mesh, "batch_axes");
    if (const CallJson* pins = fields_.find("pins")) {
      CallFields texts(*pins, "compile: pins");
      for (const auto& [path, text_of] : pins->items()) {
        const Sharding sharding = parse_sharding(texts.need<std::string>(path.c_str()));
        require_axes(sharding.dims, out.strategy.mesh, "pin " + path);
        out.strategy.pins.push_back({path, sharding, false});
      }
    }
    require_tensor_cuts(out.strategy);
    return out;
  }

  /// Errors: axes that no mesh has, as ones that are spelled wrongly.
  void require_axes(const std::vector<std::vector<std::string>>& dims, const Mesh& mesh,
                    const std::string& whose) const {
    const std::string_view usual[] = {kDataOuterAxis, kDataAxis, kContextAxis, kTensorAxis,
                                      kMicrobatchAxis};
    for (const std::vector<std::string>& axes : dims) {
      for (const std::string& axis : axes)
        require(mesh.has(axis) || std::ranges::find(usual, axis) != std::end(usual),
                "compile: ", whose, " names the axis ", axis, ", which the mesh lacks; it has ",
                mesh.axes().empty() ? "none" : to_text(mesh));
    }
  }

  /// Tensor parallelism goes by the names of layers.
  void require_tensor_cuts(const Strategy& strategy) const {
    const bool cuts = std::ranges::any_of(strategy.pins, [&](const Pin& pin) {
      return pin.sharding.dim_of(kTensorAxis) >= 0 &&
             std::ranges::any_of(main_.states(), [&](const State& state) {
               return matches(pin.values, state.path);
             });
    });
    require(out_.config.parallel.tensor == 1 || mesh_ || cuts, "compile: tensor parallelism ",
            out_.config.parallel.tensor, " splits nothing, as it ",
            "goes by the names of nn's Transformer layers; say what it splits, as ",
            "pins={\"up.weight\": \"[tp,-]\"}");
  }

  /// What is computed again in layers: those of nn's stacks, and blocks called layers.N.
  void name_layers(Strategy& strategy) {
    const auto is_there = [&](const RecomputePin& pin) {
      return std::ranges::any_of(main_.nodes(), [&](const Node& node) {
        return !node.block.empty() && matches(pin.blocks, node.block);
      });
    };
    const Recompute what = out_.config.parallel.recompute;
    if (what != Recompute::None && out_.config.parallel.recompute_layers == "all") {
      for (const char* blocks : {"layers.*", "encoder.layers.*", "decoder.layers.*"})
        strategy.recompute.push_back({blocks, what});
    }
    std::erase_if(strategy.recompute, [&](const RecomputePin& pin) { return !is_there(pin); });
    require(!was_given("recompute-granularity") || what == Recompute::None ||
                !strategy.recompute.empty(),
            "compile: recompute-granularity ", what, " does nothing, as the graph has no blocks ",
            "called layers.N; call scopes so, or say it of one, as scope(name, recompute=True)");
  }

  ParallelStep by_op() {
    for (const char* name : {"mesh", "pins", "batch_axes", "parallel_config"})
      require(fields_.find(name) == nullptr, "compile: ", name,
              " does not go with strategies of ops, whose mesh follows from them; leave it out");
    const ParallelConfig& parallel = out_.config.parallel;
    require(
        parallel.tensor * parallel.context * parallel.pipeline == 1 && !out_.config.bf16 &&
            !out_.config.fp16 && !was_given("micro-batch-size") && !parallel.shards_states(),
        "compile: with strategies of ops, devices=N is all that flags say of the mesh, and all is "
        "f32; leave sizes, zero_stage, bf16 and fp16 out");
    AutoParallel how;
    how.mode = parallel.devices > 1 ? ParallelMode::AutoParallel : ParallelMode::StandAlone;
    how.device_num = parallel.devices;
    how.machine = parallel.machine;
    fields_.get_word("parallel_mode", kModeWords, how.mode);
    fields_.get_word("search_mode", kSearchWords, how.search_mode);
    fields_.get("micro_batches", how.micro_batches);
    fields_.get("gradients_mean", how.gradients_mean);
    fields_.get("loss_repeated_mean", how.loss_repeated_mean);
    fields_.get("enable_parallel_optimizer", how.enable_parallel_optimizer);
    read_dataset(how.dataset_strategy);
    if (how.mode != ParallelMode::StandAlone) how.shards = shards_of(graphs_[0].graph->builder);
    if (const CallJson* shard = fields_.find("shard")) {
      CallFields ops(*shard, "compile: shard");
      for (const auto& [path, splits] : shard->items())
        how.shards.push_back({path, ops.need<Splits>(path.c_str())});
    }
    ParallelStep out = parallelize(main_, how);
    out.strategy.cut_outputs = {};  // whoever feeds the whole batch reads whole results
    return out;
  }

  void read_dataset(DatasetStrategy& into) {
    const CallJson* json = fields_.find("dataset_strategy");
    if (json == nullptr) return;
    if (json->is_array()) {
      into.kind = DatasetStrategy::Kind::Splits;
      fields_.get("dataset_strategy", into.splits);
    } else {
      fields_.get_word("dataset_strategy",
                       std::array<std::string_view, 2>{"data_parallel", "full_batch"}, into.kind);
    }
  }

  /// The first graph as `step` says; the others in the same places, on whole batches.
  void add_programs(ParallelStep step) {
    Strategy whole = step.strategy;
    std::vector<Axis> axes = whole.mesh.axes();
    std::erase_if(axes, [](const Axis& axis) { return axis.level == Level::Time; });
    whole.mesh = Mesh(std::move(axes));
    whole.batch = {};
    whole.ops = {};
    whole.cut_outputs = {};
    for (Pin& pin : whole.pins) pin.optional = true;

    std::vector<ProgramSource>& sources = out_.sources;
    const auto precision = precision_of(out_.config);
    if (!step.graph.states().empty())
      sources.push_back({kInitProgram, initialise(step.graph), whole});
    sources.push_back({graphs_[0].name, step.graph, std::move(step.strategy)});
    for (std::size_t i = 1; i < graphs_.size(); ++i) {
      const auto& [name, graph] = graphs_[i];
      require_known_states(name, graph->finished());
      Graph computed = graph->finished();
      if (precision) computed = compute_in(computed, *precision);
      sources.push_back({name, std::move(computed), whole});
    }
    if (!precision) return;
    std::vector<const Graph*> all;
    for (const ProgramSource& source : sources) all.push_back(&source.graph);
    Graph copies = copy_step(all);
    if (copies.size() > 0) sources.push_back({kCopyProgram, std::move(copies), whole});
  }

  void require_known_states(const std::string& name, const Graph& graph) const {
    std::vector<std::string> known;
    for (const State& state : main_.states()) known.push_back(state.path);
    for (const State& state : graph.states()) {
      const State* of_main = main_.find_state(state.path);
      require(of_main != nullptr, "program '", name, "' has a parameter '", state.path,
              "', which the first one lacks", near_names(state.path, known));
      require(main_.type(of_main->value) == graph.type(state.value), "program '", name,
              "' has a parameter '", state.path, "' of ", graph.type(state.value),
              ", and the first one has it of ", main_.type(of_main->value),
              "; give both one shape");
    }
  }

  CallFields fields_;
  const std::vector<NamedGraph>& graphs_;
  const Graph& main_;
  std::optional<Mesh> mesh_;
  StepRequest out_;
};

}  // namespace

std::vector<Flag> step_flags(const OwnFamilies& families) {
  std::vector<Flag> out = field_flags(families);
  std::erase_if(out, [](const Flag& flag) { return !is_one_of(kStepFlags, flag.name); });
  return out;
}

StepRequest step_request(const CallJson& how, const std::vector<NamedGraph>& graphs) {
  require(!graphs.empty(), "compile: there is no graph; give at least one");
  require(
      launched_as(0).how == Launched::Alone,
      "compile runs devices as threads of one process, but this process was launched as one of ",
      "several; start it alone, with devices=N");
  for (const NamedGraph& each : graphs) {
    require(each.name != kInitProgram && each.name != kCopyProgram && !each.name.empty(),
            "compile: a program is called '", each.name, "'; give it another name");
    require(std::ranges::count(graphs, each.name, &NamedGraph::name) == 1,
            "compile: two programs are called '", each.name, "'; give each a name of its own");
  }
  return StepReader(how, graphs).run();
}

}  // namespace tessera
