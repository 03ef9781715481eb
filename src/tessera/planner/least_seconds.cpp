#include "tessera/planner/least_seconds.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "tessera/base/index.h"
#include "tessera/schedule/pipeline.h"

namespace tessera {

namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

/// A number of each part of a model: of a stage they add up.
struct Line {
  double base = 0, before = 0, after = 0, layer = 0;
};

template <typename Of>
Line line_of(const ModelUse& use, const Of& of) {
  Line out{of(use.base), of(use.before), of(use.after), kNone};
  for (const StageUse& layer : use.layer) out.layer = std::min(out.layer, of(layer));
  return out;
}

/// A stage works for `work` after the stages before it have taken `ramp`, and messages.
struct Limit {
  Line work, ramp;
  double messages = 0;  // per stage before it
};

/// Seconds of so many micro-batches.
double all_seconds(const StageUse& use, std::int64_t m) {
  double out = 0;
  for (const RegionKind region : {RegionKind::Forward, RegionKind::Backward, RegionKind::Weights}) {
    out += use.seconds(region, 0, m);
    if (m > 1) out += use.seconds(region, m - 1, m);
    if (m > 2) out += static_cast<double>(m - 2) * use.seconds(region, 1, m);
  }
  return out;
}

class Least {
 public:
  Least(const ModelUse& use, const PipelineShape& shape, const std::vector<std::int64_t>& stacks,
        std::int64_t micro_batches, const Machine& machine, double sums)
      : use_(use),
        shape_(shape),
        stacks_(stacks),
        m_(micro_batches),
        machine_(machine),
        layers_(std::accumulate(stacks.begin(), stacks.end(), std::int64_t{0})),
        sums_(sums * static_cast<double>(micro_batches)),
        splits_(std::ranges::any_of(
            use.layer, [](const StageUse& layer) { return layer[StageUse::kWeights + 2] > 0; })) {}

  double seconds() { return loop() + update(); }

 private:
  template <typename Of>
  double whole(const Of& of) const {
    double out = static_cast<double>(shape_.stages * shape_.chunks) * of(use_.base) +
                 of(use_.before) + of(use_.after);
    for (std::size_t s = 0; s < stacks_.size(); ++s)
      out += static_cast<double>(stacks_[s]) * of(use_.layer[s]);
    for (const StageUse& between : use_.between) out += of(between);
    return out;
  }
  auto work_of() const {
    return [this](const StageUse& use) { return all_seconds(use, m_); };
  }
  /// Work plus the sums of gradients at the end of the loop, less what these overlap: half of the
  /// last backward; with several chunks on a stage, all that follows the first chunk's.
  auto summed_of() const {
    return [this](const StageUse& use) {
      double beside = 0;
      if (machine_.device.overlap && shape_.chunks == 1)
        beside = (use.seconds(RegionKind::Backward, m_ - 1, m_) +
                  use.seconds(RegionKind::Weights, m_ - 1, m_)) /
                 2;
      else if (machine_.device.overlap)
        beside = tail_seconds(use);
      return all_seconds(use, m_) - beside + use[StageUse::kDataLast];
    };
  }
  double tail_seconds(const StageUse& use) const {
    double out = 0;
    for (std::size_t r = 0; r < shape_.tail.size(); ++r) {
      const auto region =
          static_cast<RegionKind>(static_cast<std::size_t>(RegionKind::Forward) + r);
      const std::int64_t count = std::min(shape_.tail[r], m_);
      for (std::int64_t k = m_ - count; k < m_; ++k) {
        if (k > 0 && k + 2 < m_) {  // alike
          out += static_cast<double>(m_ - 2 - k) * use.seconds(region, k, m_);
          k = m_ - 2;
        }
        out += use.seconds(region, k, m_);
      }
    }
    return out;
  }
  auto waits_of() const {
    return [this](const StageUse& use) {
      const double beside = machine_.device.overlap ? 0 : all_seconds(use, m_);
      return beside + sums_ * use[StageUse::kDataLast];
    };
  }

