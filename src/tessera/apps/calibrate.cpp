#include "tessera/apps/calibrate.h"

#include <array>
#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <functional>

#include "tessera/apps/instruction_set.h"
#include "tessera/apps/result_file.h"
#include "tessera/base/cores.h"
#include "tessera/base/format.h"
#include "tessera/base/median.h"
#include "tessera/base/proc.h"
#include "tessera/base/text.h"
#include "tessera/bench/timed_steps.h"
#include "tessera/files/file.h"
#include "tessera/machines/machine_file.h"
#include "tessera/plan/predict.h"
#include "tessera/runtime/fit_machine.h"
#include "tessera/train/programs.h"

namespace tessera {

namespace {

constexpr std::int64_t kTimedSteps = 7, kHeads = 8;

std::string now_text() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 32> out{};
  std::strftime(out.data(), out.size(), "%Y-%m-%d %H:%M UTC", &utc);
  return out.data();
}

/// A device and its links, from times.
Machine measured_machine(Device& device, Communicator* world) {
  Machine out;
  const std::vector<KernelSample> streams = time_streams(device, world),
                                  arithmetic = time_arithmetic(device, world, DType::F32),
                                  arithmetic_of_bf16 = time_arithmetic(device, world, DType::BF16),
                                  of_f32 = time_products(device, world, DType::F32),
                                  of_bf16 = time_products(device, world, DType::BF16),
                                  attention_of_f32 = time_attention(device, world, DType::F32),
                                  attention_of_bf16 = time_attention(device, world, DType::BF16);
  const std::vector<MoveSample> moves = time_moves(device, world),
                                copies = time_copies(device, world);
  fit_streams(streams, arithmetic, out.device);
  out.device.f32 = fit_products(of_f32, out.device);
  out.device.bf16 = fit_products(of_bf16, out.device);
  out.device.bf16.others = fit_others(arithmetic_of_bf16, out.device);
  out.device.f32.attention = fit_attention(attention_of_f32, out.device);
  out.device.bf16.attention = fit_attention(attention_of_bf16, out.device);
  out.device.f16 = out.device.bf16;
  out.device.overlap = false;  // ranks move bytes with the cores that compute
  const LinkSpeed link = fit_link(moves, out.core);
  for (const MachineLevel& level : machine_levels()) {
    out.*level.link = link;
    (out.*level.link).units = 1;
  }
  out.core.units = world == nullptr ? 1 : world->size();
  const LinkSpeed copy = fit_link(copies, {});
  out.memory.gigabytes_per_s = copy.gigabytes_per_s;
  out.memory.microseconds = copy.microseconds;
  if (world != nullptr && world->cores_per_rank() == 0)
    out.device.sharing = (world->size() + num_usable_cores() - 1) / num_usable_cores();
  out.device.memory_bytes = proc_bytes("/proc/meminfo", "MemTotal:") / out.core.units;
  return out;
}

/// To three digits, which is more than is known.
void round_numbers(Machine& m) {
  std::vector<double*> numbers = {&m.device.memory_gigabytes_per_s,
                                  &m.device.start_microseconds,
                                  &m.device.other_gigaflops_per_s,
                                  &m.memory.gigabytes_per_s,
                                  &m.memory.microseconds,
                                  &m.weights.alpha,
                                  &m.weights.beta1,
                                  &m.weights.beta2,
                                  &m.weights.gamma};
  for (const MachineLevel& level : machine_levels()) {
    numbers.push_back(&(m.*level.link).gigabytes_per_s);
    numbers.push_back(&(m.*level.link).microseconds);
  }
  for (FloatSpeed* product : {&m.device.f32, &m.device.bf16, &m.device.f16}) {
    for (double* number : {&product->gigaflops_per_s, &product->half_m, &product->half_n,
                           &product->half_k, &product->attention, &product->others})
      numbers.push_back(number);
  }
  for (double* number : numbers) *number = std::stod(format("%.3g", *number));
}

struct Trial {
  std::string flags;
  std::function<void(RunConfig&)> set;
};

/// Short runs on all ranks that spend their time in unlike ways.
std::vector<Trial> trials(std::int64_t devices) {
  std::vector<Trial> out = {
      {"--width 128 --context 128", [](RunConfig& c) { c.model.width = 128; }},
      {"--width 384 --context 64", [](RunConfig& c) { c.model.width = 384, c.model.context = 64; }},
      {"--bf16", [](RunConfig& c) { c.bf16 = true; }}};
  if (devices == 1) return out;
  out.push_back({"--width 128 --micro-batch-size 1",
                 [](RunConfig& c) { c.model.width = 128, c.micro_batch_size = 1; }});
  out.push_back(
      {"--width 384 --zero-stage 2", [](RunConfig& c) { c.model.width = 384, c.zero_stage = 2; }});
  out.push_back({"--zero-stage 3 --micro-batch-size 1",
                 [](RunConfig& c) { c.zero_stage = 3, c.micro_batch_size = 1; }});
  if (devices % 2 != 0) return out;
  out.push_back({"--tensor-model-parallel-size 2", [](RunConfig& c) { c.parallel.tensor = 2; }});
  out.push_back(
      {"--tensor-model-parallel-size 2 --sequence-parallel --zero-stage 2",
       [](RunConfig& c) { c.parallel.tensor = 2, c.parallel.sequence = true, c.zero_stage = 2; }});
  out.push_back({"--pipeline-model-parallel-size 2 --micro-batch-size 1",
                 [](RunConfig& c) { c.parallel.pipeline = 2, c.micro_batch_size = 1; }});
  return out;
}

RunConfig trial_config(const RunConfig& config, const Trial& trial, const Machine& machine) {
  RunConfig out = config;
  out.machine.clear();
  out.model = {.layers = 4, .heads = kHeads, .width = 256, .context = 128, .vocabulary = 512};
  out.global_batch_size = 4 * config.parallel.devices;
  trial.set(out);
  complete(out);
  out.parallel.machine = machine;
  out.parallel.machine.core.units = 0;
  return out;
}

/// What is predicted of a trial.
Prediction predicted(const RunConfig& config, Device& device, const Machine& machine) {
  const WantedPrograms wanted{.evaluate = false, .texts = 0, .stages = true};
  const Compiled compiled = compile_programs(RunSetup(config), wanted, device);
  const std::vector<const Plan*> plans = plans_of(compiled);
  return predict(plans, kTrainProgram, pipeline_of(plans, kTrainProgram), machine);
}

/// Of the runs to which the weights were fitted: of others it may be more.
std::string known_error_of(const std::vector<CalibrationRun>& runs) {
  double sum = 0, most = 0;
  for (const CalibrationRun& run : runs) {
    const double error = std::abs(run.predicted / run.measured - 1);
    sum += error, most = std::max(most, error);
  }
  return text(format("%.1f %% on average, %.1f %% at most, of the ",
                     100 * sum / static_cast<double>(runs.size()), 100 * most),
              runs.size(), " short runs used to fit its weights");
}

std::string comment_of(const RunConfig& config, bool launched) {
  const std::int64_t devices = config.parallel.devices;
  return text("# Measured by `tessera doctor --calibrate` on ", now_text(), ": ", processor_name(),
              ",\n# ", devices, devices == 1 ? " rank" : " ranks, all at once", ", as ",
              launched ? "processes" : "threads", ", with ", config.threads,
              config.threads == 1 ? " thread each" : " threads each",
              ". Rates are per rank.\n# All links are taken to be equal: core is the rate measured "
              "between all ranks.\n");
}

}  // namespace

