#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <system_error>

#include "tessera/apps/agreement.h"
#include "tessera/apps/instruction_set.h"
#include "tessera/apps/out_of_memory.h"
#include "tessera/apps/sample_request.h"
#include "tessera/apps/stop_signal.h"
#include "tessera/apps/take_machine.h"
#include "tessera/base/counted.h"
#include "tessera/base/text.h"
#include "tessera/data/file.h"
#include "tessera/device/device.h"
#include "tessera/models/family.h"
#include "tessera/train/fields.h"
#include "tessera/train/programs.h"
#include "tessera/train/recorded.h"
#include "tessera/train/written_sample.h"

namespace tessera {

namespace {

/// The run of the checkpoint, on the machine of the request.
RunConfig config_of_writing(const RunConfig& recorded, const RunConfig& request) {
  RunConfig out = recorded;
  out.dump_dir.clear();
  out.parallel = {.machine = request.parallel.machine};
  for (const MachineField& machine : kSampleMachineFields) {
    const Field& field = *find_field(machine.name).field;
    set_text(field, out, get_text(field, request), machine.name);
  }
  out.choices = request.choices;
  return out;
}

/// What depends on the task of the run: what cannot be done with it, and what is left open.
void fit_to_task(SampleRequest& request, const TextWriting& writing, const ModelConfig& model,
                 Problems& problems) {
  const bool from_source = writing.source > 0;
  const auto of_sources = [&](const char* flag, bool told) {
    if (told && !from_source)
      problems.add(text("--", flag, " is of models that write a text from a source; family ",
                        model.family, " goes on with --prompt: give that, and leave --", flag,
                        " out"));
  };
  of_sources("input", !request.input.empty());
  of_sources("output", !request.output.empty());
  if (from_source && !request.prompt_told && request.input.empty())
    problems.add(text("nothing to write from: a model of family ", model.family,
                      " writes a text from a source; give --prompt TEXT or --input FILE"));
  if (!request.warm)
    request.options.temperature = request.options.beams > 1 ? 0 : writing.temperature;
  if (request.options.length_penalty != 0 && !writing.end)
    request.notices.push_back(text("--length-penalty ", request.options.length_penalty,
                                   " has no effect: texts of family ", model.family,
                                   " have no end, so all that are compared are of one length"));
}

/// One text leaves data parallel devices nothing to do.
void find_mesh_problems(const ParallelConfig& parallel, const ModelConfig& model,
                        Problems& problems) {
  problems.add(tessera::problems(parallel, model));
  if (!problems.empty() || parallel.data() == 1) return;
  problems.add(text("devices ", parallel.devices, " are more than tensor-model-parallel-size ",
                    parallel.tensor, " x pipeline-model-parallel-size ", parallel.pipeline,
                    " can use for a text; raise one of these, or give devices ",
                    parallel.tensor * parallel.pipeline));
}

void require_taken(const Console& console) {
  if (!console.out)
    fail(Fault::Resource,
         "standard output takes no more text; free some space, or read the pipe to its end");
}

/// The file of --output, which is removed where the command does not come to its end.
struct OutputFile {
  AtomicFile file;
  std::optional<UnfinishedTexts> unfinished;
  explicit OutputFile(const std::string& path) : file(path) {
    unfinished.emplace(file.temporary());
  }
};

/// Made before anything is compiled. A new file takes the place of the old one, so nobody else asks
/// whether that may be written.
std::unique_ptr<OutputFile> output_file(const std::string& path) {
  if (path.empty()) return nullptr;
  if (faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0 && errno != ENOENT)
    fail(Fault::Resource, "--output '", path,
         "' may not be written: ", std::generic_category().message(errno),
         "; change its permissions, or give another file");
  return std::make_unique<OutputFile>(path);
}

/// What rank 0 writes from, and into.
struct WritingSource {
  Checkpoint checkpoint;
  Vocabulary vocabulary;
  std::vector<Beginning> beginnings;
  std::unique_ptr<OutputFile> output;  // null: the screen
};

/// Writes the texts: one token after the other, or, of several, one in each line.
void write_asked(TextModel& model, const WritingSource& source, const SampleRequest& request,
                 Console& console) {
  const Vocabulary& vocabulary = source.vocabulary;
  const std::vector<Beginning>& beginnings = source.beginnings;
  GenerateOptions options = request.options;
  if (request.input.empty() && request.output.empty()) {
    if (model.writing().source == 0) console.out << request.prompt << std::flush;
    TextStream written(vocabulary, beginnings.front().prompt);
    options.on_token = [&](std::size_t, std::int32_t id) {
      console.out << written.add(id) << std::flush;
      require_taken(console);
    };
    write_texts(model, vocabulary, beginnings, options, [](const Tokens&) {});
    console.out << written.rest() << "\n";
    return;
  }
  OutputFile* const output = source.output.get();
  write_texts(model, vocabulary, beginnings, options, [&](const Tokens& written) {
    const std::string line = vocabulary.decode_text(written) + "\n";
    if (output != nullptr) return output->file.write(line);
    console.out << line << std::flush;
    require_taken(console);
  });
  if (output == nullptr) return;
  output->unfinished.reset();
  output->file.commit();
  console.out << "wrote " << counted(std::ssize(beginnings), "text") << " to '" << request.output
              << "'\n";
}

constexpr const char* kSampleWords = "tessera sample";

/// Fits the `request` to the run. `config` says which machine, and then all.
WritingSource open_source(SampleRequest& request, RunConfig& config, Problems& problems) {
  Checkpoint checkpoint = Checkpoint::open(request.checkpoint);
  RecordedRun recorded = recorded_run(checkpoint, config.families, RecordedUse::Weights);
  config = config_of_writing(recorded.config, config);
  const Task task = task_of(config.model);
  if (!task.text)
    fail(Fault::Usage, "'", request.checkpoint, "' is a model of family ", config.model.family,
         ", which writes no text; give a checkpoint of one that does");
  find_mesh_problems(config.parallel, config.model, problems);
  fit_to_task(request, *task.text, config.model, problems);
  std::vector<Beginning> beginnings;
  if (problems.empty())
    problems.gather([&] {
      beginnings =
          beginnings_of(request.input.empty() ? std::vector<GivenText>{{request.prompt, "--prompt"}}
                                              : given_lines(request.input),
                        *task.text, recorded.vocabulary, config.model.vocabulary);
    });
  problems.raise();
  request.rows = std::min(request.rows, std::ssize(beginnings));
  return {std::move(checkpoint), std::move(recorded.vocabulary), std::move(beginnings),
          output_file(request.output)};
}

/// What all ranks compile.
struct Writing {
  RunConfig config;
  std::int64_t texts = 1;  // WantedPrograms::texts
};

/// Runs `body`. Of texts that are computed at a time, a want of memory names the flags that say how
/// many these are.
template <typename Body>
void naming_texts(const SampleRequest& request, std::int64_t texts, const Body& body) {
  const auto flags = [&] {
    return texts == 1 ? std::string("or give fewer --threads or --devices")
                      : text("or lower --rows ", request.rows, " or --beams ",
                             request.options.beams, ": ", texts, " texts are computed at a time");
  };
  try {
    body();
  } catch (const Error& error) {
    if (error.fault() != Fault::Resource || texts == 1) throw;
    throw error.with(flags());
  } catch (const std::bad_alloc& error) {
    const auto* const ours = dynamic_cast<const OutOfMemory*>(&error);
    fail(Fault::Resource, ours == nullptr ? "out of memory" : ours->what(),
         "; raise the limit (ulimit -v, cgroup), ", flags());
  }
}

/// The name under which rank 0 tells the others how many texts the programs write at a time.
constexpr const char* kTextsKey = "sample.texts";

/// Rank 0 finds it, and has the source.
Writing find_writing(Communicator* launched, SampleRequest& request,
                     std::optional<WritingSource>& source) {
  RunConfig asked = request.command.config;
  Problems problems = request.command.problems;
  agree_on_choices(asked, launched, problems);
  take_machine(asked, launched, problems);
  take_launched_devices(asked, request.command.devices_told, launched, problems);
  const auto found = from_leader(launched, [&] {
    problems.raise();
    RunConfig config = asked;
    naming_intact(request.checkpoint, kSampleWords,
                  recorded_run_judge(config.families, RecordedUse::Weights),
                  [&] { source.emplace(open_source(request, config, problems)); });
    std::map<std::string, std::string> out = record_of(config);
    out[kTextsKey] = text(request.rows * request.options.beams);
    return out;
  });
  RunConfig recorded = config_of(found, "the configuration of rank 0", asked.families);
  complete(recorded);
  Writing out{config_of_writing(recorded, asked)};
  read_number(kTextsKey, found.at(kTextsKey), &out.texts);
  share_cores(out.config, launched);
  return out;
}

int sample_on(Communicator* launched, SampleRequest request, Console& console) {
  if (request.help) {
    console.out << "tessera sample PATH [FLAG...]\n\n"
                << flags_help(sample_flags(), console.columns);
    return 0;
  }
  std::optional<WritingSource> source;
  const Writing writing = find_writing(launched, request, source);
  const RunConfig& config = writing.config;
  for (const std::string& notice : request.notices) console.err << "notice: " << notice << "\n";
  const WantedPrograms wanted{.train = false, .evaluate = false, .texts = writing.texts};
  on_ranks(config, launched, console, [&](Communicator* world, Device& device) {
    const int rank = world == nullptr ? 0 : world->rank();
    std::optional<Crew> made;
    naming_texts(request, writing.texts, [&] {
      made.emplace(compile_programs(config, wanted, device, rank).plan, device, world, kFast);
    });
    Crew& crew = *made;
    if (rank > 0) return crew.follow();
    naming_intact(source->checkpoint.path(), kSampleWords, {},
                  [&] { crew.load(source->checkpoint); });
    const Task task = task_of(config.model);
    TextModel model(crew, *task.text);
    write_asked(model, *source, request, console);
    crew.dismiss();
  });
  return 0;
}

}  // namespace

int sample_command(const Arguments& arguments, Console& console, const OwnFamilies& families) {
  const SampleRequest request = read_sample_request(arguments, families);
  return on_launched_ranks(request.command, console, [&](Communicator* launched, Console& mine) {
    return sample_on(launched, request, mine);
  });
}

}  // namespace tessera
