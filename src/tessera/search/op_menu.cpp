#include "tessera/search/op_menu.h"

#include <algorithm>
#include <functional>

#include "tessera/base/index.h"
#include "tessera/ir/builder.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/expansion.h"
#include "tessera/passes/op_decisions.h"

namespace tessera {

namespace {

class MenuMaker {
 public:
  MenuMaker(const OpCall& call, const OpUse& use, Prices& prices)
      : call_(call), use_(use), prices_(prices), axes_(prices.axes()), rule_(factors_of(call)) {
    flops_ = call.op().flops == nullptr ? 0 : call.op().flops(call);
    bytes_ = bytes_moved(call);
    undecided_.rule = &rule_;
    for (int i = 0; i < call.num_in(); ++i) undecided_.ins.push_back({&call.in(i), axes_.whole()});
    if (std::ranges::any_of(rule_.list, [](const Factor& f) { return f.kind == FactorKind::Stat; }))
      build_expansion();
    if (use.any_gradient()) build_gradient();
  }

  OpMenu run() {
    if (use_.pinned != nullptr) {
      offer(*use_.pinned);
    } else {
      Choices choices;
      for (int a = 0; a < axes_.count(); ++a) choices.push_back(kReplicate);
      choose(0, choices);
    }
    menu_.costs = std::make_shared<const Options>(std::move(costs_));
    menu_.flops = flops_;
    menu_.moved_bytes = bytes_;
    return std::move(menu_);
  }

 private:
  // ---- which ways there are

  void choose(int axis, Choices& choices) {
    if (axis == axes_.count()) return offer(choices);
    choose(axis + 1, choices);
    if (axes_.is_time(axis)) return;
    for (int f = 0; f < static_cast<int>(rule_.list.size()); ++f) {
      const Factor& factor = rule_.list[at(f)];
      if (!may_shard(call_.op(), factor.kind)) continue;
      choices[at(axis)] = static_cast<Choice>(f);
      if (divides(f, choices)) choose(axis + 1, choices);
      choices[at(axis)] = kReplicate;
    }
  }

  bool divides(int f, const Choices& choices) const {
    std::int64_t cut = 1;
    for (int a = 0; a < axes_.count(); ++a) {
      if (choices[at(a)] == f) cut *= axes_[a].size;
    }
    return rule_.list[at(f)].size % cut == 0;
  }

  /// True where each shard is one run of each dim, and no sum is of bools or of two kinds.
  bool legal(const Choices& choices, const std::vector<AxisPlacements>& ins,
             const std::vector<AxisPlacements>& outs) const {
    const auto reads = [&](const Factors::Dims& dims, const AxisPlacements& on_axes) {
      const Choices back = factors_on_axes(rule_, dims, on_axes, axes_);
      for (int a = 0; a < axes_.count(); ++a) {
        if (on_axes[at(a)] >= 0 && back[at(a)] != choices[at(a)]) return false;
      }
      return true;
    };
    for (std::size_t i = 0; i < ins.size(); ++i) {
      if (!reads(rule_.ins[i], ins[i])) return false;
    }
    for (std::size_t r = 0; r < outs.size(); ++r) {
      if (!reads(rule_.outs[r], outs[r])) return false;
      AxisPlacement partial = kWhole;
      for (const AxisPlacement on_axis : outs[r]) {
        if (!is_partial(on_axis)) continue;
        if (partial != kWhole && partial != on_axis) return false;
        if (on_axis == kPartialSum && call_.out(static_cast<int>(r)).dtype == DType::Bool)
          return false;
        partial = on_axis;
      }
    }
    return true;
  }

  void offer(const Choices& choices) {
    std::vector<AxisPlacements> ins, outs;
    for (int i = 0; i < call_.num_in(); ++i) ins.push_back(required(undecided_, choices, i, axes_));
    for (int r = 0; r < call_.num_out(); ++r) outs.push_back(natural(rule_, choices, r, axes_));
    if (use_.pinned == nullptr && !legal(choices, ins, outs)) return;
    const Forward forward = price_forward(choices, ins, outs);
    std::vector<AxisPlacements> kept;
    for (const AxisPlacements& on_axes : forward.outs) kept.push_back(without_partials(on_axes));
    if (use_.kept != nullptr && !use_.kept->empty()) {
      for (std::size_t r = 0; r < kept.size(); ++r) kept[r] = (*use_.kept)[r];
      return take(choices, ins, forward, kept);
    }
    scatter(0, choices, ins, forward, kept);
  }

  struct Forward {
    Cost cost = 0;
    std::vector<AxisPlacements> outs;  // before sums are finished
  };

  /// Each axis along which result 0 is a sum: finished whole, or in parts along a dim.
  void scatter(int axis, const Choices& choices, const std::vector<AxisPlacements>& ins,
               const Forward& forward, std::vector<AxisPlacements>& kept) {
    if (axis == axes_.count() || forward.outs.empty()) return take(choices, ins, forward, kept);
    scatter(axis + 1, choices, ins, forward, kept);
    if (!is_partial(forward.outs[0][at(axis)])) return;
    const Shape& shape = call_.out(0).shape;
    for (int d = 0; d < shape.ndim(); ++d) {
      std::int64_t cut = axes_[axis].size;
      for (int a = 0; a < axes_.count(); ++a) {
        if (kept[0][at(a)] == d) cut *= axes_[a].size;
      }
      if (shape[d] % cut != 0) continue;
      kept[0][at(axis)] = static_cast<AxisPlacement>(d);
      scatter(axis + 1, choices, ins, forward, kept);
      kept[0][at(axis)] = kWhole;
    }
  }

  // ---- what they cost

