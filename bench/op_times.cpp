/// The time of every op of a training step, with the shapes and kernels that the step really has.
///
/// Compiles the train step of a configuration, then walks its calls as the executor does, a clock
/// around each: so every call is timed alone, on numbers that are real and in caches as the step
/// leaves them. (A call repeated on one place would find its operands in cache, and an in-place one
/// would find its own result.) Calls that differ in nothing but their block's number are one row.
///
/// Run:  build/op_times --preset gpt2-small --threads 2 [--steps 3] [--rows 30] [--json FILE]
///       Other flags are those of `tessera train` that tell the model, the batch or the optimizer.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "timed_step.h"

namespace {

using namespace bench;

struct Options {
  RunConfig run;  // `steps` are timed, after one that is not
  std::size_t rows = 30;
  std::string json;
};

/// The sums of all rows of one op and kernel, per step.
struct Sum {
  std::string op, kernel;
  double calls = 0, seconds = 0, flops = 0, bytes = 0;
};

Options parse(int argc, char** argv);
void print(const Report& report, const Options& options);
void write_json(const Report& report, const Options& options);

// ---- Telling ---------------------------------------------------------------------------------

std::vector<Sum> sums_of(const Report& report) {
  std::vector<Sum> out;
  for (const Row& row : report.rows) {
    const auto same = [&](const Sum& s) {
      return s.op == row.kind.op && s.kernel == row.kind.kernel;
    };
    auto sum = std::find_if(out.begin(), out.end(), same);
    if (sum == out.end()) sum = out.insert(out.end(), {row.kind.op, row.kind.kernel});
    sum->calls += row.calls();
    sum->seconds += median(row.per_step);
    sum->flops += row.calls() * row.flops;
    sum->bytes += row.calls() * row.bytes;
  }
  std::sort(out.begin(), out.end(),
            [](const Sum& a, const Sum& b) { return a.seconds > b.seconds; });
  return out;
}

/// A line up to its name; `seconds` are of all calls of a step, `call_seconds` of one.
void print_line(double calls, double seconds, double call_seconds, double flops, double bytes,
                double whole) {
  std::printf("%6.0f %10.3f %6.1f%% %11.1f %9.1f %8.1f  ", calls, seconds * 1e3,
              100 * seconds / whole, call_seconds * 1e6, flops / seconds / 1e9,
              bytes / seconds / 1e9);
}

void print(const Report& report, const Options& o) {
  const double whole = median(report.steps);
  std::printf("%s on %s: a step takes %.4f s (median of %zu), %.1f GFLOP/s\n\n",
              o.run.preset.c_str(), report.device.c_str(), whole, report.steps.size(),
              report.flops / whole / 1e9);
  const char* head = " calls    ms/step  share     us/call   GFLOP/s     GB/s  ";
  std::printf("%sop, kernel\n", head);
  Sum rest = {"ops of less than 0.1% each", "any kernel"};
  for (const Sum& s : sums_of(report)) {
    if (s.seconds < 1e-3 * whole) {
      rest.calls += s.calls;
      rest.seconds += s.seconds;
      rest.flops += s.flops;
      rest.bytes += s.bytes;
      continue;
    }
    print_line(s.calls, s.seconds, s.seconds / s.calls, s.flops, s.bytes, whole);
    std::printf("%s, %s\n", s.op.c_str(), s.kernel.c_str());
  }
  if (rest.calls > 0) {
    print_line(rest.calls, rest.seconds, rest.seconds / rest.calls, rest.flops, rest.bytes, whole);
    std::printf("%s, %s\n", rest.op.c_str(), rest.kernel.c_str());
  }
  const double outside = median(report.outside);
  std::printf("%17.3f %6.1f%%  in no call\n\n", outside * 1e3, 100 * outside / whole);
  std::printf("%sregion, block, op, types, kernel (us/call: median)\n", head);
  for (std::size_t i = 0; i < std::min(o.rows, report.rows.size()); ++i) {
    const Row& r = report.rows[i];
    print_line(r.calls(), median(r.per_step), median(r.seconds), r.calls() * r.flops,
               r.calls() * r.bytes, whole);
    std::printf("%s %s %s, %s\n", r.kind.region.c_str(),
                r.kind.where.empty() ? "-" : r.kind.where.c_str(), r.kind.what.c_str(),
                r.kind.kernel.c_str());
  }
  if (report.rows.size() > o.rows)
    std::printf("and %zu rows more: --rows N\n", report.rows.size() - o.rows);
}

void write_json(const Report& report, const Options& o) {
  nlohmann::ordered_json out;
  out["bench"] = "op_times";
  out["preset"] = o.run.preset;
  out["device"] = report.device;
  out["threads"] = o.run.threads;
  out["step_seconds"] = report.steps;
  out["flops_per_step"] = report.flops;
  for (const Sum& s : sums_of(report)) {
    out["ops"].push_back({{"op", s.op},
                          {"kernel", s.kernel},
                          {"calls", s.calls},
                          {"seconds_per_step", s.seconds},
                          {"flops", s.flops},
                          {"bytes", s.bytes}});
  }
  for (const Row& r : report.rows) {
    out["calls"].push_back({{"region", r.kind.region},
                            {"block", r.kind.where},
                            {"op", r.kind.op},
                            {"what", r.kind.what},
                            {"kernel", r.kind.kernel},
                            {"calls", r.calls()},
                            {"seconds_per_step", median(r.per_step)},
                            {"call_seconds", median(r.seconds)},
                            {"flops", r.flops},
                            {"bytes", r.bytes}});
  }
  std::ofstream file(o.json);
  file << out.dump(1) << '\n';
  if (!file.flush())
    fail(Fault::Resource, "cannot write '", o.json, "'; give a --json that you may write to");
}

Options parse(int argc, char** argv) {
  Options out;
  std::vector<Setting> flags = {{"steps", {"3"}, "--steps"}};
  bool preset = false;
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i];
    require(starts_with(flag, "--") && i + 1 < argc, "'", flag,
            "' is no flag with a value; usage: op_times [--preset NAME] [--threads N] [--steps N] "
            "[--rows N] [--json FILE] [--FLAG VALUE of tessera train]");
    const std::string value = argv[i + 1], name = flag.substr(2);
    preset = preset || name == "preset";
    if (name == "json") {
      out.json = value;
    } else if (name == "rows") {
      out.rows = static_cast<std::size_t>(std::atol(value.c_str()));
    } else if (name == "steps") {
      flags[0].values = {value};
    } else {
      flags.push_back({name, {value}, flag});
    }
  }
  if (!preset) flags.push_back({"preset", {"gpt2-small"}, "--preset"});
  Problems problems;
  std::vector<std::string> notices;
  out.run = configure({}, flags, problems, notices);
  problems.raise();
  require(out.run.steps > 0, "--steps is ", out.run.steps, "; give at least 1");
  if (out.run.model.vocabulary == 0) out.run.model.vocabulary = 65;  // as character Shakespeare has
  if (out.run.threads == 0) out.run.threads = std::max(1u, std::thread::hardware_concurrency());
  complete(out.run);
  require(out.run.micro_batch_size > 0 && out.run.global_batch_size % out.run.micro_batch_size == 0,
          "micro-batches of ", out.run.micro_batch_size, " do not divide a batch of ",
          out.run.global_batch_size);
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = parse(argc, argv);
    const Report report = measure(options.run);
    print(report, options);
    if (!options.json.empty()) write_json(report, options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "op_times: %s\n", error.what());
    return 1;
  }
}
