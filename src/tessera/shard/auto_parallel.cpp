#include "tessera/shard/auto_parallel.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "tessera/base/index.h"
#include "tessera/ir/builder.h"
#include "tessera/ir/op_paths.h"
#include "tessera/ops/collective.h"
#include "tessera/ops/elementwise.h"
#include "tessera/passes/add_uses.h"
#include "tessera/passes/merge_pads.h"
#include "tessera/passes/propagate.h"
#include "tessera/passes/rewrite.h"
#include "tessera/passes/simplify.h"
#include "tessera/search/mesh_to_search.h"
#include "tessera/shard/op_strategy.h"
#include "tessera/shard/refined_axes.h"
#include "tessera/shard/tensor_strategy.h"

namespace tessera {

namespace {

bool by_ops(ParallelMode mode) {
  return mode == ParallelMode::SemiAutoParallel || mode == ParallelMode::AutoParallel;
}

bool reads_shards(ParallelMode mode) {
  return by_ops(mode) || mode == ParallelMode::HybridParallel;
}

bool searches(const AutoParallel& o) {
  return o.mode == ParallelMode::AutoParallel && o.search_mode != SearchMode::ShardingPropagation;
}

/// All that does not fit together.
std::vector<std::string> problems(const AutoParallel& o) {
  std::vector<std::string> out;
  if (o.device_num < 1)
    out.push_back(text("device_num is ", o.device_num, "; it must be at least 1"));
  if (o.micro_batches < 1)
    out.push_back(text("micro_batches is ", o.micro_batches, "; it must be at least 1"));
  if (o.mode == ParallelMode::StandAlone && o.device_num > 1)
    out.push_back(text("stand_alone is one device, but device_num is ", o.device_num,
                       "; use data_parallel, semi_auto_parallel or auto_parallel"));
  if (o.mode == ParallelMode::StandAlone && o.enable_parallel_optimizer)
    out.push_back("enable_parallel_optimizer needs several devices, but the mode is stand_alone");
  if (o.mode == ParallelMode::DataParallel &&
      o.dataset_strategy.kind != DatasetStrategy::Kind::DataParallel)
    out.push_back(
        "data_parallel cuts the batch along its rows, but dataset_strategy says otherwise; leave "
        "that out, or use semi_auto_parallel");
  if (!searches(o) && o.memory_cap < kNever)
    out.push_back(
        "memory_cap is set, but nothing searches within it; use auto_parallel with search_mode "
        "dynamic_programming or recursive_programming");
  if (!reads_shards(o.mode) && !o.shards.empty())
    out.push_back(text("op '", o.shards[0].ops, "' has a strategy, but the mode does not read it; ",
                       "use semi_auto_parallel or auto_parallel"));
  return out;
}

class Parallelizer {
 public:
  /// `step` is the graph before nodes that nobody reads were removed.
  Parallelizer(const Graph& graph, const Graph& step, const AutoParallel& options)
      : graph_(graph), step_(step), options_(options), paths_(op_paths(graph)) {}

  ParallelStep run() {
    read_batch();
    read_ops();
    require(wrong_.empty(), join(wrong_, "\n"));
    lay_out();
    keep_outputs();
    if (searches(options_)) {
      Searched found = search_placements(graph_, strategy_, options_.search_mode, options_.machine,
                                         {.bytes = options_.memory_cap});
      return {{}, std::move(found.strategy), found.report};
    }
    if (reads_shards(options_.mode)) follow_readers();
    return {{}, std::move(strategy_)};
  }

