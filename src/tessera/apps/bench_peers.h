#pragma once
/// Other programs among the contestants of `tessera bench`.

#include <atomic>
#include <string>
#include <vector>

#include "tessera/apps/measured_turn.h"
#include "tessera/bench/peer.h"

namespace tessera {

/// Peers of one run, all from its weights, on its batches and with its learning rates.
class Peers {
 public:
  /// Makes what they read in `folder`, and holds the losses of some steps in f32, without dropout and
  /// of one sample where the run has a micro-batch, against ours. Where they differ, or a part of it
  /// fails, problems() say so, and those peers are none. `python`: with PyTorch or JAX. `run`: complete, but its vocabulary may be open.
  Peers(const std::string& python, const RunConfig& run, const TurnLength& length,
        const std::string& folder, const std::atomic<bool>& stop);

  /// Of each maker whose program is not measured, why.
  const std::vector<std::string>& problems() const { return problems_; }
  const std::vector<PeerRun>& runs() const { return runs_; }
  /// A turn, with one learning rate a step.
  TurnBody body(const PeerRun& peer, const std::vector<double>& rates) const;
  /// Where the program of a turn of body() writes what it says besides.
  std::string said() const;

 private:
  /// Writes weights, and the batches of both runs. Returns a problem; empty: there is none.
  std::string make_data(const RunConfig& run, const TurnLength& length, const RunConfig& exact,
                        const TurnLength& compared, const std::atomic<bool>& stop);
  /// Leaves out the peers whose losses are not those of a turn of ours.
  void compare(const Turn& ours, const TurnLength& length, const std::atomic<bool>& stop);
  TurnBody body(const PeerRun& peer, const std::vector<double>& rates,
                const std::string& folder) const;
  std::string exact_folder() const { return folder_ + "/exact"; }

  const std::string python_, folder_;
  std::string weights_;
  std::vector<std::string> problems_;
  std::vector<PeerRun> runs_;
};

}  // namespace tessera
