#include "tessera/passes/decide.h"

#include "tessera/base/index.h"

#include <algorithm>
#include <limits>

namespace tessera {

namespace {

constexpr double kImpossible = std::numeric_limits<double>::infinity();
// The price of gathering a state that should be read where it lies. Above all other prices, but
// not infinite: if two states of one node lie differently, one of them has to be gathered.
constexpr double kBreach = 1e18;
constexpr double kWorkPrice =
    1e-3;  // of touching an element, where moving one between cores costs 1

/// How a value is placed on the axis at hand, in words of the rule: a factor, kReplicate, kThrough
/// (partial), kRows (partial by Monoid::One) or kNoFactor (sharded in a way that the rule cannot
/// say).
using FactorOnAxis = Choice;

class Decider {
 public:
  Decider(const Undecided& undecided, const Axes& axes)
      : q_(undecided), rule_(*undecided.rule), axes_(axes) {
    for (std::size_t i = 0; i < q_.ins.size(); ++i)
      in_factors_.push_back(factors_on_axes(rule_, rule_.ins[i], q_.ins[i].have, axes));
    for (std::size_t r = 0; r < q_.outs.size(); ++r) {
      if (q_.wanted[r] == nullptr) {
        out_factors_.emplace_back();
        continue;
      }
      Choices wanted = factors_on_axes(rule_, rule_.outs[r], q_.wanted[r]->on_axes, axes);
      for (int a = 0; a < axes.count(); ++a) {
        if (q_.wanted[r]->on_axes[at(a)] == kPartialOne) wanted[at(a)] = kRows;
      }
      out_factors_.push_back(std::move(wanted));
    }
  }

  /// Minor axes first: time, data, model, so that local sizes are known when the last are priced.
  NodeDecision run() {
    decide_all();
    if (!holds()) {
      // A guess about an outer axis proved wrong, so later axes may not build on guesses.
      trusts_ = false;
      decide_all();
    }
    return std::move(out_);
  }

 private:
  void decide_all() {
    out_ = {};
    for (int i = 0; i < axes_.count(); ++i) out_.choices.push_back(kReplicate);
    for (int axis = axes_.count(); axis-- > 0;) {
      const Choice best = choose(axis);
      out_.choices[at(axis)] = best;
      note_lost(axis, best);
    }
  }

  /// True where every choice is legal now that all are known.
  bool holds() const {
    for (int a = 0; a < axes_.count(); ++a) {
      const Choice f = out_.choices[at(a)];
      if (f >= 0 && !(after_whole(a, rule_.ins) && after_whole(a, rule_.outs))) return false;
    }
    return true;
  }
  /// True where the axes major to this one cut all that is major to its factor in a dim to the end.
  bool after_whole(int axis, const std::vector<Factors::Dims>& sides) const {
    const Choice f = out_.choices[at(axis)];
    for (const Factors::Dims& dims : sides) {
      for (const std::vector<int>& fs : dims) {
        const auto found = std::find(fs.begin(), fs.end(), f);
        if (found == fs.end()) continue;
        for (auto major = fs.begin(); major != found; ++major) {
          std::int64_t cut = 1;
          for (int a = 0; a < axis; ++a) {
            if (out_.choices[at(a)] == *major) cut *= axes_[a].size;
          }
          if (cut != rule_.list[at(*major)].size) return false;
        }
      }
    }
    return true;
  }

  FactorOnAxis factor_on_axis(std::size_t operand, int axis) const {
    const AxisPlacement have = q_.ins[operand].have[at(axis)];
    return have == kPartialOne ? kRows
           : is_partial(have)  ? kThrough
                               : in_factors_[operand][at(axis)];
  }

