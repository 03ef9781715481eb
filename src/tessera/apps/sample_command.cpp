#include "tessera/apps/command.h"
#include "tessera/apps/flags.h"
#include "tessera/apps/instruction_set.h"
#include "tessera/apps/ranks.h"
#include "tessera/base/text.h"
#include "tessera/data/token_stream.h"
#include "tessera/device/device.h"
#include "tessera/models/family.h"
#include "tessera/train/fields.h"
#include "tessera/train/generate.h"
#include "tessera/train/programs.h"
#include "tessera/train/recorded.h"

namespace tessera {

namespace {

std::vector<Flag> sample_flags() {
  const std::vector<Flag> flags = {
      {"checkpoint",
       {},
       "PATH",
       "the folder of a run (its newest checkpoint) or a checkpoint",
       "",
       false},
      {"prompt", {}, "TEXT", "what the text begins with [a new line]", "", false},
      {"tokens", {}, "N", "how many tokens to write [500]", "", false},
      {"temperature",
       {},
       "NUMBER",
       "above 1 more random, below 1 less; 0: always the likeliest token [0.8]",
       "",
       false},
      {"top-k", {}, "N", "draw from the N likeliest tokens; 0: from all [0]", "", false},
      {"top-p",
       {},
       "NUMBER",
       "among the tokens that --top-k leaves, draw from the fewest whose probabilities sum up to "
       "this; 1: from all [1]",
       "",
       false},
      {"seed", {}, "N", "seed of the random draws [1]", "", false},
      {"threads", {}, "N", "threads; 0: one per core [0]", "", false},
      {"max-isa",
       {},
       "auto|avx2|avx512|avx512-bf16|amx",
       "the highest instruction set that is used; auto: the machine's [auto]",
       "",
       false},
  };
  return flags;
}

/// The flags' numbers, read by the kind of their target.
struct SampleRequest {
  std::string checkpoint, prompt;
  RunConfig machine;  // choices
  GenerateOptions options;
  std::int64_t seed = 1, threads = 0;
};

SampleRequest read_request(const ParsedFlags& parsed, Problems& problems) {
  SampleRequest out;
  out.options.tokens = 500;
  const auto read = [&](const char* name, auto* to) {
    const std::string* value = parsed.find(name);
    if (value != nullptr) problems.gather([&] { read_number(text("--", name), *value, to); });
  };
  read("tokens", &out.options.tokens);
  read("temperature", &out.options.temperature);
  read("top-k", &out.options.top_k);
  read("top-p", &out.options.top_p);
  read("seed", &out.seed);
  read("threads", &out.threads);
  if (out.threads < 0 || out.threads > 4096)
    problems.add(text("--threads is ", out.threads, "; it must be from 0 to 4096"));
  if (const std::string* isa = parsed.find("max-isa")) out.machine.max_isa = *isa;
  agree_on_choices(out.machine, nullptr, problems);
  out.options.seed = static_cast<std::uint64_t>(out.seed);
  for (const std::string& problem : tessera::problems(out.options)) problems.add("--" + problem);
  if (const std::string* prompt = parsed.find("prompt")) out.prompt = *prompt;
  std::vector<std::string> paths = parsed.words;
  if (const std::string* path = parsed.find("checkpoint")) paths.push_back(*path);
  if (paths.size() == 1) {
    out.checkpoint = paths.front();
  } else {
    problems.add(paths.empty()
                     ? std::string("checkpoint is missing; give the folder of a run, like "
                                   "tessera sample runs/first")
                     : text("several checkpoints: ", join(paths), "; give one"));
  }
  return out;
}

std::vector<std::int32_t> encode_prompt(const Vocabulary& vocabulary, const std::string& prompt) {
  try {
    return vocabulary.encode(prompt);
  } catch (const Error& error) {
    fail(Fault::Usage, "--prompt: ", error.what());
  }
}

}  // namespace

int sample_command(const Arguments& arguments, Console& console) {
  Problems problems;
  const ParsedFlags parsed = parse_flags(arguments, sample_flags(), problems);
  if (parsed.help) {
    console.out << "tessera sample PATH [FLAG...]\n\n"
                << flags_help(sample_flags(), console.columns);
    return 0;
  }
  const SampleRequest request = read_request(parsed, problems);
  problems.raise();

  const Checkpoint checkpoint = Checkpoint::open(request.checkpoint);
  RecordedRun recorded = recorded_run(checkpoint);
  RunConfig& config = recorded.config;
  config.dump_dir.clear();
  config.parallel = {};  // one device, whatever it was trained on
  config.threads = request.threads;
  config.choices = request.machine.choices;  // not those that it was trained with
  if (!task_of(config.model).logits)
    fail(Fault::Usage, "'", request.checkpoint, "' is a model of family ", config.model.family,
         ", which writes no text; give a checkpoint of one that does");
  const Vocabulary& vocabulary = recorded.vocabulary;
  const std::vector<std::int32_t> prompt = encode_prompt(vocabulary, request.prompt);
  require_ids(prompt, config.model.vocabulary, "--prompt");
  const auto device = make_cpu_device(cpu_options(config));
  Crew crew(compile_programs(config, {false, false, true}, *device).plan, *device, nullptr, kFast);
  crew.load(checkpoint);

  console.out << request.prompt << std::flush;
  GenerateOptions options = request.options;
  options.on_token = [&](std::int32_t id) {
    console.out << vocabulary.decode(std::span(&id, 1)) << std::flush;
    if (!console.out)
      fail(Fault::Resource,
           "standard output takes no more text; free some space, or read the pipe "
           "to its end");
  };
  generate(crew, vocabulary, prompt, options);
  console.out << "\n";
  return 0;
}

}  // namespace tessera