Calibration calibrate(const RunConfig& config, Communicator* launched, Console& console) {
  Calibration out;
  on_ranks(config, launched, console, [&](Communicator* world, const Backend& backend) {
    Machine machine = measured_machine(backend.device(), world);
    if (world == nullptr || world->rank() == 0) out.machine = machine;
  });
  RunConfig shared = config;
  share_cores(shared, launched);
  out.comment = comment_of(shared, launched != nullptr);
  std::vector<StepSample> samples;
  for (const Trial& trial : trials(config.parallel.devices)) {
    // Ranks may have fitted other constants: plans are made without any, so that all make the same.
    const RunConfig run = trial_config(config, trial, {});
    std::vector<double> times;
    on_ranks(run, launched, console, [&](Communicator* world, const Backend& backend) {
      std::vector<double> mine = time_steps(run, kTimedSteps, backend, world);
      if (!mine.empty()) times = std::move(mine);
    });
    if (times.empty()) continue;  // of another rank
    const std::unique_ptr<Device> device = make_cpu_device(cpu_options(shared));
    const Prediction prediction = predicted(run, *device, out.machine);
    samples.push_back({prediction.exposed, prediction.bubble, median(times)});
    out.runs.push_back({trial.flags, samples.back().seconds, 0});
  }
  out.machine.weights = fit_weights(samples);
  round_numbers(out.machine);
  if (launched != nullptr && launched->rank() > 0) return out;
  const std::unique_ptr<Device> device = make_cpu_device(cpu_options(shared));
  const std::vector<Trial> all = trials(config.parallel.devices);
  for (std::size_t i = 0; i < out.runs.size(); ++i)
    out.runs[i].predicted =
        predicted(trial_config(config, all[i], {}), *device, out.machine).seconds;
  out.machine.known_error = known_error_of(out.runs);
  return out;
}

std::string to_text(const Calibration& calibration) {
  std::string out = calibration.comment + "# Steps of short runs, in ms:\n";
  for (const CalibrationRun& run : calibration.runs)
    out += text("#   measured ", format("%8.2f", run.measured * 1e3), ", with the weights below ",
                format("%8.2f", run.predicted * 1e3), "  ", run.flags, "\n");
  return out + machine_file_text(calibration.machine);
}

int calibrate_command(const RanksCommand& command, const std::string& file, Console& console) {
  return on_launched_ranks(command, console, [&](Communicator* launched, Console& mine) {
    RunConfig config = command.config;
    Problems problems = command.problems;
    take_launched_devices(config, command.devices_given, launched, problems);
    agree_on_choices(config, launched, problems);
    const bool writes = launched == nullptr || launched->rank() == 0;
    if (writes) check_result_file("calibrate", file, OwnFile::Machine, problems);
    problems.raise();
    if (launched == nullptr && !command.devices_given) config.parallel.devices = num_usable_cores();
    Calibration found = calibrate(config, launched, mine);
    if (!writes) return 0;
    found.machine.name = machine_name_text(std::filesystem::path(file).stem().string());
    write_atomically(file, to_text(found));
    mine.out << to_text(found);
    return 0;
  });
}

}  // namespace tessera
