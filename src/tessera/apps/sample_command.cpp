#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "tessera/apps/sample_request.h"
#include "tessera/apps/sample_source.h"
#include "tessera/apps/writer.h"
#include "tessera/base/counted.h"
#include "tessera/base/text.h"
#include "tessera/files/file.h"
#include "tessera/launch/stop_signal.h"
#include "tessera/models/stop_texts.h"
#include "tessera/train/written_sample.h"

namespace tessera {

namespace {

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
void write_streaming(TextModel& model, const Vocabulary& vocabulary, const WritingSource& source,
                     const SampleRequest& request, Console& console) {
  if (model.writing().source == 0) console.out << source.prompts.front() << std::flush;
  TextStream written(vocabulary, source.beginnings.front().prompt);
  StopTexts stop(request.stops);
  GenerateOptions options = request.options;
  options.on_token = [&](std::size_t, std::int32_t id) {
    console.out << stop.add(written.add(id)) << std::flush;
    require_taken(console);
  };
  write_texts(model, vocabulary, source.beginnings, options, request.stops,
              [](const std::string&) {});
  console.out << stop.add(written.rest()) << stop.rest() << "\n";
}

/// Writes the texts: one token after the other, or, of several, one after the other.
void write_asked(TextModel& model, const Vocabulary& vocabulary, const WritingSource& source,
                 const SampleRequest& request, Console& console) {
  OutputFile* const output = source.output.get();
  const bool translates = model.writing().source > 0;
  if (output == nullptr && source.beginnings.size() == 1)
    return write_streaming(model, vocabulary, source, request, console);
  std::size_t number = 0;
  write_texts(
      model, vocabulary, source.beginnings, request.options, request.stops,
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

/// Fits the `request` to the run. `config` says which machine, and then all.
WritingSource open_source(SampleRequest& request, std::optional<Writer>& writer, RunConfig& config,
                          Problems& problems) {
  writer.emplace(open_writer(request.checkpoint, config, problems));
  Evaluation& model = writer->model;
  TextWriting& writing = writer->writing;
  fit_to_task(request, writing, config.model, problems);
  std::vector<std::string> prompts;
  std::vector<Beginning> beginnings;
  if (problems.empty())
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
  if (model.pretrained) shorten_context(config.model, writing, beginnings, request.options.tokens);
  request.rows = std::min(request.rows, most_alike(beginnings));
  request.notices.insert(request.notices.end(), model.notices.begin(), model.notices.end());
  return {std::move(prompts), std::move(beginnings), output_file(request.output)};
}

int sample_on(Communicator* launched, SampleRequest request, Console& console) {
  if (request.help) {
    console.out << "tessera sample PATH [FLAG...]\n\n"
                << flags_help(sample_flags(), console.columns);
    return 0;
  }
  std::optional<Writer> writer;
  std::optional<WritingSource> source;
  const WritingWords asked{&request.command, request.checkpoint, "tessera sample"};
  const WritingRun writing =
      find_writing(launched, asked, [&](RunConfig& config, Problems& problems) {
        source.emplace(open_source(request, writer, config, problems));
        return request.rows * request.options.beams;
      });
  for (const std::string& notice : request.notices) console.err << "notice: " << notice << "\n";
  const std::string fewer =
      writing.texts == 1
          ? ""
          : text("or lower --rows ", request.rows, " or --beams ", request.options.beams, ": ",
                 writing.texts, " texts are computed at a time");
  write_on_ranks(writing, asked, fewer, launched, console, writer,
                 [&](TextModel& model, RankGroup&) {
                   write_asked(model, writer->model.vocabulary, *source, request, console);
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
