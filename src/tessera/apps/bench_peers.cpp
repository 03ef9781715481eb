#include "tessera/apps/bench_peers.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "tessera/apps/bench_text.h"
#include "tessera/base/cores.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/checkpoint/checkpoint.h"
#include "tessera/config/output_folder.h"
#include "tessera/files/file.h"
#include "tessera/files/safetensors.h"
#include "tessera/launch/ranks.h"
#include "tessera/pjrt/plugin.h"
#include "tessera/train/adapter_base.h"
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
  out.split = run.split, out.eod_token = run.eod_token;
  out.global_batch_size = run.global_batch_size;
  out.steps = 0, out.eval_at_end = false;
  return out;
}

/// `run` in f32 and without dropout, for so many steps, with one sample in place of each micro-batch:
/// it fits where the run does.
RunConfig exact_of(const RunConfig& run, const TurnLength& compared) {
  RunConfig sized = run;
  if (sized.model.vocabulary == 0) sized.model.vocabulary = kBenchCharacters;  // the data will tell
  complete(sized);
  RunConfig out = run;
  out.model.dropout = 0;
  out.bf16 = out.fp16 = out.mixed_precision = false;
  out.micro_batch_size = 1;
  out.global_batch_size = sized.micro_batches() * sized.parallel.data();
  out.exit_interval = compared.steps;
  return out;
}

/// Writes the parameters of a run's checkpoint, each of them whole, into one file.
void write_weights(const std::string& run, const std::string& file) {
  const Checkpoint checkpoint = open_with_base(run);
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
  const TurnLength compared{.warmup = 0, .steps = std::min(kCompared, run.steps)};
  RunConfig exact = exact_of(run, compared);
  if (problem.empty()) problem = make_data(run, length, exact, compared, stop);
  Turn ours;
  if (problem.empty()) {
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

std::string Peers::make_data(const RunConfig& run, const TurnLength& length, const RunConfig& exact,
                             const TurnLength& compared, const std::atomic<bool>& stop) {
  RunConfig start = start_of(run);
  start.output = folder_ + "/start";
  const TurnLength none{.warmup = 0, .steps = 0};
  const Turn saved = measured_turn(training(start, RunKind::Saved), none, kNoStep, stop);
  if (!saved.failure.empty()) return saved.failure;
  weights_ = folder_ + "/weights.safetensors";
  fs::create_directory(exact_folder());
  const auto write_data = [&](RunConfig of, const TurnLength& steps, const std::string& folder) {
    of.output = folder + "/data";
    Problems problems;
    const auto prepared = prepare_run(of, problems);
    problems.raise();
    write_peer_data(*prepared, plugin_file(of), steps.all(), folder);
  };
  const auto write = [&] {
    write_weights(start.output, weights_);
    fs::remove_all(start.output);
    write_data(run, length, folder_);
    write_data(exact, compared, exact_folder());
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
      const Turn theirs =
          measured_turn(body(plain, ours.rates, exact_folder()), length, kNoStep, stop);
      problem = theirs.failure.empty() ? difference_of_losses(ours.losses, theirs.losses)
                                       : failure_text(theirs.failure, said());
      if (!problem.empty()) problems_.push_back(text(run.maker, ": ", problem));
    }
    if (problem.empty()) same.push_back(run);
  }
  runs_ = std::move(same);
}

TurnBody Peers::body(const PeerRun& peer, const std::vector<double>& rates) const {
  return body(peer, rates, folder_);
}

TurnBody Peers::body(const PeerRun& peer, const std::vector<double>& rates,
                     const std::string& folder) const {
  return program({python_, path_of(peer.program), write_peer_task(peer, rates, weights_, folder)},
                 said(), kKeepMemory);
}

std::string Peers::said() const { return folder_ + "/peer-said.txt"; }

}  // namespace tessera
