#pragma once
/// Commands in a program of one's own: each does what its command does, and returns what that
/// prints. See training.h and planning.h for the others.
///
/// `arguments` are those of the command. Progress and notices go to the errors of `console`. What
/// goes wrong is thrown; so are, as Fault::Usage, --help, and a process that a launcher started as
/// one of several ranks. Devices are threads of this process.

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "tessera/apps/command.h"
#include "tessera/apps/export_model.h"
#include "tessera/apps/flags.h"
#include "tessera/bench/bench_report.h"
#include "tessera/bench/verify.h"
#include "tessera/report/inspect.h"
#include "tessera/train/evaluation.h"

namespace tessera {

/// A mesh that computes other numbers is no error: VerifyReport::ok(). Errors: Fault::Numerics: one
/// device alone computes inf or nan, so nothing can be compared.
VerifyReport verify_here(const Arguments& arguments, Console& console,
                         const OwnFamilies& families = {});

/// Turns are processes that this one forks: no other thread may use the library meanwhile. What
/// was not measured says why (Standing::failure). Errors: Fault::Usage: `stop` was set before
/// anything was measured.
BenchReport bench_here(const Arguments& arguments, Console& console, const std::atomic<bool>& stop,
                       const OwnFamilies& families = {});

struct Inspected {
  std::string digest;                    // asked for by --digest; else empty
  bool intact = false;                   // asked for by --verify: every byte was compared
  std::optional<Inspection> found = {};  // none where one of these was asked for
};
std::string to_json(const Inspected& inspected);
Inspected inspect_here(const Arguments& arguments, Console& console,
                       const OwnFamilies& families = {});

struct ExportedTo {
  std::string folder;
  ExportedModel model;
};
ExportedTo export_here(const Arguments& arguments, Console& console,
                       const OwnFamilies& families = {});
ExportedTo merge_adapter_here(const Arguments& arguments, Console& console,
                              const OwnFamilies& families = {});

struct EvaluatedModel {
  std::string model, data;  // paths
  Evaluated scored;
};
std::string to_json(const EvaluatedModel& evaluated);
EvaluatedModel evaluate_here(const Arguments& arguments, Console& console,
                             const OwnFamilies& families = {});

/// Rows that were predicted; --output also writes them.
PredictionTable predict_here(const Arguments& arguments, Console& console,
                             const OwnFamilies& families = {});

/// The flags of these commands, as --help has them.
std::vector<Flag> train_flags(const OwnFamilies& families);
std::vector<Flag> plan_flags(const OwnFamilies& families);
std::vector<Flag> verify_flags(const OwnFamilies& families);
std::vector<Flag> bench_command_flags(const OwnFamilies& families);
std::vector<Flag> inspect_flags(const OwnFamilies& families);
std::vector<Flag> export_flags(const OwnFamilies& families);
std::vector<Flag> evaluate_flags(const OwnFamilies& families);
std::vector<Flag> predict_flags(const OwnFamilies& families);

/// For those functions: --help is refused.
void refuse_help(bool help);

}  // namespace tessera
