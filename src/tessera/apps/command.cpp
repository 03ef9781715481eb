#include "tessera/apps/command.h"

#include "tessera/apps/commands_here.h"
#include "tessera/apps/switch_table.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

struct Entry {
  const char* name;
  Command run;
  const char* help;
  bool on_ranks = false;
};
constexpr Entry kCommands[] = {
    {"train", train_command,
     "train a model on text, tables, token files or pictures, or fine-tune one", true},
    {"sample", sample_command, "write text with a trained model", true},
    {"chat", chat_command, "hold a dialogue with a trained model in the terminal", true},
    {"serve", serve_command, "answer other programs with a trained model, over HTTP", true},
    {"predict", predict_command, "predict labels, answers or texts of other data, row by row",
     true},
    {"evaluate", evaluate_command, "score a trained model on other data", true},
    {"verify", verify_command, "check that a mesh computes the same numbers as one device", true},
    {"plan", plan_command,
     "print memory, communication and work of a training step without running it"},
    {"bench", bench_command, "measure the effect of switches on speed and memory"},
    {"prepare", prepare_command, "make one clean text file from several, or from a corpus by name"},
    {"preprocess_data", preprocess_command,
     "make token files from JSON lines, as Megatron-LM's tool does"},
    {"score", score_command, "score texts against references, or predictions with labels"},
    {"export", export_command, "write a trained model as Hugging Face's transformers loads it"},
    {"merge-adapter", merge_adapter_command,
     "write the whole model that an adapter (LoRA) belongs to, with what it adds"},
    {"inspect", inspect_command,
     "print what a checkpoint holds, its digest, and whether it is intact"},
    {"chart", chart_command, "draw the losses of runs"},
    {"report", report_command, "write a page about runs: curves, memory, switches, kernels"},
    {"doctor", doctor_command, "print what this machine offers, and any problems", true},
    {"launch", launch_command, "run a command on several ranks, each a process"},
};

void print_help(Console& console) {
  console.out << "tessera trains Transformers.\n\n";
  for (const Entry& entry : kCommands) {
    std::string name = text("  tessera ", entry.name);
    name.resize(27, ' ');
    console.out << name << entry.help << "\n";
  }
  console.out
      << "  tessera version          the version\n"
         "  tessera help switches    what makes training faster or smaller, and its price\n\n"
         "tessera COMMAND --help says more. A first run:\n\n"
         "  tessera prepare kjv --output corpus.txt\n"
         "  tessera train --preset nanogpt-shakespeare-cpu --data corpus.txt "
         "--output runs/first\n"
         "  tessera sample runs/first\n";
}

int dispatch(const Arguments& arguments, Console& console, const OwnFamilies& families) {
  const std::string name = arguments.empty() ? "help" : arguments.front();
  Arguments rest(arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end());
  if (name == "version" || name == "--version") {
    console.out << "tessera " << kVersion << "\n";
    return 0;
  }
  if (name == "help" || name == "--help" || name == "-h") {
    if (rest.empty()) {
      print_help(console);
      return arguments.empty() ? static_cast<int>(Fault::Usage) : 0;
    }
    if (rest.front() == "switches") {
      console.out << switches_text(console.columns);
      return 0;
    }
    return dispatch({rest.front(), "--help"}, console, families);
  }
  std::vector<std::string> names;
  for (const Entry& entry : kCommands) {
    if (name == entry.name) return entry.run(rest, console, families);
    names.emplace_back(entry.name);
  }
  names.insert(names.end(), {"version", "help"});
  const std::vector<std::string> near = nearest(name, names);
  fail(Fault::Usage, "unknown command '", name, "'; ",
       near.empty() ? text("commands are ", join(names)) : text("nearest: ", join(near)));
}

}  // namespace

std::vector<std::string> commands_on_ranks() {
  std::vector<std::string> out;
  for (const Entry& entry : kCommands) {
    if (entry.on_ranks) out.emplace_back(entry.name);
  }
  return out;
}

void refuse_help(bool help) { require(!help, "--help is for the command; leave it out"); }

int run_command(const Arguments& arguments, Console& console, const OwnFamilies& families) {
  return exit_code_of(console, [&] { return dispatch(arguments, console, families); });
}

}  // namespace tessera