 private:
  void read_batch() {
    const DatasetStrategy& dataset = options_.dataset_strategy;
    std::size_t next = 0;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.node(id);
      if (node.op != &kBatch) continue;
      const Shape& shape = node.type().shape;
      std::vector<std::int64_t> splits(at(shape.ndim()), 1);
      if (dataset.kind == DatasetStrategy::Kind::Splits) {
        if (next < dataset.splits.size()) splits = dataset.splits[next];
      } else if (dataset.kind == DatasetStrategy::Kind::DataParallel && shape.ndim() > 0) {
        splits[0] = options_.device_num;
      }
      ++next;
      take([&] {
        tensors_.push_back({paths_[at(id)],
                            spread_tensor(text("batch input '", paths_[at(id)], "'"), shape, splits,
                                          options_.device_num),
                            dataset.kind != DatasetStrategy::Kind::Splits});
      });
    }
    if (dataset.kind == DatasetStrategy::Kind::Splits && next != dataset.splits.size())
      wrong_.push_back(text("dataset_strategy has ", dataset.splits.size(), " strategies for ",
                            next, " batch inputs; give each input one"));
  }

  /// Of several strategies for one op, the last one holds.
  void read_ops() {
    std::map<NodeId, OpShard> strategies;
    for (const OpShard& shard : options_.shards) {
      bool any = false;
      for (NodeId id = 0; id < graph_.size(); ++id) {
        const Node& node = graph_.node(id);
        const bool op = !node.op->traits.leaf || node.op == &kState;
        if (!op || paths_[at(id)].empty() || !matches(shard.ops, paths_[at(id)])) continue;
        any = true;
        strategies[id] = shard;
        strategies[id].ops = paths_[at(id)];
      }
      if (!any) wrong_.push_back(why_none(shard.ops));
    }
    for (const auto& [id, shard] : strategies) {
      const Node& node = graph_.node(id);
      take([&, id = id, &shard = shard] {
        if (node.op != &kState) {
          ops_.push_back(spread(graph_, id, shard, options_.device_num));
          return;
        }
        require(shard.ins.size() == 1, "state '", shard.ops, "' takes one strategy, not ",
                shard.ins.size());
        tensors_.push_back(
            {shard.ops, spread_tensor(text("state '", shard.ops, "'"), node.type().shape,
                                      shard.ins[0], options_.device_num)});
        stated_.insert(shard.ops);
      });
    }
    if (options_.mode == ParallelMode::SemiAutoParallel) cut_the_rest(strategies);
  }

