#pragma once
/// A peer: the same model in another maker's library, a program that trains it from the same
/// weights, on the same batches and with the same learning rates as Tessera does, and tells its
/// steps as turns do (bench/turn.h). Peers are the programs in bench/peers.

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/train/prepare.h"

namespace tessera {

/// One way to run one.
struct PeerRun {
  std::string maker;                        // of the library: "PyTorch"
  std::string program;                      // "torch_turn.py"
  std::string name;                         // "PyTorch bf16"
  std::string dtype = "f32";                // or "bf16"
  std::string mode = "eager";               // "ddp", "fsdp2", "tp"; on a plugin "compile", "dp"
  std::int64_t processes = 1, threads = 1;  // of each process
  std::int64_t devices = 1;                 // of the plugin
};

/// Why a run has no peer that does the same; empty where it has. `config` is complete.
std::string why_no_peer(const RunConfig& config);

/// What peers of a run that has them can be measured beside it: on one device and, where their
/// makers have ways to use several, on as many as the run; in f32, and in bf16 where this processor
/// multiplies it or the run itself is in 16 bits. Of a run on a plugin, JAX on the same file, and
/// PyTorch compiled for the same kind of device, in the floats of the run.
std::vector<PeerRun> peer_runs(const RunConfig& config, std::int64_t threads);

/// Writes what all peers of a run read, into `folder`: the sizes of the model, the batches of so many
/// steps, and the device. `plugin`: the file of the one that the run is on; empty: processors.
void write_peer_data(const PreparedRun& run, const std::string& plugin, std::int64_t steps,
                     const std::string& folder);

/// Writes what a peer is to do, one learning rate a step. Returns the path, which is its argument.
/// `weights`: a file of safetensors.
std::string write_peer_task(const PeerRun& peer, const std::vector<double>& rates,
                            const std::string& weights, const std::string& folder);

/// What is wrong with the losses of a peer beside ours, of the same steps in f32 without dropout;
/// empty where they are the same numbers but for rounding.
std::string difference_of_losses(const std::vector<double>& ours,
                                 const std::vector<double>& theirs);

}  // namespace tessera
