#include "tessera/train/programs.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>

#include "tessera/base/size.h"
#include "tessera/config/output_folder.h"
#include "tessera/files/file.h"
#include "tessera/ir/print.h"
#include "tessera/passes/partition.h"
#include "tessera/train/adapter_base.h"
#include "tessera/train/metrics.h"
#include "tessera/train/rank_shares.h"
#include "tessera/train/step.h"

namespace tessera {

namespace {

/// As the run computes it.
Graph computed(const RunSetup& setup, const WantedPrograms& wanted, Graph graph) {
  if (!setup.precision) return graph;
  return compute_in(graph, wanted.rounded ? *setup.precision : Precision{DType::F32, DType::F32},
                    is_frozen(setup.config.optimizer));
}

std::vector<ProgramSource> sources_of(const RunSetup& setup, const WantedPrograms& wanted) {
  const RunConfig& c = setup.config;
  const LeftOut base = wanted.loads ? base_of_adapters(c) : LeftOut();
  std::vector<ProgramSource> out;
  if (wanted.train) {
    for (const TrainProgram& program : setup.trains) {
      Graph step = train_step(program.task, c.optimizer, c.global_batch_size);
      const bool first = program.bucket_length == 0;
      if (wanted.gradients && first) step = with_gradients(step);
      step = computed(setup, wanted, std::move(step));
      if (first) out.push_back({kInitProgram, initialise(step, base), setup.whole});
      out.push_back({program.name, std::move(step), setup.step});
    }
  }
  if (wanted.evaluate) {
    Graph step = evaluate_step(setup.task(), setup.evaluation_batch());
    out.push_back({kEvaluateProgram, computed(setup, wanted, std::move(step)), setup.cut});
  }
  if (wanted.texts > 0) {
    for (ProgramSource& source : writing_programs(*setup.task().text, wanted.texts, setup.whole)) {
      source.graph = computed(setup, wanted, std::move(source.graph));
      out.push_back(std::move(source));
    }
  }
  if (wanted.call != nullptr) {
    Graph call = computed(setup, wanted, *wanted.call);
    if (!wanted.train) out.push_back({kInitProgram, initialise(call), setup.whole});
    out.push_back({kCallProgram, std::move(call), setup.cut});
  }
  if (setup.precision) {
    std::vector<const Graph*> programs;
    for (const ProgramSource& source : out) programs.push_back(&source.graph);
    Graph copies = copy_step(programs);
    out.push_back({kCopyProgram, std::move(copies), setup.whole});
  }
  return out;
}

/// "FOLDER/train.3.partition.forward.txt": in the order in which they came about. Of one of several
/// stages: "FOLDER/train.3.partition.stage1.forward2.txt".
void dump(const std::string& folder, const std::string& program, int number,
          const std::string& pass, const std::vector<PassGraph>& graphs) {
  for (const auto& [region, graph, stage] : graphs) {
    const std::string name =
        text(program, ".", number, ".", pass, stage < 0 ? "" : text(".stage", stage),
             region.empty() ? "" : ".", region);
    write_atomically(in_folder(folder, name + ".txt"), to_text(*graph));
  }
}

/// What passes leave: their times, and graphs that are wanted.
class Observer {
 public:
  Observer(const RunConfig& config, const WantedPrograms& wanted, int rank, Compiled& out)
      : folder_(dumps(config, rank) && !config.dump_dir.empty() ? absolute_path(config.dump_dir)
                                                                : ""),
        wanted_(wanted),
        rank_(rank),
        out_(out) {
    if (folder_.empty()) return;
    std::error_code failure;
    std::filesystem::create_directories(folder_, failure);
    if (failure)
      fail(Fault::Resource, "cannot make the folder '", folder_, "': ", failure.message(),
           "; give a writable --dump-dir");
  }

  void operator()(const std::string& program, const std::string& pass,
                  const std::vector<PassGraph>& graphs, double seconds) {
    const int number = note(program, pass, seconds);
    if (wanted_.placed && program == kTrainProgram && pass == "propagate")
      out_.placed = *graphs[0].graph;
    const bool mine = !graphs.empty() && (graphs[0].stage >= 0 || rank_ == 0);
    if (mine && !folder_.empty()) dump(folder_, program, number, pass, graphs);
  }

 private:
  /// Ranks of a stage have equal graphs.
  static bool dumps(const RunConfig& config, int rank) {
    return rank % config.parallel.ranks_per_stage() == 0;
  }

