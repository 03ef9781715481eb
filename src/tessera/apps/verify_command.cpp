#include <cmath>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "tessera/apps/check_flag.h"
#include "tessera/apps/command.h"
#include "tessera/apps/commands_here.h"
#include "tessera/apps/flags.h"
#include "tessera/apps/instruction_set.h"
#include "tessera/base/error.h"
#include "tessera/base/format.h"
#include "tessera/base/text.h"
#include "tessera/bench/verify.h"
#include "tessera/comm/work_alone.h"
#include "tessera/launch/agreement.h"
#include "tessera/launch/ranks.h"
#include "tessera/launch/take_machine.h"
#include "tessera/train/memory_choice.h"
#include "tessera/train/prepare.h"
#include "tessera/train/programs.h"
#include "tessera/train/run_source.h"

namespace tessera {

namespace {

constexpr std::int64_t kSteps = 3, kVocabulary = 256;  // where nothing says how many

/// What `tessera verify` was asked to do.
struct VerifyRequest {
  RanksCommand command{.name = "verify", .config = {}, .problems = {}};
  std::vector<std::string> notices;
  bool help = false, as_json = false, check = false;
};

VerifyRequest read_verify_request(const Arguments& arguments, const OwnFamilies& families) {
  VerifyRequest out;
  Problems& problems = out.command.problems;
  ParsedFlags parsed = parse_flags(arguments, verify_flags(families), problems);
  out.help = parsed.help;
  for (const std::string& word : parsed.words)
    problems.add(text("unexpected '", word, "'; flags begin with --"));
  out.as_json = parsed.take_switch("json");
  out.check = parsed.take_switch("check");
  out.command.own = {{"--check", out.check ? "true" : "false"}};
  out.command.secret_file = parsed.take_value("secret-file");
  out.command.devices_given = parsed.find("devices") != nullptr;
  const bool steps_given = parsed.find("steps") != nullptr;
  RunConfig& config = out.command.config = configure(parsed, problems, out.notices, families);
  if (!steps_given) config.steps = kSteps;
  take_init_model(config, problems, out.notices);
  note_idle_parallelism(config, out.notices);
  if (config.steps < 1) problems.add("steps is 0; verify needs at least 1");
  return out;
}

/// With what the memory cap chooses, which is what is verified; rank 0 finds that for all.
RunConfig complete_config(Communicator* launched, const VerifyRequest& request, Console& console) {
  RunConfig config = request.command.config;
  Problems problems = request.command.problems;
  take_launched_devices(config, request.command.devices_given, launched, problems);
  agree_on_choices(config, launched, problems);
  take_machine(config, launched, problems);
  if (config.model.vocabulary == 0) config.model.vocabulary = kVocabulary;
  complete(config);
  find_problems(config, problems);
  const auto found = from_leader(launched, [&] {
    check_offload_folder(config, problems);  // of rank 0; all else is the same on every rank
    problems.raise();
    for (const std::string& notice : request.notices) console.err << "notice: " << notice << "\n";
    const std::string fitted = fit_to_cap(config, launched, console);
    if (!fitted.empty()) console.err << "notice: " << fitted << "\n";
    if (request.check)
      compile_checked(RunSetup(config), {.evaluate = false, .texts = 0, .gradients = true},
                      *planned_device(config), console);
    return record_of(config);
  });
  if (launched == nullptr || launched->rank() == 0) return config;
  RunConfig of_leader = config_of(found, "the configuration of rank 0", config.families);
  complete(of_leader);
  set_memory_choice(config, memory_choice_of(of_leader));
  complete(config);
  return config;
}

bool is_finite(const HostTensor& tensor) {
  for (std::int64_t i = 0; i < tensor.numel(); ++i)
    if (!std::isfinite(tensor.at(i))) return false;
  return true;
}

/// "loss", or another result that is inf or nan; empty: none is.
std::string not_finite_of(const StepTrace& step) {
  if (!std::isfinite(step.loss)) return "loss";
  if (!std::isfinite(step.grad_norm)) return "gradient norm";
  for (const auto& [path, gradient] : step.gradients)
    if (!is_finite(gradient)) return "gradient " + path;
  for (const auto& [path, parameter] : step.parameters)
    if (!is_finite(parameter)) return "parameter " + path;
  return {};
}

/// That one device by itself leaves the range of floats; empty: it does not.
std::string overflow_of(const std::vector<StepTrace>& one) {
  for (std::size_t i = 0; i < one.size(); ++i) {
    const std::string name = not_finite_of(one[i]);
    if (!name.empty())
      return text("one device alone computes inf or nan, first in step ", i + 1, " (", name,
                  "), so nothing can be compared; lower --lr");
  }
  return {};
}

void print_verify_help(Console& console) {
  console.out
      << "tessera verify --preset NAME --devices N [FLAG...]\n\n"
         "Runs --steps training steps (3 unless given) on random tokens, on one device and "
         "on the mesh,\nand compares loss, gradient norm, gradients and updated "
         "parameters. A relative error above 1e-4\nis a failure: exit code 6. Takes the flags of "
         "tessera train; --json prints every error as JSON; --check\ninterprets the programs "
         "before and after each compiler pass, and compares all results.\n";
}

struct Verified {
  VerifyReport report;
  std::string overflow;  // nothing can be compared; empty: it can
};

/// None on ranks but 0.
std::optional<Verified> verify_on(Communicator* launched, const VerifyRequest& request,
                                  Console& console) {
  const RunConfig config = complete_config(launched, request, console);

  std::vector<StepTrace> mesh, one;
  on_ranks(config, launched, console, [&](Communicator* world, const Backend& backend) {
    std::vector<StepTrace> trace = trace_steps(config, config.steps, backend, world);
    if (world == nullptr || world->rank() == 0) mesh = std::move(trace);
  });
  if (launched != nullptr && launched->rank() > 0) return std::nullopt;
  RunConfig alone = config;
  alone.parallel = {};
  alone.device = kProcessors;
  alone.micro_batch_size = alone.global_batch_size;
  work_alone(launched, [&] {
    on_ranks(alone, nullptr, console, [&](Communicator*, const Backend& backend) {
      one = trace_steps(alone, alone.steps, backend, nullptr);
    });
  });
  VerifyReport report = compare_traces(one, mesh);
  report.rounding_left_out = precision_of(config).has_value();
  if (config.fp16) report.loss_scale = config.optimizer.loss_scale.initial;
  report.devices = config.parallel.devices;
  report.mesh = mesh_text(RunSetup(config).cut);
  return Verified{report, overflow_of(one)};
}

/// The exit code.
int print_verified(const Verified& verified, bool as_json, Console& console) {
  const auto& [report, overflow] = verified;
  if (as_json) {
    console.out << to_json(report);
  } else if (overflow.empty()) {
    console.out << to_text(report);
  }
  if (report.ok()) return 0;
  const Error error(Fault::Numerics,
                    !overflow.empty()
                        ? overflow
                        : text("the mesh computes other numbers than one device: worst is ",
                               report.worst().name, ", ", format("%.2e", report.worst().error),
                               " where ", format("%.0e", report.tolerance),
                               " is allowed; please report this with the command"));
  return report_failure(std::make_exception_ptr(error), console);
}

}  // namespace

std::vector<Flag> verify_flags(const OwnFamilies& families) {
  std::vector<Flag> out = field_flags(families);
  out.insert(out.begin(), Flag{"json", {}, "", "print JSON", "", false});
  out.push_back(check_flag());
  out.push_back(secret_file_flag());
  return out;
}

VerifyReport verify_here(const Arguments& arguments, Console& console,
                         const OwnFamilies& families) {
  const VerifyRequest request = read_verify_request(arguments, families);
  refuse_help(request.help);
  require_alone(request.command);
  const Verified verified = *verify_on(nullptr, request, console);
  if (!verified.overflow.empty()) fail(Fault::Numerics, verified.overflow);
  return verified.report;
}

int verify_command(const Arguments& arguments, Console& console, const OwnFamilies& families) {
  const VerifyRequest request = read_verify_request(arguments, families);
  return on_launched_ranks(request.command, console, [&](Communicator* launched, Console& mine) {
    if (request.help) return print_verify_help(mine), 0;
    const std::optional<Verified> verified = verify_on(launched, request, mine);
    return verified ? print_verified(*verified, request.as_json, mine) : 0;
  });
}

}  // namespace tessera