  double loop() {
    const auto stages = static_cast<double>(shape_.stages);
    double low = std::max(whole(work_of()), whole(waits_of())) / stages;
    if (shape_.stages == 1) {
      const double beside = machine_.device.overlap ? whole([this](const StageUse& use) {
        return use.seconds(RegionKind::Backward, m_ - 1, m_);
      })
                                                    : 0;
      const double sums =
          sums_ > 0 ? 0 : whole([](const StageUse& use) { return use[StageUse::kDataLast]; });
      return std::max(low, whole(work_of()) + std::max(0.0, sums - beside));
    }
    const std::vector<Limit> limits = limits_of();
    for (std::int64_t s = 0; s < shape_.stages; ++s)
      messages_.push_back(machine_.message_seconds(s * shape_.ranks, (s + 1) * shape_.ranks,
                                                   shape_.ranks, use_.message_bytes));
    low = std::max(low, way());
    double high = low;
    for (int i = 0; i < 60 && !ends(high, limits); ++i) {
      low = high;
      high *= 1.1;
    }
    for (int i = 0; i < 24 && high > low * (1 + 3e-4); ++i)
      (ends((low + high) / 2, limits) ? high : low) = (low + high) / 2;
    return low;
  }

  /// Of one micro-batch through all stages and back. Weights are no part of it; where they are not
  /// told apart, they take at most so much of backward.
  double way() const {
    constexpr double kWeightsShare = 0.6;
    const auto of = [this](const StageUse& use) {
      double out = 0;
      for (const std::size_t first : {StageUse::kForward, StageUse::kBackward}) {
        const double last = use[first + 2], least = std::min({use[first], use[first + 1], last});
        const bool share = shape_.splits && first == StageUse::kBackward;
        out += least * (share && !splits_ ? 1 - kWeightsShare : 1);
      }
      return out;
    };
    double out = whole(of);
    const auto rounds = static_cast<double>(std::max<std::int64_t>(shape_.chunks, 1));
    for (const double message : messages_) out += 2 * rounds * message;
    return out - 2 * rounds * messages_.back();
  }

  std::vector<Limit> limits_of() const {
    const auto forward = [this](const StageUse& use) {
      return use.seconds(RegionKind::Forward, 0, m_);
    };
    const auto both = [&](const StageUse& use) {
      return forward(use) + use.seconds(RegionKind::Backward, m_ - 1, m_);
    };
    const Line out = line_of(use_, forward);
    std::vector<Limit> limits;
    if (shape_.splits)
      limits.push_back({line_of(use_, work_of()), out, 1});
    else
      limits.push_back({line_of(use_, work_of()), line_of(use_, both), 2});
    if (sums_ > 0)
      limits.push_back({line_of(use_, waits_of()), {}, 0});
    else
      limits.push_back({line_of(use_, summed_of()), out, 1});
    return limits;
  }

  /// Whether stages can have all layers and end in time. More layers on a stage make those after
  /// it begin later by less than a layer's work: so it is never better to take fewer.
  bool ends(double end, const std::vector<Limit>& limits) const {
    std::vector<double> begin(limits.size(), 0);
    std::int64_t left = layers_;
    for (std::int64_t s = 0; s < shape_.stages; ++s) {
      const bool first = s == 0;
      std::int64_t most = left;
      for (std::size_t i = 0; i < limits.size(); ++i) {
        const Line& work = limits[i].work;
        const double room = end - begin[i] - static_cast<double>(shape_.chunks) * work.base -
                            (first ? work.before : 0) - (s == shape_.last ? work.after : 0);
        if (room < 0) return false;
        if (work.layer * static_cast<double>(most) > room)
          most = static_cast<std::int64_t>(room / work.layer * (1 + 1e-9));
      }
      left -= most;
      // Of its first chunk: where it has several, they are cut evenly.
      const std::int64_t even =
          layers_ / (shape_.stages * std::max<std::int64_t>(shape_.chunks, 1));
      const auto of_first = static_cast<double>(shape_.chunks == 1   ? most
                                                : first              ? 0
                                                : shape_.chunks == 0 ? 1
                                                                     : even);
      for (std::size_t i = 0; i < limits.size(); ++i) {
        const Line& ramp = limits[i].ramp;
        begin[i] += ramp.base + (first ? ramp.before : 0) + of_first * ramp.layer +
                    limits[i].messages * messages_[at(s)];
      }
    }
    return left <= 0;
  }

