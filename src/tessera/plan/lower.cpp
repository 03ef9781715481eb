#include "tessera/plan/lower.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "tessera/base/hash.h"
#include "tessera/base/index.h"
#include "tessera/ir/strategy.h"
#include "tessera/ops/collective.h"
#include "tessera/ops/elementwise.h"
#include "tessera/plan/kernels.h"
#include "tessera/plan/memory.h"
#include "tessera/plan/shards.h"
#include "tessera/plan/values.h"

namespace tessera {

namespace {

std::uint64_t key_of(const Node& node, std::uint64_t seed) {
  const int i = node.op->attrs.find("key");
  return i < 0 ? 0 : random_key(seed, std::get<std::string>(node.attrs[at(i)]));
}

/// A call whose operands are still values.
struct Draft {
  Call call;
  std::vector<int> ins, outs;  // StoredValues
  std::int32_t time = 0;
  std::int64_t workspace_bytes = 0;
};

class Lowering {
 public:
  Lowering(const std::string& name, const Program& program, const Timeline& time,
           StateSection& states, Device& device, std::uint64_t seed, int rank)
      : regions_(program.regions),
        time_(time),
        states_(states),
        kernels_(device),
        seed_(seed),
        shards_(program.mesh(), rank),
        values_(program, time, device),
        drafts_(program.regions.size()) {
    program_.name = name;
    for (const Region& region : regions_) {
      for (const State& state : region.graph.states())
        state_of_.try_emplace(state.path, &state, &region.graph.result(state.value));
    }
    for (const Accumulation& a : values_.accumulations())
      accumulations_[{a.region, a.value.node}].push_back(&a);
    program_.microbatches = program.mesh().size(kMicrobatchAxis);
    for (const Region& region : regions_)
      program_.regions.push_back({region.kind, region.chunk, {}});
    program_.actions = program.actions;
  }

  ProgramPlan run() {
    for (int r = 0; r < static_cast<int>(regions_.size()); ++r) draft_region(r);
    for (auto& drafts : drafts_) std::ranges::stable_sort(drafts, {}, &Draft::time);
    store_states();
    place_buffers();
    place_calls();
    name_inputs();
    count_memory();
    return std::move(program_);
  }

 private:
  const StoredValue& value(int v) const { return values_.values()[at(v)]; }
  int update() const { return static_cast<int>(regions_.size()) - 1; }

  KernelRequest request(OpCall call, const std::vector<int>& ins, const std::vector<int>& outs,
                        std::uint64_t key) const {
    KernelRequest out{std::move(call), {}, {}, {}, key, 0};
    out.coordinate = shards_.coordinate(out.call);
    for (const int v : ins) {
      out.in_strides.push_back(value(v).strides);
      out.ins.push_back(shards_.info(*value(v).result));
    }
    for (const int v : outs) out.outs.push_back(shards_.info(*value(v).result));
    return out;
  }

  void add_call(int region, const Name& block, const KernelRequest& request, Draft draft) {
    const When when = draft.call.when;
    draft.call = kernels_.call(request);
    draft.call.when = when;
    draft.call.block = block;
    draft.workspace_bytes = tessera::workspace_bytes(draft.call);
    const double times =
        draft.call.when == When::Always
            ? (in_loop(regions_[at(region)].kind) ? static_cast<double>(program_.microbatches)
                                                  : 1.0)
            : 0.0;  // accumulation is not counted
    program_.flops += draft.call.flops * times;
    drafts_[at(region)].push_back(std::move(draft));
  }

  void draft_region(int r) {
    const Graph& graph = regions_[at(r)].graph;
    for (NodeId id = 0; id < graph.size(); ++id) {
      const Node& node = graph.node(id);
      if (node.op->traits.leaf || values_.is_view(r, id)) {
        accumulate(r, id);
        continue;
      }
      Draft draft;
      for (const ValueId input : node.inputs) draft.ins.push_back(values_.value(r, input));
      for (int i = 0; i < static_cast<int>(node.results.size()); ++i)
        draft.outs.push_back(values_.value(r, {id, i}));
      draft.time = time_.of(r, id).first;
      if (node.op->traits.exchanges) {
        draft_transfer(r, id, std::move(draft));
        accumulate(r, id);
        continue;
      }
      const KernelRequest what =
          request(graph.call(id), draft.ins, draft.outs, key_of(node, seed_));
      try {
        add_call(r, node.block, what, std::move(draft));
      } catch (const Error& error) {
        throw error.with(describe(graph, id));
      }
      accumulate(r, id);
    }
  }

  /// A start and a wait, each where its time lies. One of Update whose time lies in the loop runs
  /// in the last micro-batch only, which completes the sum.
  void draft_transfer(int r, NodeId id, Draft start) {
    start.call = shards_.transfer(regions_[at(r)].graph, id);
    start.call.ticket = program_.transfers++;
    Draft wait;
    wait.time = time_.of(r, id).last;
    wait.call.op = start.call.op, wait.call.types = start.call.types;
    wait.call.block = start.call.block, wait.call.ticket = start.call.ticket;
    wait.call.bytes = std::exchange(start.call.bytes, 0);  // most are moved while one waits
    for (Draft* draft : {&start, &wait}) {
      const int region = time_.region_at(draft->time);
      if (region != r) draft->call.when = When::Last;
      drafts_[at(region)].push_back(std::move(*draft));
    }
  }

