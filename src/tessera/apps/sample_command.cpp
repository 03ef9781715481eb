#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iostream>
#include <map>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "tessera/apps/chat_session.h"
#include "tessera/apps/found_run.h"
#include "tessera/apps/sample_request.h"
#include "tessera/apps/sample_source.h"
#include "tessera/base/counted.h"
#include "tessera/base/text.h"
#include "tessera/config/fields.h"
#include "tessera/config/recorded.h"
#include "tessera/device/device.h"
#include "tessera/files/file.h"
#include "tessera/launch/out_of_memory.h"
#include "tessera/launch/stop_signal.h"
#include "tessera/models/family.h"
#include "tessera/models/stop_texts.h"
#include "tessera/train/evaluation.h"
#include "tessera/train/programs.h"
#include "tessera/train/written_sample.h"

namespace tessera {

namespace {

/// One text leaves data parallel devices nothing to do.
void find_mesh_problems(const ParallelConfig& parallel, const ModelConfig& model,
                        Problems& problems) {
  problems.add(tessera::problems(parallel, model));
  if (!problems.empty() || parallel.data() == 1) return;
  problems.add(text("devices ", parallel.devices, " is more than tensor-model-parallel-size ",
                    parallel.tensor, " x pipeline-model-parallel-size ", parallel.pipeline,
                    "; raise one of these, or give devices ", parallel.tensor * parallel.pipeline));
}

void require_taken(const Console& console) {
  if (!console.out) throw OutputFailed{};
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
         "' is not writable: ", std::generic_category().message(errno),
         "; change its permissions, or give another file");
  return std::make_unique<OutputFile>(path);
}

/// What rank 0 writes from, and into.
struct WritingSource {
  Evaluation model;
  TextWriting writing;
  std::vector<std::string> prompts;
  std::vector<Beginning> beginnings;   // of each prompt as many as there are samples
  std::unique_ptr<OutputFile> output;  // null: the screen
};

/// "prompt 1 of 2, sample 3 of 4"
std::string which_text(std::size_t number, const WritingSource& source,
                       const SampleRequest& request) {
  const auto samples = static_cast<std::size_t>(request.samples);
  const std::size_t prompts = source.prompts.size();
  std::vector<std::string> out;
  if (prompts > 1) out.push_back(text("prompt ", number / samples + 1, " of ", prompts));
  if (samples > 1) out.push_back(text("sample ", number % samples + 1, " of ", samples));
  return join(out);
}

/// {"prompt": "In the", "text": " beginning"}
std::string json_line(const std::string& prompt, const std::string& written) {
  nlohmann::ordered_json out;
  out["prompt"] = prompt, out["text"] = written;
  return out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

/// One text, each token as it is drawn.
void write_streaming(TextModel& model, const WritingSource& source, const SampleRequest& request,
                     Console& console) {
  if (model.writing().source == 0) console.out << source.prompts.front() << std::flush;
  TextStream written(source.model.vocabulary, source.beginnings.front().prompt);
  StopTexts stop(request.stops);
  GenerateOptions options = request.options;
  options.on_token = [&](std::size_t, std::int32_t id) {
    console.out << stop.add(written.add(id)) << std::flush;
    require_taken(console);
  };
  write_texts(model, source.model.vocabulary, source.beginnings, options, request.stops,
              [](const std::string&) {});
  console.out << stop.add(written.rest()) << stop.rest() << "\n";
}

/// Writes the texts: one token after the other, or, of several, one after the other.
void write_asked(TextModel& model, const WritingSource& source, const SampleRequest& request,
                 Console& console) {
  OutputFile* const output = source.output.get();
  const bool translates = model.writing().source > 0;
  if (output == nullptr && source.beginnings.size() == 1)
    return write_streaming(model, source, request, console);
  std::size_t number = 0;
  write_texts(
      model, source.model.vocabulary, source.beginnings, request.options, request.stops,
      [&](const std::string& written) {
        const std::string& prompt =
            source.prompts[number / static_cast<std::size_t>(request.samples)];
        const std::string which = which_text(number++, source, request);
        if (output != nullptr)
          return output->file.write(translates ? written + "\n" : json_line(prompt, written));
        if (!translates) console.out << "--- " << which << "\n" << prompt;
        console.out << written << "\n" << std::flush;
        require_taken(console);
      });
  if (output == nullptr) return;
  output->unfinished.reset();
  output->file.commit();
  console.out << "wrote " << counted(std::ssize(source.beginnings), "text") << " to '"
              << request.output << "'\n";
}

constexpr const char* kSampleWords = "tessera sample";

/// The model at a path, on the machine that was asked for.
Evaluation open_writer(const std::string& path, const RunConfig& asked) {
  if (PretrainedModel::is_at(path)) {
    Evaluation out = open_pretrained(path, asked);
    const std::vector<std::string> more = out.pretrained->notices_of_writing();
    out.notices.insert(out.notices.end(), more.begin(), more.end());
    out.config = on_devices_of(out.config, asked);
    return out;
  }
  Evaluation out;
  out.checkpoint.emplace(Checkpoint::open(path));
  RecordedRun recorded = recorded_run(*out.checkpoint, asked.families, RecordedUse::Weights);
  out.config = on_devices_of(recorded.config, asked);
  out.vocabulary = std::move(recorded.vocabulary);
  return out;
}

void load_model(RankGroup& group, const Evaluation& model) {
  if (model.checkpoint) return group.load(*model.checkpoint);
  load_weights(group, model);
}

/// Fits the `request` to the run. `config` says which machine, and then all.
WritingSource open_source(SampleRequest& request, RunConfig& config, Problems& problems) {
  Evaluation model = open_writer(request.checkpoint, config);
  config = model.config;
  const Task task = task_of(config.model);
  if (!task.text)
    fail(Fault::Usage, "'", request.checkpoint, "' is a model of family ", config.model.family,
         ", which writes no text; give one of a family that does");
  find_mesh_problems(config.parallel, config.model, problems);
  TextWriting writing = writing_to_an_end(*task.text, config, model.vocabulary);
  fit_to_task(request, writing, config.model, problems);
  std::vector<std::string> prompts;
  std::vector<Beginning> beginnings;
  if (request.chat && writing.source > 0)
    problems.add(text("--chat needs a decoder, and family ", config.model.family,
                      " writes from a source; leave it out"));
  if (request.chat) problems.gather([&] { ChatForm{model.vocabulary}; });
  if (problems.empty() && !request.chat)
    problems.gather([&] {
      const std::vector<GivenText> given =
          request.texts_flag.empty() ? std::vector<GivenText>{{request.prompt, "--prompt"}}
                                     : given_lines(request.texts);
      for (const GivenText& each : given) prompts.push_back(each.text);
      std::vector<Beginning> all =
          beginnings_of(given, writing, model.vocabulary, config.model.vocabulary);
      if (model.pretrained) begin_as_folder(model.vocabulary, writing, given, all);
      for (const Beginning& each : all)
        beginnings.insert(beginnings.end(), static_cast<std::size_t>(request.samples), each);
    });
  problems.raise();
  if (model.pretrained && !request.chat)
    shorten_context(config.model, writing, beginnings, request.options.tokens);
  request.rows = request.chat ? 1 : std::min(request.rows, most_alike(beginnings));
  request.notices.insert(request.notices.end(), model.notices.begin(), model.notices.end());
  return {std::move(model), writing, std::move(prompts), std::move(beginnings),
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

/// Rank 0 finds it, and has the source.
Writing find_writing(Communicator* launched, SampleRequest& request,
                     std::optional<WritingSource>& source) {
  const FoundRun found =
      find_run(launched, request.command, [&](RunConfig& config, Problems& problems) {
        problems.raise();
        naming_intact(request.checkpoint, kSampleWords,
                      recorded_run_judge(config.families, RecordedUse::Weights),
                      [&] { source.emplace(open_source(request, config, problems)); });
        return request.rows * request.options.beams;
      });
  Writing out{on_devices_of(found.recorded, found.asked), found.texts};
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
  const RunSetup setup(config);
  const WantedPrograms wanted{.train = false, .evaluate = false, .texts = writing.texts};
  on_ranks(config, launched, console, [&](Communicator* world, const Backend& backend) {
    const int rank = world == nullptr ? 0 : world->rank();
    std::optional<RankGroup> made;
    naming_texts(request, writing.texts, [&] {
      made.emplace(compile_programs(setup, wanted, backend, rank).plan, backend, world, kFast);
    });
    RankGroup& group = *made;
    if (rank > 0) return group.follow();
    naming_intact(request.checkpoint, kSampleWords, {}, [&] { load_model(group, source->model); });
    TextModel model(group, source->writing);
    request.chat ? chat(model, source->model.vocabulary, request, std::cin,
                        isatty(STDIN_FILENO) != 0, console)
                 : write_asked(model, *source, request, console);
    group.stop();
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