  Choice choose(int axis) {
    axis_ = axis;
    ranks_ = static_cast<double>(axes_[axis].size);
    time_ = axes_.is_time(axis);
    on_axis_.clear();
    for (std::size_t i = 0; i < q_.ins.size(); ++i) on_axis_.push_back(factor_on_axis(i, axis));
    if (time_ && rule_.linear == Linear::Joint && !q_.ins.empty() &&
        std::all_of(q_.ins.begin(), q_.ins.end(),
                    [&](const Undecided::Operand& in) { return in.have[at(axis)] == kPartialSum; }))
      return kThrough;  // a sum of accumulating terms: one accumulator
    if (q_.pinned != nullptr && !time_) return (*q_.pinned)[at(axis)];
    const auto cheapest = [&](const std::vector<Choice>& candidates) {
      Choice best = kReplicate;
      double least = kImpossible;
      for (const Choice candidate : candidates) {
        const double cost = cost_of(candidate);
        if (cost < least) least = cost, best = candidate;
      }
      return std::pair(best, least);
    };
    // What lies as Monoid::One is finished for its own reader alone.
    const bool rows = std::ranges::find(on_axis_, kRows) != on_axis_.end(),
               inherits = q_.inherited != nullptr && (!rows || (*q_.inherited)[at(axis)] >= 0);
    if (inherits && !(q_.before_loop && time_)) {
      const Choice inherited = (*q_.inherited)[at(axis)];
      if (inherited < 0 || legal(inherited)) {
        const auto [best, cost] = cheapest({inherited});
        if (cost < kBreach) return best;
      }
    }
    const auto [best, cost] = cheapest(candidates());
    if (cost == kImpossible) out_.stuck = axis;
    return best;
  }

  /// Axes enter only by what operands and demands bring: nothing is invented.
  std::vector<Choice> candidates() const {
    std::vector<Choice> out{kReplicate};
    const auto offer = [&](FactorOnAxis s) {
      if (s >= 0 && std::find(out.begin(), out.end(), s) == out.end() && legal(s)) out.push_back(s);
    };
    for (const FactorOnAxis s : on_axis_) offer(s);
    offer_parts(offer);
    for (const Choices& wanted : out_factors_) {
      if (!wanted.empty()) offer(wanted[at(axis_)]);
    }
    if (q_.before_loop && time_) return {kReplicate};
    if (hands_rows_through()) out.push_back(kRows);
    if (rule_.rows_factor >= 0 &&
        std::ranges::any_of(rule_.rows_operands, [&](int i) { return on_axis_[at(i)] == kRows; }))
      offer(static_cast<FactorOnAxis>(rule_.rows_factor));
    if (rule_.linear == Linear::None) return out;
    for (const int i : rule_.linear_operands) {
      if (!is_sum(q_.ins[at(i)].have[at(axis_)])) continue;
      out.push_back(kThrough);
      break;
    }
    return out;
  }

  /// Zeros of operands on other ranks make zeros there, and all that lie so do it alike.
  bool hands_rows_through() const {
    bool zeros = false;
    ValueId rows_of;
    for (std::size_t i = 0; i < q_.ins.size(); ++i) {
      if (on_axis_[i] != kRows) continue;
      if (rows_of.valid() && !(rows_of == q_.ins[i].rows_of)) return false;
      rows_of = q_.ins[i].rows_of;
      zeros = zeros || (q_.zero_where >> i & 1U) != 0;
    }
    return zeros;
  }

  /// A sum that has to be finished may be finished in parts along a dim, first of all one that is
  /// not cut yet. Parts of a dim that time cuts further would mix rows of several micro-batches.
  template <typename Offer>
  void offer_parts(const Offer& offer) const {
    if (time_ || !q_.parts) return;
    for (std::size_t i = 0; i < q_.ins.size(); ++i) {
      if (on_axis_[i] != kThrough && on_axis_[i] != kRows) continue;
      const AxisPlacements& have = q_.ins[i].have;
      for (const bool cut : {false, true}) {
        for (std::size_t d = 0; d < rule_.ins[i].size(); ++d) {
          const bool is_cut =
              std::find(have.begin(), have.end(), static_cast<AxisPlacement>(d)) != have.end();
          if (cut_by_time(have, static_cast<AxisPlacement>(d))) continue;
          for (const int f : rule_.ins[i][d]) {
            if (is_cut == cut) offer(static_cast<FactorOnAxis>(f));
          }
        }
      }
    }
  }

  /// True where an axis of time that is minor to the one at hand cuts that dim.
  bool cut_by_time(const AxisPlacements& have, AxisPlacement dim) const {
    for (int a = axis_ + 1; a < axes_.count(); ++a) {
      if (axes_.is_time(a) && have[at(a)] == dim) return true;
    }
    return false;
  }

  /// The same of the dim of an operand that has that factor.
  bool is_cut_by_time(std::size_t operand, Choice f) const {
    const Factors::Dims& dims = rule_.ins[operand];
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (std::ranges::find(dims[d], f) != dims[d].end() &&
          cut_by_time(q_.ins[operand].have, static_cast<AxisPlacement>(d)))
        return true;
    }
    return false;
  }

