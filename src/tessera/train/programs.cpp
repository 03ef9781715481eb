#include "tessera/train/programs.h"

#include <chrono>
#include <filesystem>

#include "tessera/base/size.h"
#include "tessera/data/file.h"
#include "tessera/ir/print.h"
#include "tessera/passes/partition.h"
#include "tessera/train/metrics.h"
#include "tessera/train/output_folder.h"
#include "tessera/train/save_shares.h"
#include "tessera/train/step.h"

namespace tessera {

namespace {

std::vector<ProgramSource> sources_of(const RunConfig& c, const WantedPrograms& wanted) {
  std::vector<ProgramSource> out;
  ParallelConfig parallel = c.parallel;
  const Strategy whole = strategy_of(parallel, BatchSplit::Whole), cut = strategy_of(parallel);
  if (wanted.train) {
    parallel.micro_batches = c.micro_batches();
    Graph step = train_step(c.model, c.optimizer, c.global_batch_size, c.model.context);
    if (wanted.gradients) step = with_gradients(step);
    out.push_back({kInitProgram, initialise(step), whole});
    out.push_back({kTrainProgram, std::move(step), strategy_of(parallel)});
  }
  if (wanted.evaluate) {
    // A micro-batch at a time, so that validation takes no more memory than training.
    out.push_back(
        {kEvaluateProgram, evaluate_step(c.model, evaluation_batch(c), c.model.context), cut});
  }
  if (wanted.sample) out.push_back({kSampleProgram, sample_step(c.model, c.model.context), whole});
  return out;
}

/// "FOLDER/train.3.partition.forward.txt": in the order in which they came about.
void dump(const std::string& folder, const std::string& program, int number,
          const std::string& pass, const std::vector<PassGraph>& graphs) {
  for (const auto& [region, graph] : graphs) {
    const std::string name =
        text(program, ".", number, ".", pass, region.empty() ? "" : ".", region);
    write_atomically(in_folder(folder, name + ".txt"), to_text(*graph));
  }
}

}  // namespace

std::int64_t evaluation_batch(const RunConfig& config) {
  return config.micro_batch_size * config.parallel.data();
}

WantedPrograms wanted_programs(const RunConfig& config) {
  return {.train = true,
          .evaluate = (config.held_out > 0 || !config.valid_data.empty()) &&
                      (config.eval_every > 0 || config.eval_at_end),
          .sample = config.sample_every > 0};
}

Compiled compile_programs(const RunConfig& config, const WantedPrograms& wanted, Device& device,
                          int rank) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  Compiled out;
  out.resident_before = resident_bytes();
  CompileOptions options;
  options.seed = static_cast<std::uint64_t>(config.seed);
  options.rank = rank;
  int number = 0;
  options.observe = [&](const std::string& program, const std::string& pass,
                        const std::vector<PassGraph>& graphs, double seconds) {
    number = out.passes.empty() || out.passes.back().program != program ? 1 : number + 1;
    out.passes.push_back({program, pass, seconds});
    if (wanted.placed && program == kTrainProgram && pass == "propagate")
      out.placed = *graphs[0].graph;
    if (!config.dump_dir.empty()) dump(config.dump_dir, program, number, pass, graphs);
  };
  if (!config.dump_dir.empty()) {
    std::error_code failure;
    std::filesystem::create_directories(config.dump_dir, failure);
    if (failure)
      fail(Fault::Resource, "cannot make the folder '", config.dump_dir, "': ", failure.message(),
           "; give a --dump-dir that you may write to");
  }
  out.plan = compile(sources_of(config, wanted), device, options);
  out.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  out.resident_after = resident_bytes();
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

bool saves_from_a_copy(const RunConfig& config) {
  return config.background_save && config.save_every > 0 && config.save_every < config.steps;
}

std::int64_t save_copy_bytes(const RunConfig& config, const Plan& plan) {
  return saves_from_a_copy(config) ? most_bytes_of_a_share(plan) : 0;
}

}  // namespace tessera
