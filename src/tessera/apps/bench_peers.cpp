#include "tessera/apps/bench_peers.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "tessera/apps/ranks.h"
#include "tessera/base/cores.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/file.h"
#include "tessera/train/output_folder.h"
#include "tessera/train/prepare.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kCompared = 3;  // steps whose losses must be the same
constexpr const char* kSaidFile = "/peer-said.txt";

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

/// The one file of tensors under `folder`; empty: there is not one.
std::string tensors_in(const std::string& folder) {
  std::string out;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    if (!out.empty()) return "";
    out = entry.path().string();
  }
  return out;
}

const auto kNoStep = [](std::int64_t) {};

}  // namespace

std::string peer_program() {
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path().parent_path();
  for (const char* place : {"bench/peers/torch_turn.py", "share/tessera/peers/torch_turn.py"}) {
    if (fs::exists(folder / place)) return (folder / place).string();
  }
  fail(Fault::Usage, "peer: there is no bench/peers/torch_turn.py or ",
       "share/tessera/peers/torch_turn.py in ", folder.string(),
       "; run the command of a build or of an installation");
}

Peers::Peers(const std::string& python, const RunConfig& run, const TurnLength& length,
             const std::string& folder, const std::atomic<bool>& stop)
    : python_(python), program_(peer_program()), folder_(folder) {
  RunConfig whole = run;
  share_cores(whole);
  problem_ = why_no_peer(whole);
  if (!problem_.empty()) return;
  runs_ = peer_runs(whole, whole.threads > 0 ? whole.threads : num_usable_cores());
  RunConfig start = start_of(run);
  start.output = folder + "/start";
  const TurnLength none{.warmup = 0, .steps = 0};
  Turn made = measured_turn(training(start, RunKind::Saved), none, kNoStep, stop);
  if (made.failure.empty()) {
    weights_ = tensors_in(start.output);
    RunConfig data = run;
    data.output = folder + "/data";
    made = measured_turn(work([&] {
                           Problems problems;
                           const auto prepared = prepare_run(data, problems);
                           problems.raise();
                           write_peer_data(*prepared, length.all(), folder);
                         }),
                         none, kNoStep, stop);
  }
  problem_ = made.failure;
  if (problem_.empty()) compare(run, stop);
  if (!problem_.empty()) runs_.clear();
}

void Peers::compare(const RunConfig& run, const std::atomic<bool>& stop) {
  const TurnLength length{.warmup = 0, .steps = std::min(kCompared, run.steps)};
  RunConfig ours = run;
  ours.model.dropout = 0;
  ours.bf16 = ours.fp16 = ours.mixed_precision = false;
  ours.exit_interval = length.steps;
  ours.output = folder_ + "/compared";
  const Turn mine = measured_turn(training(ours), length, kNoStep, stop);
  problem_ = mine.failure;
  if (!problem_.empty()) return;
  PeerRun plain = runs_.front();
  plain.dtype = "f32", plain.mode = "eager", plain.processes = 1;
  const Turn theirs = measured_turn(body(plain, mine.rates, true), length, kNoStep, stop);
  problem_ = theirs.failure.empty() ? difference_of_losses(mine.losses, theirs.losses)
                                    : failure_text(theirs.failure);
}

TurnBody Peers::body(const PeerRun& peer, const std::vector<double>& rates) const {
  return body(peer, rates, false);
}

TurnBody Peers::body(const PeerRun& peer, const std::vector<double>& rates, bool exact) const {
  return program({python_, program_, write_peer_task(peer, rates, weights_, exact, folder_)},
                 folder_ + kSaidFile);
}

std::string Peers::failure_text(const std::string& failure) const {
  const std::string said = fs::exists(folder_ + kSaidFile)
                               ? last_words(read_file(folder_ + kSaidFile, Fault::Resource))
                               : "";
  return said.empty() ? failure : text(failure, ": ", said);
}

}  // namespace tessera
