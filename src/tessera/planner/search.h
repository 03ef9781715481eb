#pragma once
/// The search for the best plan: the most promising first.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/plan/predict.h"
#include "tessera/planner/bounds.h"
#include "tessera/planner/compose.h"
#include "tessera/planner/space.h"

namespace tessera {

/// What tells of a choice: short models of few ranks, about; those of the choice itself.
enum class Basis : std::uint8_t { About, Exact };

/// A choice that was put together, with what it comes to.
struct Considered {
  PlanChoice choice;  // with its layout and what it computes again
  Composition composed;
  double free_seconds = 0;  // with memory without end
  std::int64_t micro_batches = 1;
  Basis basis = Basis::About;
};

/// What the whole plan of a choice takes.
struct Verdict {
  Prediction predicted;
  std::vector<std::int64_t> peak_bytes, host_bytes, capped_bytes;  // by stage
  std::int64_t peak() const;
  std::int64_t host() const;  // the most
  std::int64_t capped() const;
  bool fits(const StageCaps& caps) const;
};
/// Compiles a choice whole. None: it does not compile.
using Verify = std::function<std::optional<Verdict>(const PlanChoice& choice)>;

struct Candidate {
  Considered considered;
  Verdict verdict;
  double seconds() const { return verdict.predicted.seconds; }
};

/// Plans whose predicted times differ by less than this share are equally fast: 0.1 %, a tenth of
/// what runs of one plan differ by, and far below the error of any prediction.
inline constexpr double kEquallyFast = 0.001;

struct SearchResult {
  /// Compiled whole, and within the cap: the chosen one first, then by time. Chosen is, of all that
  /// are equally fast as the fastest, the one that takes least memory: of those the faster.
  std::vector<Candidate> fit;
  std::vector<Candidate> refuted;      // compiled whole, and above it
  std::vector<Considered> considered;  // all that were put together, in the order of the search
  std::int64_t whole_plans = 0;        // that were compiled
  bool complete = true;                // nothing else can be better, but for what short models hide

  /// Of the fastest that fits, which need not be the chosen one; never, where nothing fits.
  double least_seconds() const;
};

/// Brings plans into the order of SearchResult::fit, whatever order they are in.
void choose(std::vector<Candidate>& fit);

/// How far a search is.
struct SearchProgress {
  std::int64_t compared = 0, waiting = 0, short_models = 0, whole_plans = 0;
  double bound = 0;                 // no plan that is still to be compared takes less
  const Candidate* best = nullptr;  // the one to be chosen, as far as is known
  std::string beside = {};          // of another question than was asked: "without a memory cap"
};
using OnProgress = std::function<void(const SearchProgress&)>;

/// Limits of the search: it ends early with what it has.
struct PlannerLimits {
  std::int64_t short_models = 5000;
  std::int64_t whole_plans = 8;        // that fit
  std::int64_t failures = 40;          // whole plans that do not fit, or do not compile
  std::int64_t put_together = 20'000;  // from short models
  double slack = 0.004;                // by which what is put together may differ from the whole
};

/// Best first. The bound of a node is what all that is below it takes at least (Bounds): first that
/// of its sizes, then that of its choice by short models, then what the choice comes to with the
/// caps. What is opened does not depend on time, so the same question has the same answer.
class Search {
 public:
  Search(const RunConfig& base, const Machine& machine, const Space& space, ShortModels& models,
         Verify verify, PlannerLimits limits = {}, OnProgress on_progress = {});

  SearchResult run(const StageCaps& caps);

 private:
  enum class Level : std::uint8_t { Sizes, Split, Scheduled, Start, Liked, Levelled, Choice, Leaf };
  struct Node {
    double bound = 0;
    Level level = Level::Sizes;
    PlanChoice choice;
    std::shared_ptr<const Considered> leaf = {};  // of a leaf
    bool exact = false;                           // of its own short model; else about
    int tries = 0;
  };
  struct Run;
  void open(Node node, Run& run);
  void look_beside(Run& run);
  void open_leaf(const Node& node, Run& run);
  void put_together(const Node& node, const StageCaps& caps, Run& run);
  void push_leaner(const Node& node, Run& run);
  RecomputeOptions ways_of(const PlanChoice& choice, bool exact);

  const Space& space_;
  ShortModels& models_;
  Verify verify_;
  PlannerLimits limits_;
  OnProgress on_progress_;
  Bounds bounds_;
  Composer composer_;
};

}  // namespace tessera
