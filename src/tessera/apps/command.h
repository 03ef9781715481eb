#pragma once
/// The room `apps`: the command, one file for each subcommand.
/// For: flags to calls, results to lines.
/// Not for: anything that a program without a command line would want.
///
/// The `tessera` command: docs/reference/flags.md.

#include <functional>
#include <string>
#include <vector>

#include "tessera/base/version.h"
#include "tessera/launch/console.h"
#include "tessera/launch/exit_code.h"
#include "tessera/models/family.h"

namespace tessera {

/// What main() of the command `tessera` is. A program of one's own that returns this is the whole
/// command, with `families` beside those of the library: closed standard streams, pipes that nobody
/// reads and files that may not grow are errors with words and an exit code, and training saves
/// what it has. A library that ends the process for want of memory has its own words, and code 1.
int main_of(int count, char** values, const OwnFamilies& families = {});
/// The same for a program that is not the command: `work` returns the exit code.
int main_of(const std::function<int(Console& console)>& work);

/// What main_of() does with the process before anything else.
void set_up_process();

/// Runs the subcommand that `arguments` begins with; the exit code (docs/reference/errors.md).
/// Errors are printed, once, on the console's error stream. `families` are those that --family can
/// name beside the library's. The process is left as it is: see main_of().
int run_command(const Arguments& arguments, Console& console, const OwnFamilies& families = {});

/// The commands of which several processes may be the ranks.
std::vector<std::string> commands_on_ranks();

/// A subcommand; each has a file of its own. Throws Error.
using Command = int (*)(const Arguments& arguments, Console& console, const OwnFamilies& families);
int train_command(const Arguments& arguments, Console& console, const OwnFamilies& families);
int sample_command(const Arguments& arguments, Console& console, const OwnFamilies& families);
int chat_command(const Arguments& arguments, Console& console, const OwnFamilies& families);
int serve_command(const Arguments& arguments, Console& console, const OwnFamilies& families);
int predict_command(const Arguments& arguments, Console& console, const OwnFamilies& families);
int evaluate_command(const Arguments& arguments, Console& console, const OwnFamilies& families);
int verify_command(const Arguments& arguments, Console& console, const OwnFamilies& families);
int plan_command(const Arguments& arguments, Console& console, const OwnFamilies& families);
int prepare_command(const Arguments& arguments, Console& console, const OwnFamilies& families);
int preprocess_command(const Arguments& arguments, Console& console, const OwnFamilies& families);
int score_command(const Arguments& arguments, Console& console, const OwnFamilies& families);
int export_command(const Arguments& arguments, Console& console, const OwnFamilies& families);
int merge_adapter_command(const Arguments& arguments, Console& console,
                          const OwnFamilies& families);
int inspect_command(const Arguments& arguments, Console& console, const OwnFamilies& families);
int report_command(const Arguments& arguments, Console& console, const OwnFamilies& families);
int doctor_command(const Arguments& arguments, Console& console, const OwnFamilies& families);
int chart_command(const Arguments& arguments, Console& console, const OwnFamilies& families);
int bench_command(const Arguments& arguments, Console& console, const OwnFamilies& families);
int launch_command(const Arguments& arguments, Console& console, const OwnFamilies& families);

}  // namespace tessera
