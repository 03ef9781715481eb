#pragma once
/// A drawing of losses against steps, of one run or of several beside each other.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tessera {

/// (step, loss), in the order of steps.
using LossPoints = std::vector<std::pair<std::int64_t, double>>;

/// The losses of a run. Those that are not finite, or beyond 1e100, are left out, and so are those
/// of steps that were skipped.
struct LossCurve {
  std::string name;
  LossPoints train, valid;
};

/// As drawings and tables show it.
std::string loss_text(double loss);

/// Reads metrics.jsonl of a run's folder; the name is that of the folder as it is given.
/// Errors: Fault::Usage: no such folder, no metrics in it, or not one such loss.
LossCurve read_losses(const std::string& run);

/// What the line and the dots of a run are called below a drawing.
struct CurveWords {
  std::string line = "training ", dots = "validation (dots) ";
};

/// An SVG picture: of every run a line of training losses, and a line with dots of validation
/// losses; below it the last number of each. Of a run with more steps than can be told apart, the
/// mean of neighbours is drawn. One of `curves` has a loss; of the others the picture says that
/// they have none.
std::string loss_chart(const std::vector<LossCurve>& curves,
                       const std::string& title = "Loss against steps",
                       const CurveWords& words = {});

}  // namespace tessera
