#include "tessera/apps/bench_peers.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "tessera/base/cores.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/checkpoint/checkpoint.h"
#include "tessera/files/file.h"
#include "tessera/files/safetensors.h"
#include "tessera/launch/ranks.h"
#include "tessera/pjrt/plugin.h"
#include "tessera/train/output_folder.h"
#include "tessera/train/prepare.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kCompared = 3;  // steps whose losses must be the same

/// The model, its data and its first weights, and nothing else of a run.
RunConfig start_of(const RunConfig& run) {
  RunConfig out;
  out.families = run.families, out.model = run.model, out.seed = run.seed;
  out.optimizer = run.optimizer;
  out.data = run.data, out.vocabulary = run.vocabulary, out.held_out = run.held_out;
  out.global_batch_size = run.global_batch_size;
  out.steps = 0, out.eval_at_end = false;
  return out;
}

/// Writes the parameters of a run's checkpoint, each of them whole, into one file.
void write_weights(const std::string& run, const std::string& file) {
  const Checkpoint checkpoint = Checkpoint::open(run);
  std::vector<TensorSource> sources;
  std::vector<std::byte>
      held;  // of the tensor at hand: each is asked for from its start to its end
  for (const TensorEntry& entry : checkpoint.tensors()) {
    if (entry.role != Role::Parameter) continue;
    const auto fill = [&](std::int64_t first, std::span<std::byte> out) {
      if (first == 0) {
        held.resize(static_cast<std::size_t>(entry.type.bytes()));
        checkpoint.read(entry.name, held);
      }
      std::memcpy(out.data(), held.data() + first, out.size());
    };
    sources.push_back({entry.name, entry.type, fill});
  }
  write_safetensors(file, std::move(sources), {});
}

const auto kNoStep = [](std::int64_t) {};

/// Of the plugin that a run is on; empty: on processors.
std::string plugin_file(const RunConfig& run) {
  if (plugin_of(run).empty()) return "";
  const std::string file = pjrt::find_plugin(plugin_of(run), plugins_folder());
  return fs::absolute(file).string();
}

/// A program that the sources bring, or the installed one, beside this command.
std::string path_of(const std::string& peer) {
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path().parent_path();
  for (const char* place : {"bench/peers", "share/tessera/peers"}) {
    if (fs::exists(folder / place / peer)) return (folder / place / peer).string();
  }
  fail(Fault::Usage, "peer: there is no bench/peers/", peer, " or share/tessera/peers/", peer,
       " in ", folder.string(), "; run tessera from a build or an installation");
}

/// glibc gives large blocks back to the system when they are freed: each step of a peer would touch
/// new pages. Ours keep their memory, and so do theirs.
const AddedVariables kKeepMemory = {{"MALLOC_MMAP_THRESHOLD_", "4294967296"},
                                    {"MALLOC_TRIM_THRESHOLD_", "8589934592"}};

}  // namespace

Peers::Peers(const std::string& python, const RunConfig& run, const TurnLength& length,
             const std::string& folder, const std::atomic<bool>& stop)
    : python_(python), folder_(folder) {
  RunConfig whole = run;
  share_cores(whole);
  std::string problem = why_no_peer(whole);
  if (problem.empty()) problem = make_data(run, length, stop);
  Turn ours;
  const TurnLength compared{.warmup = 0, .steps = std::min(kCompared, run.steps)};
  if (problem.empty()) {
    RunConfig exact = run;
    exact.model.dropout = 0;
    exact.bf16 = exact.fp16 = exact.mixed_precision = false;
    exact.exit_interval = compared.steps;
    exact.output = folder_ + "/compared";
    ours = measured_turn(training(exact), compared, kNoStep, stop);
    problem = ours.failure;
  }
  if (!problem.empty()) {
    problems_.push_back(problem);
    return;
  }
  runs_ = peer_runs(whole, whole.threads > 0 ? whole.threads : num_usable_cores());
  compare(ours, compared, stop);
}

std::string Peers::make_data(const RunConfig& run, const TurnLength& length,
                             const std::atomic<bool>& stop) {
  RunConfig start = start_of(run);
  start.output = folder_ + "/start";
  const TurnLength none{.warmup = 0, .steps = 0};
  const Turn saved = measured_turn(training(start, RunKind::Saved), none, kNoStep, stop);
  if (!saved.failure.empty()) return saved.failure;
  weights_ = folder_ + "/weights.safetensors";
  RunConfig data = run;
  data.output = folder_ + "/data";
  const auto write = [&] {
    write_weights(start.output, weights_);
    fs::remove_all(start.output);
    Problems problems;
    const auto prepared = prepare_run(data, problems);
    problems.raise();
    write_peer_data(*prepared, plugin_file(run), length.all(), folder_);
  };
  return measured_turn(work(write), none, kNoStep, stop).failure;
}

void Peers::compare(const Turn& ours, const TurnLength& length, const std::atomic<bool>& stop) {
  std::vector<PeerRun> same;
  std::string compared, problem;  // the maker that was last compared, and what came of it
  for (const PeerRun& run : runs_) {
    if (run.maker != compared) {
      compared = run.maker;
      PeerRun plain = run;
      plain.dtype = "f32", plain.mode = "eager", plain.processes = plain.devices = 1;
      const Turn theirs = measured_turn(body(plain, ours.rates, true), length, kNoStep, stop);
      problem = theirs.failure.empty() ? difference_of_losses(ours.losses, theirs.losses)
                                       : failure_text(theirs.failure, said());
      if (!problem.empty()) problems_.push_back(text(run.maker, ": ", problem));
    }
    if (problem.empty()) same.push_back(run);
  }
  runs_ = std::move(same);
}

TurnBody Peers::body(const PeerRun& peer, const std::vector<double>& rates) const {
  return body(peer, rates, false);
}

TurnBody Peers::body(const PeerRun& peer, const std::vector<double>& rates, bool exact) const {
  return program(
      {python_, path_of(peer.program), write_peer_task(peer, rates, weights_, exact, folder_)},
      said(), kKeepMemory);
}

std::string Peers::said() const { return folder_ + "/peer-said.txt"; }

}  // namespace tessera