  /// Ops without a strategy are cut along their first dim by all ranks, where that comes from the
  /// batch and divides.
  void cut_the_rest(const std::map<NodeId, OpShard>& strategies) {
    std::vector<bool> of_batch(graph_.nodes().size(), false);
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.node(id);
      of_batch[at(id)] = node.op == &kBatch;
      const Factors rule = graph_.factors(id);
      OpShard shard{paths_[at(id)], {}};
      int rows = -1;
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        shard.ins.emplace_back(rule.ins[i].size(), 1);
        if (!of_batch[at(node.inputs[i].node)]) continue;
        of_batch[at(id)] = true;
        if (rows < 0 && !rule.ins[i].empty() && !rule.ins[i][0].empty()) rows = rule.ins[i][0][0];
      }
      const bool open =
          node.phase == Phase::Forward && !node.op->traits.leaf && !strategies.count(id);
      if (!open || rows < 0 || rule.list[at(rows)].size % options_.device_num != 0) continue;
      const FactorKind kind = rule.list[at(rows)].kind;
      if (kind == FactorKind::Whole || (kind == FactorKind::Stat && node.op->expand == nullptr))
        continue;
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        for (std::size_t d = 0; d < rule.ins[i].size(); ++d) {
          if (!rule.ins[i][d].empty() && rule.ins[i][d][0] == rows)
            shard.ins[i][d] = options_.device_num;
        }
      }
      take([&] {
        ops_.push_back(spread(graph_, id, shard, options_.device_num));
        ops_.back().automatic = true;
      });
    }
  }

  std::string why_none(const std::string& ops) const {
    for (const std::string& path : op_paths(step_)) {
      if (!path.empty() && matches(ops, path))
        return text("op '", path, "' has a strategy, but nothing that the step computes reads its ",
                    "result; remove the strategy, or read the result");
    }
    return text("no op is called '", ops, "'; there are: ", some_paths());
  }

  std::string some_paths() const {
    std::vector<std::string> out;
    for (NodeId id = 0; id < graph_.size() && out.size() < 12; ++id) {
      if (!graph_.node(id).op->traits.leaf && !paths_[at(id)].empty())
        out.push_back(paths_[at(id)]);
    }
    return join(out);
  }

  template <typename Step>
  void take(const Step& step) {
    try {
      step();
    } catch (const Error& error) {
      wrong_.push_back(error.what());
    }
  }

  void lay_out() {
    std::vector<GivenLayout> given;
    std::vector<TensorLayout> automatic{{{options_.device_num}, {}, {}}};
    if (searches(options_)) automatic.push_back({factors_to_search(options_.device_num), {}, {}});
    const auto take_layout = [&](const TensorLayout& layout, bool is_given, const auto&... owner) {
      if (is_given) {
        given.push_back({layout, text(owner...)});
      } else {
        automatic.push_back(layout);
      }
    };
    for (const OpSpread& op : ops_) {
      for (const std::vector<TensorLayout>* side : {&op.ins, &op.outs}) {
        for (const TensorLayout& layout : *side)
          take_layout(layout, !op.automatic, "op '", op.path, "'");
      }
    }
    for (const Tensor& t : tensors_) take_layout(t.layout, !t.automatic, "'", t.path, "'");
    const RefinedAxes axes(given, automatic);
    const std::string time(kMicrobatchAxis);
    strategy_.mesh = axes.mesh({time, options_.micro_batches, Level::Time});
    if (searches(options_)) strategy_.mesh = on_levels(strategy_.mesh, options_.machine);
    strategy_.major = axes.major();
    const bool first = time_first();
    if (first) strategy_.major.insert(strategy_.major.begin(), time);
    strategy_.batch = {{time}};
    for (const auto& [path, layout, _] : tensors_) {
      Sharding sharding = axes.sharding(layout);
      if (!stated_.count(path) && sharding.ndim() > 0) {
        std::vector<std::string>& rows = sharding.dims[0];
        rows.insert(first ? rows.begin() : rows.end(), time);
      }
      strategy_.pins.push_back({path, sharding});
    }
    for (const OpSpread& op : ops_) {
      OpPin pin{op.path, {}, {}};
      for (const TensorLayout& in : op.ins) pin.ins.push_back(axes.sharding(in));
      if (op.outs_asked) {
        for (const TensorLayout& out : op.outs) pin.outs.push_back(axes.sharding(out));
      }
      for (std::size_t i = 0; i < op.ins.size(); ++i)
        use(graph_.node(op.node).inputs[i], pin.ins[i]);
      strategy_.ops.push_back(std::move(pin));
    }
    if (options_.enable_parallel_optimizer) {
      strategy_.shard_moments = strategy_.shard_gradients = axes.names();
      strategy_.shard_parameters = axes.names();
    }
  }

  /// What the forward pass computes from a batch whose rows each rank feeds leaves the step cut.
  void keep_outputs() {
    if (options_.dataset_strategy.kind != DatasetStrategy::Kind::DataParallel) return;
    std::vector<bool> of_batch(graph_.nodes().size(), false);
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.node(id);
      of_batch[at(id)] = node.op == &kBatch ||
                         std::any_of(node.inputs.begin(), node.inputs.end(),
                                     [&](ValueId input) { return of_batch[at(input.node)]; });
    }
    for (const Output& output : graph_.outputs()) {
      const NodeId id = output.value.node;
      if (output.kind == Output::Kind::Metric && of_batch[at(id)] &&
          graph_.node(id).phase == Phase::Forward && graph_.type(output.value).ndim() > 0)
        strategy_.cut_outputs.push_back(output.name);
    }
  }

  /// Where ops cut rows otherwise than batch inputs do, a micro-batch is the same rows for all of
  /// them only if ranks share out the rows of a micro-batch, and not micro-batches the rows of a
  /// rank. Ranks then read rows that others brought.
  bool time_first() const {
    return options_.micro_batches > 1 &&
           (!options_.shards.empty() ||
            options_.dataset_strategy.kind == DatasetStrategy::Kind::Splits);
  }

  /// A parameter lies as the first op with a strategy reads it.
  void use(ValueId v, const Sharding& sharding) {
    const Node& source = graph_.node(v.node);
    if (source.op != &kState) return;
    const std::string& path = std::get<std::string>(source.attrs[0]);
    if (stated_.insert(path).second) strategy_.pins.push_back({path, sharding});
  }

  /// What nothing was said of lies as the first op that reads it would have it.
  void follow_readers() {
    const Graph placed = propagate(add_uses(graph_), strategy_);
    std::map<NodeId, std::string> open;
    for (const State& state : placed.states()) {
      if (state.role == Role::Parameter && !stated_.count(state.path))
        open[state.value.node] = state.path;
    }
    for (const Node& node : placed.nodes()) {
      if (node.inputs.empty() || node.phase != Phase::Forward) continue;
      const auto found = open.find(node.inputs[0].node);
      if (found == open.end() || node.op != &kUse) continue;
      Sharding sharding = node.results[0].placement->sharding;
      sharding.partial.clear();  // marked as an addend where it joins a sum: it lies whole there
      strategy_.pins.push_back({found->second, std::move(sharding)});
      open.erase(found);
    }
  }

  const Graph &graph_, &step_;
  const AutoParallel& options_;
  std::vector<std::string> paths_;
  std::vector<OpSpread> ops_;
  struct Tensor {  // a batch input or a state
    std::string path;
    TensorLayout layout;
    bool automatic = false;
  };
  std::vector<Tensor> tensors_;
  std::set<std::string> stated_;  // states of which something was said
  std::vector<std::string> wrong_;
  Strategy strategy_;
};

