/// Bounds of the search against what is below them: walks the tree of small models.

#include "tessera/planner/bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "planner/small_run.h"
#include "tessera/base/text.h"
#include "tessera/device/device.h"

namespace tessera {
namespace {

struct BoundsCase {
  const char* name;
  SmallRun small;
  std::int64_t devices;
  bool overlap;
  int every;  // so many splits are left out between two
};

/// On the machine that a run has where nobody names one.
const BoundsCase kBoundsCases[] = {
    {"as many stages as layers", {8, 2, 256, 64, 500, 8}, 8, true, 8},
    {"nothing goes on beside kernels", {6, 2, 128, 32, 500, 8}, 4, false, 3},
    {"kernels hardly take longer than they take to start", {4, 2, 32, 16, 500, 64}, 4, true, 7},
    {"experts", {4, 2, 64, 32, 500, 8, "", false, 4}, 4, true, 3},
    {"fewer experts than devices", {4, 2, 256, 32, 500, 16, "", false, 2}, 16, true, 23},
    {"as many devices as samples", {6, 4, 128, 32, 500, 16}, 16, true, 19},
};

RunConfig run_in(const BoundsCase& c) {
  RunConfig out = small_run(c.small);
  out.parallel.machine.device.overlap = c.overlap;
  return out;
}

class Walk {
 public:
  explicit Walk(const BoundsCase& c)
      : case_(c),
        base_(run_in(c)),
        device_(make_described_device()),
        space_(base_, c.devices, false),
        models_(base_, base_.parallel.machine,
                [this](const RunConfig&) -> Device& { return *device_; }),
        bounds_(base_, base_.parallel.machine, space_, models_),
        composer_({c.small.layers}, base_.parallel.machine) {}

  void run() {
    int number = 0;
    for (const PlanChoice& frame : space_.frames()) {
      for (const PlanChoice& split : space_.splits(frame)) {
        if (number++ % case_.every != 0) continue;
        const double of_sizes = bounds_.of_sizes(frame), of_split = bounds_.of_split(split);
        for (const PlanChoice& scheduled : space_.schedules(split)) {
          if (!scheduled.order.empty() && number % 2 == 0) continue;
          const double any_zero = bounds_.of_any_zero(scheduled);
          for (const PlanChoice& start : space_.starts(scheduled))
            below(start, {of_sizes, of_split, any_zero, bounds_.of_like(start),
                          bounds_.of_like_played(start, composer_), bounds_.of_level(start),
                          bounds_.of_choice(start, composer_)});
        }
      }
    }
    EXPECT_GT(compared_, 200) << case_.name;
  }

 private:
  /// With what takes less memory too, and as much of it as a cap wants.
  void below(const PlanChoice& start, const std::vector<double>& bounds) {
    std::vector<PlanChoice> choices = {start};
    for (const PlanChoice& next : space_.leaner(start))
      if (start.zero == 0 && start.order.empty()) choices.push_back(next);
    for (const PlanChoice& choice : choices) {
      PlanChoice less = choice;
      less.recompute = space_.less(choice.recompute);
      const std::int64_t m = space_.micro_batches(choice);
      const ModelUse *a = models_.of(less, m), *b = models_.of(choice, m);
      if (a == nullptr || b == nullptr) continue;
      const Composition free = composer_.compose(choice, {a, b}, m, {});
      if (free.layout.empty()) continue;
      compare(choice, free.seconds, bounds);
      StageCaps caps;
      caps.all = 0.9 * free.peak_bytes();
      const Composition capped = composer_.compose(choice, {a, b}, m, caps);
      if (capped.fits) compare(choice, capped.seconds, bounds);
    }
  }

  void compare(const PlanChoice& choice, double seconds, const std::vector<double>& bounds) {
    const char* const names[] = {"sizes",        "split", "any zero", "like",
                                 "like, played", "level", "choice"};
    ++compared_;
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      // PlannerLimits::slack; where bounds take two data parallel ranks for more, sums of gradients
      // may go on elsewhere in a step, which in a model as small as these is much of it.
      const double near = choice.data > 2 ? 1.15 : 1.004;
      if (bounds[i] <= seconds * near || told_.contains(names[i])) continue;
      told_.insert(names[i]);
      ADD_FAILURE() << case_.name << ": the bound of " << names[i] << " is " << bounds[i]
                    << " s, and " << to_text(choice) << " takes " << seconds << " s";
    }
  }

  const BoundsCase& case_;
  RunConfig base_;
  std::unique_ptr<Device> device_;
  Space space_;
  ShortModels models_;
  Bounds bounds_;
  Composer composer_;
  std::set<std::string> told_;
  std::int64_t compared_ = 0;
};

TEST(Bounds, AreNotAboveWhatIsBelowThem) {
  for (const BoundsCase& c : kBoundsCases) Walk(c).run();
}

}  // namespace
}  // namespace tessera
