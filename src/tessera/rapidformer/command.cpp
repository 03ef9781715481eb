#include "tessera/rapidformer/command.h"

#include <algorithm>

#include "tessera/apps/training.h"
#include "tessera/base/text.h"
#include "tessera/rapidformer/given_flags.h"
#include "tessera/rapidformer/request.h"
#include "tessera/rapidformer/user_script.h"

namespace tessera {

namespace {

constexpr const char* kUserScript = "--user-script";

/// The value of --user-script, which is taken out of the arguments; empty: it is not there.
std::string take_user_script(Arguments& arguments) {
  std::string out;
  for (auto word = arguments.begin(); word != arguments.end();) {
    const bool joined = starts_with(*word, text(kUserScript, "="));
    if (!joined && *word != kUserScript) {
      ++word;
      continue;
    }
    const bool has_value =
        joined || (word + 1 != arguments.end() && !starts_with(*(word + 1), "--"));
    const std::string file = !has_value ? ""
                             : joined   ? word->substr(std::string_view(kUserScript).size() + 1)
                                        : *(word + 1);
    require(!file.empty(), kUserScript, " needs a value: ", kUserScript, " FILE");
    require(out.empty() || out == file, kUserScript, " is given twice: '", out, "' and '", file,
            "'; give one");
    out = file;
    word = arguments.erase(word, word + (joined ? 1 : 2));
  }
  return out;
}

int train_by_flags(Arguments arguments, Console& console, const EnvironmentVariables& environment) {
  refuse_comments(arguments);
  const std::string script = take_user_script(arguments);
  if (!script.empty()) return run_user_script(script, arguments, console, environment);
  if (std::ranges::find_if(arguments, [](const std::string& word) {
        return word == "--help" || word == "-h";
      }) != arguments.end()) {
    console.out << "rapidformer --task NAME --data-path PATH --save FOLDER [FLAG...]\n"
                   "rapidformer --user-script FILE [FLAG...]\n"
                   "rapidformer COMMAND ...: as tessera COMMAND ...\n\n"
                << rapidformer_help({}, console.columns);
    return 0;
  }
  return run_training(read_rapidformer_flags(arguments, FlagsOf::Command, environment), console);
}

}  // namespace

int run_rapidformer(const Arguments& arguments, Console& console,
                    const EnvironmentVariables& environment) {
  const bool flags = !arguments.empty() && starts_with(arguments.front(), "--") &&
                     arguments.front() != "--version";
  if (!flags && !arguments.empty()) return run_command(arguments, console);
  return exit_code_of(console, [&] {
    return train_by_flags(arguments.empty() ? Arguments{"--help"} : arguments, console,
                          environment);
  });
}

}  // namespace tessera
