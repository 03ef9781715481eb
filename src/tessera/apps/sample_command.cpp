#include <algorithm>
#include <optional>

#include "tessera/apps/agreement.h"
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

/// Fields of a run's configuration that say where text is written, not what.
constexpr std::string_view kMachineFields[] = {"devices",
                                               "tensor-model-parallel-size",
                                               "pipeline-model-parallel-size",
                                               "distributed-timeout",
                                               "threads",
                                               "max-isa",
                                               "amx",
                                               "pack-weights"};

std::vector<Flag> own_flags() {
  return {
      {"checkpoint", {}, "PATH", "the folder of a run (its newest checkpoint) or a checkpoint"},
      {"prompt", {}, "TEXT", "what the text begins with [a new line]"},
      {"tokens", {"max-new-tokens"}, "N", "how many tokens to write [500]"},
      {"temperature",
       {},
       "NUMBER",
       "above 1 more random, below 1 less; 0: always the likeliest token [0.8]"},
      {"top-k", {}, "N", "draw from the N likeliest tokens; 0: from all [0]"},
      {"top-p",
       {},
       "NUMBER",
       "among the tokens that --top-k leaves, draw from the fewest whose probabilities sum up to "
       "this; 1: from all [1]"},
      {"beams",
       {"num-beams"},
       "N",
       "above 1: beam search, the likeliest text as far as keeping the N best at each token finds "
       "it; nothing is drawn [1]"},
      {"length-penalty",
       {},
       "NUMBER",
       "of beam search: above 0 longer texts are preferred, below 0 shorter ones [0]"},
      {"seed", {}, "N", "seed of the random draws [1]"},
  };
}

std::vector<Flag> sample_flags() {
  std::vector<Flag> out = own_flags();
  for (Flag& flag : field_flags()) {
    if (std::ranges::find(kMachineFields, flag.name) != std::end(kMachineFields))
      out.push_back(std::move(flag));
  }
  return out;
}

/// What `tessera sample` was asked to do.
struct SampleRequest {
  RanksCommand command{.name = "sample", .config = {}, .problems = {}};
  std::vector<std::string> notices;
  std::string checkpoint, prompt;
  GenerateOptions options;
  bool help = false;
};

SampleRequest read_request(const Arguments& arguments) {
  SampleRequest out;
  Problems& problems = out.command.problems;
  ParsedFlags parsed = parse_flags(arguments, sample_flags(), problems);
  out.help = parsed.help;
  out.options.tokens = 500;
  std::int64_t seed = 1;
  const auto read = [&](const char* name, auto* to) {
    const bool told = parsed.find(name) != nullptr;
    const std::string value = parsed.take_value(name);
    if (told) problems.gather([&] { read_number(text("--", name), value, to); });
    return told;
  };
  const bool draws = [&] {
    const bool warm = read("temperature", &out.options.temperature);
    const bool few = read("top-k", &out.options.top_k), share = read("top-p", &out.options.top_p);
    return warm || few || share;
  }();
  read("tokens", &out.options.tokens);
  const bool penalty = read("length-penalty", &out.options.length_penalty);
  read("beams", &out.options.beams);
  read("seed", &seed);
  out.options.seed = static_cast<std::uint64_t>(seed);
  if (out.options.beams > 1 && draws)
    problems.add(text("--beams ", out.options.beams,
                      " draws nothing, so --temperature, --top-k and --top-p have no meaning; "
                      "leave them out, or give --beams 1"));
  if (out.options.beams == 1 && penalty)
    problems.add("--length-penalty is of beam search; give --beams 2 or more, or leave it out");
  for (const std::string& problem : tessera::problems(out.options)) problems.add("--" + problem);
  out.prompt = parsed.take_value("prompt");
  std::vector<std::string> paths = parsed.words;
  if (parsed.find("checkpoint") != nullptr) paths.push_back(parsed.take_value("checkpoint"));
  if (paths.size() == 1) {
    out.checkpoint = paths.front();
  } else {
    problems.add(paths.empty()
                     ? std::string("checkpoint is missing; give the folder of a run, like "
                                   "tessera sample runs/first")
                     : text("several checkpoints: ", join(paths), "; give one"));
  }
  out.command.devices_told = parsed.find("devices") != nullptr;
  out.command.config = configure(parsed, problems, out.notices);
  return out;
}