  bool legal(Choice f) const {
    const Factor& factor = rule_.list[at(f)];
    switch (factor.kind) {
      case FactorKind::Pass:
      case FactorKind::Max:
      case FactorKind::Min:
      case FactorKind::One: break;
      case FactorKind::Stat:
        if (q_.expands && !time_) break;
        return false;
      default: return false;
    }
    return in_one_run(f, rule_.ins) && in_one_run(f, rule_.outs);
  }

  /// Inside a compound dim an axis must divide its factor, and what is major to it must be cut to
  /// the end: else a shard would not be one run of the dim.
  bool in_one_run(Choice f, const std::vector<Factors::Dims>& sides) const {
    for (const Factors::Dims& dims : sides) {
      for (const std::vector<int>& fs : dims) {
        const auto found = std::find(fs.begin(), fs.end(), f);
        if (found == fs.end() || fs.size() < 2) continue;
        if (rule_.list[at(f)].size % (cut_by_now(f) * axes_[axis_].size) != 0) return false;
        for (auto major = fs.begin(); major != found; ++major) {
          if (likely_cut(static_cast<Choice>(*major)) != rule_.list[at(*major)].size) return false;
        }
      }
    }
    return true;
  }
  /// Into how many parts it will be cut by the major axes, which are not decided yet.
  std::int64_t likely_cut(Choice f) const {
    std::int64_t out = 1;
    for (int a = 0; a < axis_; ++a) {
      if (trusts_ && likely(a) == f) out *= axes_[a].size;
    }
    return out;
  }
  std::int64_t cut_by_now(Choice f) const {
    std::int64_t out = 1;
    for (int a = axis_ + 1; a < axes_.count(); ++a) {
      if (out_.choices[at(a)] == f) out *= axes_[a].size;
    }
    return out;
  }

  static bool has(const Factors::Dims& dims, Choice f) {
    return std::any_of(dims.begin(), dims.end(), [&](const std::vector<int>& fs) {
      return std::find(fs.begin(), fs.end(), f) != fs.end();
    });
  }

  /// The price of bringing n elements, whole along this axis, from one factor to another.
  double moved(FactorOnAxis from, FactorOnAxis to, double n, bool free_in_time) const {
    if (from == to || from == kReplicate) return 0;
    if (time_) return from == kThrough || from == kRows || free_in_time ? 0 : kImpossible;
    const double others = others_of(n);
    if (from == kThrough || from == kRows) return to == kReplicate ? 2 * others : others;
    return to >= 0 ? others / ranks_ : others;
  }

  /// The price of receiving all but a rank's own part of n elements.
  double others_of(double n) const { return axes_.price(axis_) * (ranks_ - 1) / ranks_ * n; }

  double cost_of(Choice candidate) const {
    double cost = 0, work = 0;
    bool handed = false;  // `each` hands the sums of one operand through
    for (std::size_t i = 0; i < q_.ins.size(); ++i) {
      const Undecided::Operand& in = q_.ins[i];
      FactorOnAxis to = kReplicate;
      if (candidate == kThrough) {
        const bool sum = on_axis_[i] == kThrough || on_axis_[i] == kRows,
                   linear = rule_.is_linear(static_cast<int>(i)) &&
                            (rule_.linear == Linear::Joint || (sum && !handed));
        if (linear) to = sum ? on_axis_[i] : kThrough, handed = true;
      } else if (on_axis_[i] == kRows &&
                 (candidate == kRows || q_.reads_rows(static_cast<int>(i), candidate))) {
        to = kRows;
      } else if (candidate >= 0 && has(rule_.ins[i], candidate)) {
        to = candidate;
      }
      // A sum over micro-batches is complete after the last: none of them can read it.
      if (time_ && candidate >= 0 && on_axis_[i] == kThrough) return kImpossible;
      // Rows of other micro-batches would be needed.
      if (to >= 0 && to != on_axis_[i] && !in.whole_in_time && is_cut_by_time(i, to))
        return kImpossible;
      const double c = moved(on_axis_[i], to, local_elements(i), in.whole_in_time);
      if (c > 0 && in.bound) cost += kBreach;
      cost += c;
      work += static_cast<double>(in.type->numel());
    }
    for (std::size_t r = 0; r < q_.outs.size(); ++r) {
      const double n = local_result(r);
      cost += cost_of_result(candidate, r, n);
      work += static_cast<double>(q_.outs[r]->numel());
    }
    return cost + kWorkPrice * work / (candidate >= 0 ? ranks_ : 1);
  }