  /// After a node whose results are accumulated: the first micro-batch writes, later ones combine.
  void accumulate(int r, NodeId id) {
    const auto found = accumulations_.find({r, id});
    if (found == accumulations_.end()) return;
    for (const Accumulation* accumulation : found->second) {
      const Accumulation& a = *accumulation;
      const int from = values_.value(r, a.value);
      const TensorType& type = value(from).result->type;
      const Attrs none;
      const auto add = [&](const OpDef& op, OpCall::Types types, std::vector<int> ins, When when) {
        Draft draft;
        draft.ins = std::move(ins);
        draft.outs = {a.into};
        draft.time = time_.of(r, id).last;
        draft.call.when = when;
        const KernelRequest what =
            request(OpCall(op, std::move(types), none, {&type}), draft.ins, draft.outs, 0);
        add_call(r, regions_[at(r)].graph.node(id).block, what, std::move(draft));
      };
      add(kIdentity, {&type}, {from}, When::First);
      const Monoid monoid = reduction_over_time(regions_[at(r)].graph.result(a.value));
      const OpDef& combine = monoid == Monoid::Max   ? kMaximum
                             : monoid == Monoid::Min ? kMinimum
                                                     : kAdd;
      add(combine, {&type, &type}, {a.into, from}, When::Later);
    }
  }

  /// Next values that do not lie in their state yet are copied there at the very end.
  void store_states() {
    const int r = update();
    const Graph& graph = regions_[at(r)].graph;
    const Attrs none;
    for (const Output& output : graph.outputs()) {
      if (output.kind != Output::Kind::Next) continue;
      const int from = values_.value(r, output.value);
      const auto& buffer = values_.buffers()[at(value(from).buffer)];
      const bool stored =
          buffer.home == Buffer::Home::State && value(buffer.values[0]).name == output.name;
      if (stored) continue;
      // What another state becomes may be read here, for it lies there to the end; what it was may
      // be overwritten by now.
      check(value(from).kind != StoredValue::Kind::State, "the next value of state '", output.name,
            "' is another state");
      Draft draft;
      draft.ins = {from};
      draft.time = time_.stores + static_cast<std::int32_t>(stores_.size());
      const TensorType& type = value(from).result->type;
      const KernelRequest what =
          request(OpCall(kIdentity, {&type}, none, {&type}), {from}, {from}, 0);
      stores_.emplace_back(drafts_[at(r)].size(), output.name);
      add_call(r, "", what, std::move(draft));
    }
  }

  void place_buffers() {
    std::vector<Lifetime> lifetimes;
    const auto& buffers = values_.buffers();
    for (std::size_t b = 0; b < buffers.size(); ++b) {
      if (buffers[b].home != Buffer::Home::Work) continue;
      work_index_.emplace(static_cast<int>(b), lifetimes.size());
      lifetimes.push_back({buffers[b].bytes + 2 * guard(), buffers[b].first, buffers[b].last});
    }
    for (auto& region : drafts_) {
      for (Draft& draft : region) {
        if (draft.workspace_bytes == 0) continue;
        workspace_index_.push_back(lifetimes.size());
        lifetimes.push_back({draft.workspace_bytes + 2 * guard(), draft.time, draft.time, false});
      }
    }
    layout_ = plan_memory(lifetimes, kAlignment);
    for (std::size_t i = 0; i < lifetimes.size() && guard() > 0; ++i) {
      const Lifetime& b = lifetimes[i];
      const Place place{Place::Section::Work, layout_.offsets[i] += guard()};
      program_.guarded.push_back({place, b.bytes - 2 * guard(), b.first, b.last});
    }
    lifetimes_ = std::move(lifetimes);
    program_.work_bytes = layout_.bytes;
    program_.lower_bound_bytes = layout_.lower_bound;
  }

  Place place(int v) {
    const StoredValue& stored = value(v);
    const Buffer& buffer = values_.buffers()[at(stored.buffer)];
    const std::int64_t shift = stored.offset_elements * size_of(stored.result->type.dtype);
    Place out;
    if (buffer.home == Buffer::Home::Work) {
      out = {Place::Section::Work, layout_.offsets[work_index_.at(stored.buffer)]};
    } else if (buffer.home == Buffer::Home::State) {
      out = state_place(value(buffer.values[0]).name);
    } else {
      const StoredValue& constant = value(buffer.values[0]);
      const Node& node = regions_[at(constant.region)].graph.node(constant.id.node);
      out = states_.constant(constant.result->type.dtype, std::get<double>(node.attrs[0]));
    }
    out.offset += shift;
    return out;
  }

  std::int64_t guard() const { return states_.guard_bytes; }

  Place state_place(const std::string& path) {
    const auto& [state, lies] = state_of_.at(path);
    return states_.place(*state, *lies);
  }

