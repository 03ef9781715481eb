#include "tessera/passes/interpret_program.h"

#include <utility>
#include <vector>

#include "tessera/base/index.h"
#include "tessera/ir/builder.h"
#include "tessera/ir/strategy.h"

namespace tessera {

namespace {

class ProgramInterpreter {
 public:
  ProgramInterpreter(const Program& program, const Bindings& inputs, const Interpretation& how,
                     const Deleted& deleted)
      : program_(program),
        how_(how),
        deleted_(deleted),
        replicas_(deleted.node < 0 ? Replicas::Equal : Replicas::First) {
    for (std::int64_t r = 0; r < mesh().ranks(); ++r) {
      bound_.emplace_back();
      ranks_.push_back(coordinates_of(mesh(), r));
    }
    for (const Region& region : program.regions) {
      for (const Node& node : region.graph.nodes()) bind(node, inputs);
    }
  }

  std::map<std::string, HostTensor> run() {
    for (const Action& action : program_.actions) run(action);
    return std::move(out_);
  }

 private:
  const Mesh& mesh() const { return program_.mesh(); }

  /// Every rank's shard of a batch input or state.
  void bind(const Node& node, const Bindings& inputs) {
    if (node.op != &kBatch && node.op != &kState) return;
    const bool batch = node.op == &kBatch;
    const std::string& name = std::get<std::string>(node.attrs[0]);
    const auto& from = batch ? inputs.batch : inputs.states;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      auto& into = batch ? bound_[r].batch : bound_[r].states;
      if (into.contains(name)) continue;
      into[name] = shard_of(from.find(name)->second, node.results[0], mesh(), ranks_[r],
                            batch ? Beyond::Poison : Beyond::Zeros);
    }
  }

  void run(const Action& action) {
    const int at_region = program_.index_of(action.region, action.chunk);
    const Graph& graph = program_.regions[at(at_region)].graph;
    how_.at[std::string(kMicrobatchAxis)] = action.microbatch;
    const auto values =
        interpret_ranks(graph, bound_, how_, at_region == deleted_.region ? deleted_.node : -1);
    for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
      std::vector<HostTensor> shards;
      for (const std::vector<HostTensor>& of_rank : values) shards.push_back(of_rank[i]);
      put_out(graph.outputs()[i], graph.result(graph.outputs()[i].value), std::move(shards),
              action.microbatch);
    }
  }

  void put_out(const Output& output, const Result& result, std::vector<HostTensor> shards,
               std::int64_t microbatch) {
    switch (output.kind) {
      case Output::Kind::Slot: fill(output.name, shards); break;
      case Output::Kind::Accumulate:
        if (microbatch > 0) accumulate(output.name, reduction_over_time(result), shards);
        fill(output.name, shards);
        break;
      case Output::Kind::Metric:
        out_[output.name] = joined(shards, result, mesh(), replicas_);
        break;
      case Output::Kind::Next:
        for (std::size_t r = 0; r < shards.size(); ++r) {
          check(has_zero_padding(shards[r], result, mesh(), ranks_[r]), "state '", output.name,
                "' is stored with something other than zeros in its padding, on rank ", r);
        }
        out_["next " + output.name] = joined(shards, result, mesh(), replicas_);
        break;
    }
  }

  void fill(const std::string& slot, const std::vector<HostTensor>& shards) {
    for (std::size_t r = 0; r < shards.size(); ++r) bound_[r].slots[slot] = shards[r];
  }

  /// What earlier micro-batches left is combined with this one's.
  void accumulate(const std::string& slot, Monoid monoid, std::vector<HostTensor>& shards) const {
    for (std::size_t r = 0; r < shards.size(); ++r) {
      const HostTensor& before = bound_[r].slots.find(slot)->second;
      HostTensor total = shards[r].clone();
      for (std::int64_t e = 0; e < total.numel(); ++e)
        total.set(e, combine(monoid, total.at(e), before.at(e)));
      shards[r] = std::move(total);
    }
  }

  const Program& program_;
  Interpretation how_;
  const Deleted& deleted_;
  Replicas replicas_;
  std::vector<Bindings> bound_;  // by rank
  std::vector<Coordinates> ranks_;
  std::map<std::string, HostTensor> out_;
};

}  // namespace

std::map<std::string, HostTensor> interpret_program(const Program& program, const Bindings& inputs,
                                                    const Interpretation& how,
                                                    const Deleted& deleted) {
  return ProgramInterpreter(program, inputs, how, deleted).run();
}

}  // namespace tessera