  double cost_of_result(Choice candidate, std::size_t r, double n) const {
    const bool in_result = candidate >= 0 && has(rule_.outs[r], candidate);
    FactorOnAxis on_axis = candidate;
    double cost = 0;
    if (candidate >= 0 && !in_result)
      on_axis = !rule_.reduces(candidate, static_cast<int>(r))      ? kReplicate
                : rule_.list[at(candidate)].kind == FactorKind::One ? kRows
                                                                    : kThrough;
    if (candidate >= 0 && rule_.list[at(candidate)].kind == FactorKind::Stat) {
      // Two all-reduces of a number per row.
      const auto size = static_cast<double>(in_result ? rule_.list[at(candidate)].size : 1);
      cost += 4 * others_of(n / size);
    }
    if (time_) return cost;  // nothing is moved along time
    if (q_.wanted[r] == nullptr || !q_.wanted[r]->firm) {
      // What lies as Monoid::One is mostly read so.
      if (on_axis == kThrough && !q_.deferred) cost += others_of(n);
    } else {
      const Choice wanted = out_factors_[r][at(axis_)];
      cost += moved(on_axis, wanted, n, false);
    }
    return cost;
  }

  /// Elements on one rank, whole along the axis at hand. A sum that is finished in the parts that are
  /// demanded along a minor axis has as few as these.
  double local_elements(std::size_t i) const {
    const Undecided::Operand& in = q_.ins[i];
    auto n = static_cast<double>(in.type->numel());
    for (int a = 0; a < axes_.count(); ++a) {
      const bool in_parts = a > axis_ && is_partial(in.have[at(a)]) &&
                            is_demanded(out_.choices[at(a)], a) &&
                            has(rule_.ins[i], out_.choices[at(a)]);
      if (a != axis_ && (in.have[at(a)] >= 0 || in_parts)) n /= static_cast<double>(axes_[a].size);
    }
    return n;
  }
  bool is_demanded(Choice choice, int axis) const {
    return choice >= 0 && q_.wanted[0] != nullptr && q_.wanted[0]->firm &&
           out_factors_[0][at(axis)] == choice;
  }
  double local_result(std::size_t r) const {
    auto n = static_cast<double>(q_.outs[r]->numel());
    for (int a = 0; a < axes_.count(); ++a) {
      const Choice choice = a > axis_ ? out_.choices[at(a)] : a < axis_ ? likely(a) : kReplicate;
      if (choice >= 0 && has(rule_.outs[r], choice)) n /= static_cast<double>(axes_[a].size);
    }
    return n;
  }
  /// A guess at the choice along an axis that is not decided yet: the sharding of an operand.
  Choice likely(int axis) const {
    for (const Choices& factors : in_factors_) {
      if (factors[at(axis)] >= 0) return factors[at(axis)];
    }
    return kReplicate;
  }

  /// A sharded operand whose axis ends here because the dim that it lands on cannot be cut so.
  void note_lost(int axis, Choice best) {
    if (best != kReplicate || time_ || q_.pinned != nullptr) return;
    for (std::size_t i = 0; i < q_.ins.size(); ++i) {
      const AxisPlacement on_axis = q_.ins[i].have[at(axis)];
      if (on_axis < 0) continue;
      const FactorOnAxis f = on_axis_[i];
      const std::vector<int>& fs = rule_.ins[i][at(on_axis)];
      const bool cannot = f == kNoFactor
                              ? fs.size() > 1
                              : f >= 0 && rule_.list[at(f)].kind == FactorKind::Pass && !legal(f);
      if (cannot) out_.lost.push_back({axis, static_cast<int>(i), on_axis});
    }
  }

  const Undecided& q_;
  const Factors& rule_;
  const Axes& axes_;
  std::vector<Choices> in_factors_, out_factors_;
  NodeDecision out_;
  bool trusts_ = true;  // that axes which are not decided yet will be what operands bring
  // About the axis that is being decided:
  int axis_ = 0;
  double ranks_ = 1;
  bool time_ = false;
  std::vector<FactorOnAxis> on_axis_;  // per operand
};

}  // namespace

NodeDecision decide(const Undecided& node, const Axes& axes) { return Decider(node, axes).run(); }

}  // namespace tessera
