/// The flags of writer.h.

#include <algorithm>

#include "tessera/apps/model_names.h"
#include "tessera/apps/writer.h"
#include "tessera/base/text.h"
#include "tessera/config/fields.h"

namespace tessera {

namespace {

/// Where a field's own help speaks of training.
constexpr std::pair<std::string_view, std::string_view> kHelpsOfWriting[] = {
    {"devices", "devices, each a rank with its own threads: the product of the next two [1]"},
    {"pipeline-model-parallel-size",
     "pipeline stages: the layers are cut into N parts, each on its own devices [1]"},
    {"f32-products",
     "how f32 matrices are multiplied: on tiles (amx), or by multiply-adds (fma); auto: the faster "
     "one on this machine, measured once"},
};

template <typename Number>
bool take_number_of(ParsedFlags& parsed, const char* name, Problems& problems, Number* to) {
  const bool given = parsed.find(name) != nullptr;
  const std::string value = parsed.take_value(name);
  if (given && !problems.gather([&] { read_number(text("--", name), value, to); }))
    problems.refuse(name);
  return given;
}

}  // namespace

bool take_number(ParsedFlags& parsed, const char* name, Problems& problems, std::int64_t* to) {
  return take_number_of(parsed, name, problems, to);
}

bool take_number(ParsedFlags& parsed, const char* name, Problems& problems, double* to) {
  return take_number_of(parsed, name, problems, to);
}

Flag checkpoint_flag() {
  return {"checkpoint",
          {},
          "PATH",
          "a run (its newest checkpoint), a checkpoint or a folder of Hugging Face"};
}

std::string take_checkpoint(ParsedFlags& parsed, const std::string& example, Problems& problems) {
  std::vector<std::string> paths = parsed.words;
  if (parsed.find("checkpoint") != nullptr) paths.push_back(parsed.take_value("checkpoint"));
  std::string out;
  if (paths.size() == 1) {
    problems.gather([&] { out = model_folder(paths.front()); });
  } else {
    problems.add(paths.empty()
                     ? text("checkpoint is missing; give a run, a checkpoint or a folder of "
                            "Hugging Face, like ",
                            example)
                     : text("several checkpoints: ", join(paths), "; give one"));
  }
  return out;
}

Flag context_flag() {
  return {"context",
          {},
          "N",
          "most tokens of a dialogue or text, prompt and answer together, for which there is "
          "memory [the model's context]"};
}

std::int64_t take_context(ParsedFlags& parsed, Problems& problems) {
  std::int64_t out = 0;
  if (take_number(parsed, "context", problems, &out) && out < 1)
    problems.add(text("--context is ", out, "; it must be 1 or more"), {"context"});
  return std::max<std::int64_t>(out, 0);
}

void give_context(std::int64_t context, ModelConfig& model, TextWriting& writing,
                  Problems& problems) {
  if (context == 0) return;
  if (writing.source > 0)
    return problems.add(text("--context is for decoders, and family ", model.family,
                             " writes from a source; leave it out"));
  if (context > model.context)
    return problems.add(
        text("--context is ", context, ", the model's is ", model.context, "; give at most that"));
  limit_context(model, writing, context);
}

std::vector<Flag> drawing_flags() {
  return {
      {"stop",
       {},
       "TEXT",
       "stop before this text, in addition to the end token; can be repeated",
       "",
       true},
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
      {"seed", {}, "N", "seed of the random draws [1]"},
  };
}

Drawing take_drawing(ParsedFlags& parsed, Problems& problems) {
  Drawing out;
  out.options.tokens = 500;
  std::int64_t seed = 1;
  out.warm = take_number(parsed, "temperature", problems, &out.options.temperature);
  const bool few = take_number(parsed, "top-k", problems, &out.options.top_k);
  const bool share = take_number(parsed, "top-p", problems, &out.options.top_p);
  out.draws = out.warm || few || share;
  take_number(parsed, "tokens", problems, &out.options.tokens);
  take_number(parsed, "seed", problems, &seed);
  if (seed < 0)
    problems.add(text("--seed is ", seed, "; it must be a whole number of at least 0"), {"seed"});
  out.options.seed = static_cast<std::uint64_t>(seed);
  out.stops = parsed.take_values("stop");
  if (std::ranges::count(out.stops, "") > 0)
    problems.add("--stop is empty; give a text that ends what is written, or leave it out");
  return out;
}

std::vector<Flag> writing_device_flags() {
  std::vector<Flag> out;
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
