#pragma once
/// A drawing of losses against steps, of one run or of several beside each other.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tessera {

/// (step, loss), in the order of steps.
using LossPoints = std::vector<std::pair<std::int64_t, double>>;

/// The losses of a run. Those that are not finite, or beyond 1e100, are left out.
struct LossCurve {
  std::string name;
  LossPoints train, valid;
};

/// Reads metrics.jsonl of a run's folder; the name is that of the folder as it is given.
/// Errors: Fault::Usage: no such folder, no metrics in it, or not one such loss.
LossCurve read_losses(const std::string& run);

/// An SVG picture: of every run a line of training losses, and a line with dots of held-out losses.
/// Of a run with more steps than can be told apart, the mean of neighbours is drawn. `curves` is
/// not empty, and each has a loss.
std::string loss_chart(const std::vector<LossCurve>& curves,
                       const std::string& title = "Loss against steps");

}  // namespace tessera
