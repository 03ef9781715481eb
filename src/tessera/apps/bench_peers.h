#pragma once
/// Another maker's program among the contestants of `tessera bench`.

#include <atomic>
#include <string>
#include <vector>

#include "tessera/apps/measured_turn.h"
#include "tessera/bench/peer.h"

namespace tessera {

/// The program that the sources bring, or the installed one, beside this command. Errors:
/// Fault::Usage: there is none.
std::string peer_program();

/// Peers of one run, all from its weights, on its batches and with its learning rates.
class Peers {
 public:
  /// Makes what they read in `folder`, and holds the losses of some steps in f32, without dropout,
  /// against ours. Where they differ, or a part of it fails, problem() says so and there are none.
  /// `python`: with PyTorch. `run`: complete, but its vocabulary may be open.
  Peers(const std::string& python, const RunConfig& run, const TurnLength& length,
        const std::string& folder, const std::atomic<bool>& stop);

  const std::string& problem() const { return problem_; }
  const std::vector<PeerRun>& runs() const { return runs_; }
  /// A turn, with one learning rate a step.
  TurnBody body(const PeerRun& peer, const std::vector<double>& rates) const;
  /// The failure of a turn of body(), with what the program said itself.
  std::string failure_text(const std::string& failure) const;

 private:
  void compare(const RunConfig& run, const std::atomic<bool>& stop);
  TurnBody body(const PeerRun& peer, const std::vector<double>& rates, bool exact) const;

  const std::string python_, program_, folder_;
  std::string weights_, problem_;
  std::vector<PeerRun> runs_;
};

}  // namespace tessera