/// The run of the checkpoint, on the machine of the request.
RunConfig config_of_writing(const RunConfig& recorded, const RunConfig& request) {
  RunConfig out = recorded;
  out.dump_dir.clear();
  out.parallel = {};
  for (const std::string_view name : kMachineFields) {
    const Field& field = *find_field(name).field;
    set_text(field, out, get_text(field, request), name);
  }
  out.choices = request.choices;
  return out;
}

std::vector<std::int32_t> encode_prompt(const Vocabulary& vocabulary, const std::string& prompt) {
  try {
    return vocabulary.encode(prompt);
  } catch (const Error& error) {
    fail(Fault::Usage, "--prompt: ", error.what());
  }
}

/// One text leaves data parallel devices nothing to do.
void find_mesh_problems(const ParallelConfig& parallel, const ModelConfig& model,
                        Problems& problems) {
  for (const std::string& problem : tessera::problems(parallel, model)) problems.add(problem);
  if (!problems.empty() || parallel.data() == 1) return;
  problems.add(text("devices ", parallel.devices, " are more than tensor-model-parallel-size ",
                    parallel.tensor, " x pipeline-model-parallel-size ", parallel.pipeline,
                    " can use for a text; raise one of these, or give devices ",
                    parallel.tensor * parallel.pipeline));
}

/// What rank 0 writes from.
struct WritingSource {
  Checkpoint checkpoint;
  Vocabulary vocabulary;
  Tokens prompt;
};

/// `config` says which machine, and then all.
WritingSource open_source(const SampleRequest& request, RunConfig& config, Problems& problems) {
  Checkpoint checkpoint = Checkpoint::open(request.checkpoint);
  RecordedRun recorded = recorded_run(checkpoint);
  config = config_of_writing(recorded.config, config);
  if (!task_of(config.model).text)
    fail(Fault::Usage, "'", request.checkpoint, "' is a model of family ", config.model.family,
         ", which writes no text; give a checkpoint of one that does");
  find_mesh_problems(config.parallel, config.model, problems);
  Tokens prompt;
  problems.gather([&] {
    prompt = encode_prompt(recorded.vocabulary, request.prompt);
    require_ids(prompt, config.model.vocabulary, "--prompt");
  });
  problems.raise();
  return {std::move(checkpoint), std::move(recorded.vocabulary), std::move(prompt)};
}

/// Of all ranks; rank 0 finds it, and has the source.
RunConfig writing_config(Communicator* launched, const SampleRequest& request,
                         std::optional<WritingSource>& source) {
  RunConfig asked = request.command.config;
  Problems problems = request.command.problems;
  agree_on_choices(asked, launched, problems);
  take_launched_devices(asked, request.command.devices_told, launched, problems);
  const auto found = from_leader(launched, [&] {
    problems.raise();
    RunConfig config = asked;
    source.emplace(open_source(request, config, problems));
    return record_of(config);
  });
  RunConfig recorded = config_of(found, "the configuration of rank 0");
  complete(recorded);
  RunConfig config = config_of_writing(recorded, asked);
  share_cores(config, launched);
  return config;
}

int sample_on(Communicator* launched, const SampleRequest& request, Console& console) {
  if (request.help) {
    console.out << "tessera sample PATH [FLAG...]\n\n"
                << flags_help(sample_flags(), console.columns);
    return 0;
  }
  std::optional<WritingSource> source;
  const RunConfig config = writing_config(launched, request, source);
  GenerateOptions options = request.options;
  options.on_token = [&](std::int32_t id) {
    console.out << source->vocabulary.decode(std::span(&id, 1)) << std::flush;
    if (!console.out)
      fail(Fault::Resource,
           "standard output takes no more text; free some space, or read the pipe "
           "to its end");
  };
  const WantedPrograms wanted{.train = false, .evaluate = false, .texts = options.beams};
  on_ranks(config, launched, console, [&](Communicator* world, Device& device) {
    const int rank = world == nullptr ? 0 : world->rank();
    Crew crew(compile_programs(config, wanted, device, rank).plan, device, world, kFast);
    if (rank > 0) return crew.follow();
    crew.load(source->checkpoint);
    console.out << request.prompt << std::flush;
    TextModel model(crew, *task_of(config.model).text);
    generate(model, source->vocabulary, source->prompt, options);
    crew.dismiss();
    console.out << "\n";
  });
  return 0;
}

}  // namespace

int sample_command(const Arguments& arguments, Console& console) {
  const SampleRequest request = read_request(arguments);
  return on_launched_ranks(request.command, console, [&](Communicator* launched, Console& mine) {
    return sample_on(launched, request, mine);
  });
}

}  // namespace tessera