  Forward price_forward(const Choices& choices, const std::vector<AxisPlacements>& ins,
                        const std::vector<AxisPlacements>& outs) {
    const bool stat = std::ranges::any_of(
        choices, [&](Choice c) { return c >= 0 && rule_.list[at(c)].kind == FactorKind::Stat; });
    if (!stat) return {work_of(prices_, call_, choices, flops_, bytes_, ins, outs), outs};
    std::map<ValueId, AxisPlacements> given, wanted;
    for (std::size_t i = 0; i < ins.size(); ++i) given[{expansion_ins_[i], 0}] = ins[i];
    for (std::size_t r = 0; r < outs.size(); ++r) wanted[expansion_outs_[r]] = outs[r];
    const Placed placed = expansion_->place(prices_, given, wanted, nullptr);
    Forward out{placed.cost, {}};
    for (const ValueId v : expansion_outs_) out.outs.push_back(placed.on_axes.at(v));
    return out;
  }

  void take(const Choices& choices, const std::vector<AxisPlacements>& ins, const Forward& forward,
            const std::vector<AxisPlacements>& kept) {
    Cost cost = forward.cost;
    double bytes = 0;
    for (std::size_t r = 0; r < kept.size(); ++r) {
      const TensorType& type = call_.out(static_cast<int>(r));
      cost += prices_.move(type, forward.outs[r], kept[r], Traffic::Finish);
      if (use_.read_back[r])
        bytes += static_cast<double>(type.bytes()) / static_cast<double>(prices_.parts(kept[r]));
    }
    OpOption option{choices, ins, kept, std::vector<AxisPlacements>(ins.size())};
    if (gradient_) cost += price_gradient(option);
    if (cost == kNever) return;
    menu_.options.push_back(std::move(option));
    costs_.costs.push_back(cost);
    costs_.bytes.push_back(bytes);
  }

  /// Sets where the gradients of operands come to lie.
  Cost price_gradient(OpOption& option) {
    std::map<ValueId, AxisPlacements> given, wanted;
    for (std::size_t i = 0; i < option.ins.size(); ++i)
      given[{gradient_ins_[i], 0}] = option.ins[i];
    for (std::size_t r = 0; r < option.kept.size(); ++r) {
      given[{gradient_op_, static_cast<std::int32_t>(r)}] = option.kept[r];
      if (gradient_douts_[r] >= 0) given[{gradient_douts_[r], 0}] = option.kept[r];
    }
    for (std::size_t i = 0; i < option.ins.size(); ++i) {
      if (gradient_dins_[i].valid()) wanted[gradient_dins_[i]] = option.ins[i];
    }
    const Placed placed = gradient_->place(prices_, given, wanted, &option.choices);
    for (std::size_t i = 0; i < option.ins.size(); ++i) {
      if (gradient_dins_[i].valid()) option.gradients[i] = placed.on_axes.at(gradient_dins_[i]);
    }
    return placed.cost;
  }

  // ---- the ops that go with it

  void build_expansion() {
    Builder builder;
    std::vector<Value> ins;
    for (int i = 0; i < call_.num_in(); ++i) {
      ins.push_back(builder.batch(text("in", i), call_.in(i)));
      expansion_ins_.push_back(ins.back().id().node);
    }
    for (const Value& out : expansion(call_, ins)) expansion_outs_.push_back(out.id());
    expansion_ = std::make_unique<SmallGraph>(builder.finish(), expansion_ins_);
  }

  void build_gradient() {
    Builder builder;
    std::vector<Value> ins, outs, douts, dins(at(call_.num_in()));
    std::vector<NodeId> given;
    for (int i = 0; i < call_.num_in(); ++i) {
      ins.push_back(builder.batch(text("in", i), call_.in(i)));
      given.push_back(ins.back().id().node);
    }
    gradient_ins_ = given;
    outs = builder.add_all(call_.op(), ins, call_.attrs());
    gradient_op_ = outs[0].id().node;
    given.push_back(gradient_op_);
    for (int r = 0; r < call_.num_out(); ++r) {
      const bool flows = use_.flows[at(r)];
      douts.push_back(flows ? builder.batch(text("dout", r), call_.out(r)) : Value());
      gradient_douts_.push_back(flows ? douts.back().id().node : -1);
      if (flows) given.push_back(douts.back().id().node);
    }
    const auto wants = std::make_unique<bool[]>(at(call_.num_in()));
    for (int i = 0; i < call_.num_in(); ++i) wants[at(i)] = use_.wants[at(i)];
    GradCall grad(call_, ins, outs, douts, dins, {wants.get(), at(call_.num_in())});
    Mark backward;
    backward.phase = Phase::Backward;
    builder.set_mark(backward);
    call_.op().grad(grad);
    for (int i = 0; i < call_.num_in(); ++i) {
      const Value& din = dins[at(i)];
      gradient_dins_.push_back(wants[at(i)] && din.valid() ? cast(din, call_.in(i).dtype).id()
                                                           : ValueId{});
    }
    gradient_ = std::make_unique<SmallGraph>(builder.finish(), given);
  }

  const OpCall& call_;
  const OpUse& use_;
  Prices& prices_;
  const Axes& axes_;
  Factors rule_;
  double flops_ = 0, bytes_ = 0;
  Undecided undecided_;  // operands as they must lie
  std::unique_ptr<SmallGraph> expansion_, gradient_;
  std::vector<NodeId> expansion_ins_, gradient_ins_, gradient_douts_;
  std::vector<ValueId> expansion_outs_, gradient_dins_;
  NodeId gradient_op_ = -1;
  OpMenu menu_;
  Options costs_;
};

}  // namespace

bool OpUse::any_gradient() const { return std::ranges::find(wants, true) != wants.end(); }

OpMenu make_menu(const OpCall& call, const OpUse& use, Prices& prices) {
  return MenuMaker(call, use, prices).run();
}

}  // namespace tessera