  /// Of the stage that takes longest for it.
  double update() const {
    const auto once = [](const StageUse& use) {
      return use[StageUse::kBegin] + use[StageUse::kUpdate];
    };
    const Line each = line_of(use_, once);
    const std::int64_t most = (layers_ + shape_.stages - 1) / shape_.stages;
    const double of_most = each.base + static_cast<double>(most) * each.layer +
                           std::min(0.0, each.before) + std::min(0.0, each.after);
    return std::max(0.0, of_most);
  }

  const ModelUse& use_;
  const PipelineShape& shape_;
  const std::vector<std::int64_t>& stacks_;
  std::int64_t m_;
  const Machine& machine_;
  std::int64_t layers_;
  double sums_;
  bool splits_;                   // what parts take in Weights is told apart
  std::vector<double> messages_;  // from each stage to the next
};

}  // namespace

double least_seconds(const ModelUse& use, const PipelineShape& shape,
                     const std::vector<std::int64_t>& stacks, std::int64_t micro_batches,
                     const Machine& machine, double sums) {
  return Least(use, shape, stacks, micro_batches, machine, sums).seconds();
}

PipelineShape shape_of(const std::string& schedule, std::int64_t stages, std::int64_t chunks,
                       std::int64_t micro_batches) {
  PipelineShape out{stages, chunks};
  const std::int64_t some = std::min(micro_batches, 3 * stages + micro_batches % stages);
  const Pipeline of(
      make_schedule(schedule, {static_cast<int>(stages), static_cast<int>(chunks), some}));
  out.last = of.stage_of(of.chunks() - 1);
  out.splits = of.schedule().splits;
  for (const Actions& actions : of.schedule().stages) {
    const auto ended = std::ranges::find_if(actions, [&](const Action& action) {
      return action.region == of.schedule().last() && action.microbatch + 1 == some;
    });
    std::map<std::pair<RegionKind, int>, std::int64_t> left;
    for (auto action = ended; action != actions.end(); ++action)
      ++left[{action->region, action->chunk}];
    for (const auto& [key, count] : left) {
      std::int64_t& most = out.tail[static_cast<std::size_t>(key.first) -
                                    static_cast<std::size_t>(RegionKind::Forward)];
      most = std::max(most, count);
    }
  }
  if (out.splits) out.tail[1] = out.tail[2] = std::max(out.tail[1], out.tail[2]);
  return out;
}

ModelUse least_of(const ModelUse& a, const ModelUse& b) {
  ModelUse out = a;
  for (std::size_t i = 0; i < StageUse::kPeak; ++i) {
    double more = 0;
    for (std::size_t s = 0; s < out.layer.size(); ++s) more += a.layer[s][i] - b.layer[s][i];
    if (more <= 0) continue;
    out.base[i] = b.base[i];
    out.before[i] = b.before[i];
    out.after[i] = b.after[i];
    for (std::size_t s = 0; s < out.layer.size(); ++s) out.layer[s][i] = b.layer[s][i];
    for (std::size_t s = 0; s < out.between.size(); ++s) out.between[s][i] = b.between[s][i];
  }
  out.message_bytes = std::min(a.message_bytes, b.message_bytes);
  return out;
}

}  // namespace tessera
