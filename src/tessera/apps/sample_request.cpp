#include "tessera/apps/sample_request.h"

#include <algorithm>
#include <filesystem>

#include "tessera/apps/result_file.h"
#include "tessera/apps/writer.h"
#include "tessera/base/text.h"
#include "tessera/config/fields.h"

namespace tessera {

namespace {

std::vector<Flag> own_flags() {
  return {
      {"prompt",
       {},
       "TEXT",
       "start of the text [a new line]; for translations, the source",
       "",
       false,
       "",
       true},
      {"prompts", {}, "FILE", "prompts, one per line, instead of --prompt"},
      {"input", {}, "FILE", "for translations: the same as --prompts"},
      {"samples", {"num-return-sequences"}, "N", "texts per prompt [1]"},
      {"output",
       {},
       "FILE",
       "write to this file instead of the screen: translations one per line, other texts as JSON "
       "lines with prompt and text"},
      {"overwrite", {}, "", "replace the file of --output where it exists", "", false},
      {"rows", {"batch-size"}, "N", "how many of several texts are written at a time [16]"},
      {"beams",
       {"num-beams"},
       "N",
       "above 1: beam search, the likeliest text as far as keeping the N best at each token finds "
       "it; nothing is drawn [1]"},
      {"length-penalty",
       {},
       "NUMBER",
       "of beam search: above 0 longer texts are preferred, below 0 shorter ones [0]"},
      secret_file_flag(),
  };
}

/// The flags that say what is read and where texts are written.
void read_texts(ParsedFlags& parsed, SampleRequest& out) {
  Problems& problems = out.command.problems;
  out.prompt_given = parsed.find("prompt") != nullptr;
  out.prompt = parsed.take_value("prompt");
  const bool rows = parsed.find("rows") != nullptr;
  const auto file = [&](const char* name) {
    const bool given = parsed.find(name) != nullptr;
    std::string path = parsed.take_value(name);
    if (given && path.empty()) problems.add(text("--", name, " is empty; give a file"));
    if (path == "-")
      problems.add(text("--", name, " - is not a file; ",
                        name == std::string_view("output")
                            ? "without --output texts are written to standard output"
                            : "save what standard input gives to a file first",
                        ", and a file of that name is ./-"));
    return path;
  };
  out.output = file("output");
  for (const char* name : {"prompts", "input"}) {
    if (parsed.find(name) == nullptr) continue;
    if (!out.texts_flag.empty())
      problems.add("--prompts and --input both name a file of prompts; give one");
    out.texts = file(name), out.texts_flag = name;
  }
  const std::string at_a_time = parsed.take_value("rows");
  if (rows && !problems.gather([&] { read_number("--rows", at_a_time, &out.rows); }))
    problems.refuse("rows");
  if (rows && (out.rows < 1 || out.rows > 10'000))
    problems.add(text("--rows is ", out.rows, "; it must be from 1 to 10000"), {"rows"});
  if (rows && out.texts_flag.empty() && out.samples == 1)
    problems.add("--rows needs several texts; give --prompts or --samples, or leave --rows out");
  if (out.prompt_given && !out.texts_flag.empty())
    problems.add(text("--prompt and --", out.texts_flag, " both give prompts; give one"));
  std::error_code unknown;
  const bool overwrite = parsed.take_switch("overwrite");
  if (out.output.empty()) return;
  const NamedFile result[] = {{"output", out.output}},
                  sources[] = {{"PATH", out.checkpoint}, {out.texts_flag, out.texts}};
  check_apart(result, sources, problems);
  if (out.texts != out.output && !overwrite &&
      std::filesystem::is_regular_file(out.output, unknown)) {
    problems.add(text("--output '", out.output,
                      "' exists; give another file, or --overwrite to replace it"));
  }
}

}  // namespace

SampleRequest read_sample_request(const Arguments& arguments, const OwnFamilies& families) {
  SampleRequest out;
  Problems& problems = out.command.problems;
  ParsedFlags parsed = parse_flags(arguments, sample_flags(), problems);
  out.help = parsed.help;
  out.command.secret_file = parsed.take_value("secret-file");
  Drawing drawing = take_drawing(parsed, problems);
  out.options = std::move(drawing.options), out.stops = std::move(drawing.stops);
  out.warm = drawing.warm;
  const bool penalty = take_number(parsed, "length-penalty", problems, &out.options.length_penalty);
  take_number(parsed, "beams", problems, &out.options.beams);
  if (take_number(parsed, "samples", problems, &out.samples) &&
      (out.samples < 1 || out.samples > 1'000'000))
    problems.add(text("--samples is ", out.samples, "; it must be from 1 to 1000000"));
  if (out.options.beams > 1 && drawing.draws)
    problems.add(text("--beams ", out.options.beams,
                      " draws nothing at random, so --temperature, --top-k and --top-p do nothing; "
                      "leave them out, or give --beams 1"));
  if (out.samples > 1 && (out.options.beams > 1 || (out.warm && out.options.temperature == 0)))
    problems.add(text("--samples ", out.samples,
                      " would all be the same text, as nothing is drawn at random; give a "
                      "--temperature above 0, or leave --samples out"));
  if (out.options.beams == 1 && penalty)
    problems.add("--length-penalty needs beam search; give --beams 2 or more, or leave it out");
  problems.add(tessera::problems(out.options), "--");
  out.checkpoint = take_checkpoint(parsed, "tessera sample runs/first", problems);
  read_texts(parsed, out);
  out.command.devices_given = parsed.find("devices") != nullptr;
  out.command.config = configure(parsed, problems, out.notices, families);
  return out;
}

std::vector<Flag> sample_flags() {
  std::vector<Flag> out = {checkpoint_flag()};
  for (const std::vector<Flag>& more : {own_flags(), drawing_flags(), writing_device_flags()})
    out.insert(out.end(), more.begin(), more.end());
  return out;
}

}  // namespace tessera
