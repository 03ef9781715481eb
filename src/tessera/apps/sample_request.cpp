#include "tessera/apps/sample_request.h"

#include <algorithm>
#include <filesystem>

#include "tessera/apps/model_names.h"
#include "tessera/apps/result_file.h"
#include "tessera/base/text.h"
#include "tessera/config/fields.h"
#include "tessera/train/evaluation.h"

namespace tessera {

namespace {

std::vector<Flag> own_flags() {
  return {
      {"checkpoint",
       {},
       "PATH",
       "a run (its newest checkpoint), a checkpoint or a folder of Hugging Face"},
      {"prompt",
       {},
       "TEXT",
       "start of the text [a new line]; for translations, the source",
       "",
       false,
       "",
       true},
      {"chat", {}, "", "answer the lines of standard input, with the chat template", "", false},
      {"prompts", {}, "FILE", "prompts, one per line, instead of --prompt"},
      {"input", {}, "FILE", "for translations: the same as --prompts"},
      {"samples", {"num-return-sequences"}, "N", "texts per prompt [1]"},
      {"stop",
       {},
       "TEXT",
       "stop before this text, in addition to the end token; can be repeated",
       "",
       true},
      {"output",
       {},
       "FILE",
       "write to this file instead of the screen: translations one per line, other texts as JSON "
       "lines with prompt and text"},
      {"overwrite", {}, "", "replace the file of --output where it exists", "", false},
      {"rows", {"batch-size"}, "N", "how many of several texts are written at a time [16]"},
      {"tokens", {"max-new-tokens"}, "N", "how many tokens to write at most [500]"},
      {"temperature",
       {},
       "NUMBER",
       "above 1 more random, below 1 less; 0: always the likeliest token [0.8; translations 0]"},
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
  out.options.tokens = 500;
  std::int64_t seed = 1;
  const auto read = [&](const char* name, auto* to) {
    const bool given = parsed.find(name) != nullptr;
    const std::string value = parsed.take_value(name);
    if (given && !problems.gather([&] { read_number(text("--", name), value, to); }))
      problems.refuse(name);
    return given;
  };
  const bool draws = [&] {
    const bool warm = out.warm = read("temperature", &out.options.temperature);
    const bool few = read("top-k", &out.options.top_k), share = read("top-p", &out.options.top_p);
    return warm || few || share;
  }();
  read("tokens", &out.options.tokens);
  const bool penalty = read("length-penalty", &out.options.length_penalty);
  read("beams", &out.options.beams);
  read("seed", &seed);
  if (read("samples", &out.samples) && (out.samples < 1 || out.samples > 1'000'000))
    problems.add(text("--samples is ", out.samples, "; it must be from 1 to 1000000"));
  out.stops = parsed.take_values("stop");
  if (std::ranges::count(out.stops, "") > 0)
    problems.add("--stop is empty; give a text that ends what is written, or leave it out");
  if (seed < 0)
    problems.add(text("--seed is ", seed, "; it must be a whole number of at least 0"), {"seed"});
  out.options.seed = static_cast<std::uint64_t>(seed);
  if (out.options.beams > 1 && draws)
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
  std::vector<std::string> paths = parsed.words;
  if (parsed.find("checkpoint") != nullptr) paths.push_back(parsed.take_value("checkpoint"));
  if (paths.size() == 1) {
    problems.gather([&] { out.checkpoint = model_folder(paths.front()); });
  } else {
    problems.add(paths.empty()
                     ? std::string("checkpoint is missing; give a run, a checkpoint or a folder of "
                                   "Hugging Face, like tessera sample runs/first")
                     : text("several checkpoints: ", join(paths), "; give one"));
  }
  read_texts(parsed, out);
  out.chat = parsed.take_switch("chat");
  const bool others = out.prompt_given || !out.texts_flag.empty() || !out.output.empty() ||
                      out.samples > 1 || out.options.beams > 1;
  if (out.chat && others)
    problems.add(
        "--chat reads prompts from standard input and draws an answer for each; leave "
        "--prompt, --prompts, --input, --output, --samples and --beams out");
  out.command.devices_given = parsed.find("devices") != nullptr;
  out.command.config = configure(parsed, problems, out.notices, families);
  return out;
}

/// Where a field's own help speaks of training.
constexpr std::pair<std::string_view, std::string_view> kHelpsOfWriting[] = {
    {"devices", "devices, each a rank with its own threads: the product of the next two [1]"},
    {"pipeline-model-parallel-size",
     "pipeline stages: the layers are cut into N parts, each on its own devices [1]"},
    {"f32-products",
     "how f32 matrices are multiplied: on tiles (amx), or by multiply-adds (fma); auto: the faster "
     "one on this machine, measured once"},
};

std::vector<Flag> sample_flags() {
  std::vector<Flag> out = own_flags();
  for (Flag& flag : field_flags()) {
    if (std::ranges::find(kDeviceFields, flag.name) == std::end(kDeviceFields)) continue;
    for (const auto& [name, help] : kHelpsOfWriting) {
      if (flag.name == name) flag.help = help;
    }
    out.push_back(std::move(flag));
  }
  return out;
}

}  // namespace tessera