  void place_calls() {
    std::size_t workspace = 0;
    for (int r = 0; r < static_cast<int>(drafts_.size()); ++r) {
      for (Draft& draft : drafts_[at(r)]) {
        for (const int v : draft.ins) draft.call.ins.push_back(place(v));
        for (const int v : draft.outs) draft.call.outs.push_back(place(v));
        draft.call.time = draft.time;
        if (draft.workspace_bytes > 0) {
          draft.call.workspace = {Place::Section::Work,
                                  layout_.offsets[workspace_index_[workspace++]]};
        }
        program_.regions[at(r)].calls.push_back(std::move(draft.call));
      }
    }
    for (const auto& [call, path] : stores_) {
      program_.regions[at(update())].calls[call].outs = {state_place(path)};
    }
    // A state that no call reads or writes is a state all the same.
    for (const auto& [path, state] : state_of_) states_.place(*state.first, *state.second);
  }

  NamedTensor named(const std::string& name, int v) {
    const Result& lies = *value(v).result;
    return {name, lies.type, place(v), lies.logical, lies.placement};
  }

  void name_inputs() {
    for (int v = 0; v < static_cast<int>(values_.values().size()); ++v) {
      const StoredValue& stored = value(v);
      if (stored.kind == StoredValue::Kind::Batch) {
        program_.batch.push_back(named(stored.name, v));
      }
    }
    for (int r = 0; r < static_cast<int>(regions_.size()); ++r) {
      for (const Output& output : regions_[at(r)].graph.outputs()) {
        if (output.kind != Output::Kind::Metric) continue;
        const int v = values_.value(r, output.value);
        program_.metrics.push_back(named(output.name, v));
      }
    }
  }

  /// What lies in the work section at its fullest moment.
  void count_memory() {
    std::vector<std::int64_t> alive(at(time_.end + 2), 0);
    for (const Lifetime& b : lifetimes_) {
      alive[at(b.first)] += b.bytes;
      alive[at(b.last + 1)] -= b.bytes;
    }
    std::int64_t now = 0, most = -1;
    std::int32_t peak = 0;
    for (std::size_t t = 0; t < alive.size(); ++t) {
      now += alive[t];
      if (now > most) most = now, peak = static_cast<std::int32_t>(t);
    }
    MemoryUse& use = program_.memory;
    for (const auto& [b, index] : work_index_) {
      const Buffer& buffer = values_.buffers()[at(b)];
      if (buffer.first > peak || buffer.last < peak) continue;
      use_of(buffer, use) += lifetimes_[index].bytes;
    }
    for (const std::size_t index : workspace_index_) {
      if (lifetimes_[index].first == peak) use.temporaries += lifetimes_[index].bytes;
    }
  }

  std::int64_t& use_of(const Buffer& buffer, MemoryUse& use) const {
    const auto any = [&](auto&& holds) {
      return std::any_of(buffer.values.begin(), buffer.values.end(),
                         [&](int v) { return holds(value(v)); });
    };
    const auto kind = [&](int region) { return regions_[at(region)].kind; };
    const auto feeds = [&](const StoredValue& v, auto&& region) {
      return std::any_of(v.uses.begin(), v.uses.end(),
                         [&](const ValueUse& use) { return region(kind(use.region)); });
    };
    if (any([](const StoredValue& v) { return !v.result->type.layout.plain(); })) return use.packed;
    if (any([](const StoredValue& v) { return v.kind == StoredValue::Kind::Batch; }))
      return use.inputs;
    if (any([&](const StoredValue& v) {
          return v.kind == StoredValue::Kind::Accumulator ||
                 (kind(v.region) == RegionKind::Backward &&
                  feeds(v, [](RegionKind k) { return k == RegionKind::Update; }));
        })) {
      return use.gradients;
    }
    if (any([&](const StoredValue& v) {
          return kind(v.region) < RegionKind::Backward &&
                 feeds(v, [](RegionKind k) { return k >= RegionKind::Backward; });
        })) {
      return use.activations;
    }
    return use.temporaries;
  }

  const std::vector<Region>& regions_;
  const Timeline& time_;
  StateSection& states_;
  KernelTable kernels_;
  std::uint64_t seed_;
  RankShards shards_;
  ProgramValues values_;
  ProgramPlan program_;
  std::unordered_map<std::string, std::pair<const State*, const Result*>> state_of_;
  std::map<std::pair<int, NodeId>, std::vector<const Accumulation*>>
      accumulations_;                       // by region and node
  std::vector<std::vector<Draft>> drafts_;  // by region
  std::vector<std::pair<std::size_t, std::string>>
      stores_;  // calls of Update that write a state: its index, its path
  std::unordered_map<int, std::size_t> work_index_;  // buffer -> lifetime
  std::vector<std::size_t> workspace_index_;         // per draft with a workspace, in order
  std::vector<Lifetime> lifetimes_;
  MemoryLayout layout_;
};

}  // namespace

ProgramPlan lower(const std::string& name, const Program& program, const Timeline& time,
                  StateSection& states, Device& device, std::uint64_t seed, int rank) {
  return Lowering(name, program, time, states, device, seed, rank).run();
}

}  // namespace tessera