/// Ranks that hold the same slice of each parameter.
std::map<std::string, std::int64_t> replicas_of(const Graph& placed, std::int64_t devices) {
  std::map<std::string, std::int64_t> out;
  for (const State& state : placed.states()) {
    std::int64_t n = devices;
    for (const std::vector<std::string>& axes : state.use->sharding.dims) {
      for (const std::string& axis : axes) n /= placed.mesh().size(axis);
    }
    out[state.path] = n;
  }
  return out;
}

Graph scaled(const Graph& graph, const Strategy& strategy, const AutoParallel& options) {
  const auto devices = static_cast<double>(options.device_num);
  std::map<std::string, std::int64_t> replicas;
  double all = 1;
  if (options.mode == ParallelMode::DataParallel && !options.gradients_mean) all = devices;
  if (by_ops(options.mode)) {
    if (!options.loss_repeated_mean) all = devices;
    if (options.gradients_mean)
      replicas = replicas_of(propagate(add_uses(graph), strategy), options.device_num);
  }
  if (all == 1 && replicas.empty()) return graph;
  Rewrite out(graph);
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    const std::vector<Value> copied = out.copy(id);
    if (node.op != &kGradient) continue;
    const auto found = replicas.find(std::get<std::string>(node.attrs[0]));
    const double factor = all / static_cast<double>(found == replicas.end() ? 1 : found->second);
    if (factor == 1) continue;
    const Mark before = out.to().mark();
    out.to().set_mark({node.block, Phase::Update, node.stage, node.where});
    out.map({id, 0}, copied[0] * factor);
    out.to().set_mark(before);
  }
  return out.finish();
}

}  // namespace

ParallelStep parallelize(const Graph& step, const AutoParallel& options) {
  const std::vector<std::string> wrong = problems(options);
  require(wrong.empty(), join(wrong, "\n"));
  const Graph graph = simplify(merge_pads(step));
  ParallelStep out = Parallelizer(graph, step, options).run();
  out.graph = scaled(graph, out.strategy, options);
  return out;
}

}  // namespace tessera