  /// The number of the pass in its program.
  int note(const std::string& program, const std::string& pass, double seconds) {
    int number = 1;
    for (PassTime& known : out_.passes) {
      if (known.program != program) continue;
      if (known.pass == pass) {
        known.seconds += seconds;
        return number;
      }
      ++number;
    }
    out_.passes.push_back({program, pass, seconds});
    return number;
  }

  std::string folder_;  // empty: nothing is dumped
  const WantedPrograms& wanted_;
  int rank_;
  Compiled& out_;
};

}  // namespace

std::vector<ProgramSource> writing_programs(const TextWriting& writing, std::int64_t texts,
                                            const Strategy& strategy) {
  std::vector<ProgramSource> out;
  std::vector<Graph> with_caches;
  if (writing.source > 0) with_caches.push_back(read_step(writing, texts));
  with_caches.push_back(write_step(writing, texts, 1));
  out.push_back({kBeginProgram, begin_step(with_caches), strategy});
  if (writing.source > 0)
    out.push_back({kReadSourceProgram, std::move(with_caches.front()), strategy});
  if (texts > 1) out.push_back({kReorderProgram, reorder_step(with_caches.back()), strategy});
  out.push_back({kPrefillProgram, write_step(writing, texts, prefill_length(writing)), strategy});
  out.push_back({kDecodeProgram, std::move(with_caches.back()), strategy});
  return out;
}

double share_of_full_step(const Plan& plan, std::string_view program) {
  if (program == kTrainProgram) return 1;
  const ProgramPlan &part = plan.program(program), &full = plan.program(kTrainProgram);
  return (part.flops - part.recomputed_flops) / (full.flops - full.recomputed_flops);
}

WantedPrograms wanted_programs(const RunSetup& setup) {
  const RunConfig& config = setup.config;
  return {.train = true,
          .evaluate = validates(config, setup.task()) || !config.test_data.empty(),
          .texts = config.eval_texts > 0     ? std::min(config.eval_texts, kScoredAtATime)
                   : config.sample_every > 0 ? 1
                                             : 0,
          .loads = true};
}

Compiled compile_programs(const RunSetup& setup, const WantedPrograms& wanted, Device& device,
                          int rank) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  Compiled out;
  out.resident_before = resident_bytes();
  CompileOptions options = setup.compile;
  options.rank = rank;
  options.keeps_local = wanted.local;
  if (wanted.loads && !wanted.local) options.base = base_of_adapters(setup.config);
  Observer observer(setup.config, wanted, rank, out);
  options.observe = std::ref(observer);
  // Of one stage alone, nothing could be compared.
  check(wanted.check == nullptr || wanted.stages, "a check of passes needs all stages");
  options.check = wanted.check;
  std::unique_ptr<Device> described;
  if (options.machine.kernels == KernelSource::Described) described = make_described_device();
  Device& of_kernels = described ? *described : device;
  if (wanted.stages) {
    out.others = compile_stages(sources_of(setup, wanted), of_kernels, options);
    out.plan = std::move(out.others.front());
    out.others.erase(out.others.begin());
  } else {
    out.plan = compile(sources_of(setup, wanted), of_kernels, options);
  }
  out.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  out.resident_after = resident_bytes();
  return out;
}

Compiled compile_programs(const RunSetup& setup, WantedPrograms wanted, const Backend& backend,
                          int rank) {
  wanted.local = backend.reads_programs();
  return compile_programs(setup, wanted, backend.device(), rank);
}

std::vector<const Plan*> plans_of(const Compiled& compiled) {
  std::vector<const Plan*> out = {&compiled.plan};
  for (const Plan& plan : compiled.others) out.push_back(&plan);
  return out;
}

std::int64_t count_parameters(const Plan& plan) {
  std::int64_t out = 0;
  for (const StatePlan& state : plan.states) {
    if (state.state.role == Role::Parameter)
      out = size_sum(out, state.logical.numel(), "parameters");
  }
  return out;
}

std::int64_t count_active_parameters(const Plan& plan, const ExpertsConfig& experts) {
  std::int64_t out = count_parameters(plan);
  for (const StatePlan& state : plan.states) {
    if (state.state.role != Role::Parameter || !matches(kExpertPaths, state.state.path)) continue;
    out -= state.logical.numel() / experts.experts * (experts.experts - experts.chosen);
  }
  return out;
}

bool saves_from_a_copy(const RunConfig& config) {
  return config.background_save && config.save_every > 0 && config.save_every < config.steps;
}

std::int64_t save_copy_bytes(const RunConfig& config, const Plan& plan) {
  return saves_from_a_copy(config) ? most_bytes_of_a_share(plan, left_out_of_saves(config)) : 0;
}

}  // namespace tessera
