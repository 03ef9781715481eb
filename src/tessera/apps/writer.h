#pragma once
/// The model that the commands sample, chat and serve write with: found at a path, on its devices.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tessera/apps/flags.h"
#include "tessera/launch/ranks.h"
#include "tessera/models/task.h"
#include "tessera/train/evaluation.h"
#include "tessera/train/generate.h"
#include "tessera/train/text_model.h"

namespace tessera {

/// What rank 0 opens.
struct Writer {
  Evaluation model;
  TextWriting writing;
};

/// The model at a path, on the machine of `config`, which then is the model's. Errors, some of them
/// as `problems`: of opening it; a model that writes no text; a mesh that it cannot have.
Writer open_writer(const std::string& path, RunConfig& config, Problems& problems);

/// The caches have room for so many tokens: prompt and text are no longer. A folder's context is as
/// long as the longest text that it was trained for.
void limit_context(ModelConfig& model, TextWriting& writing, std::int64_t context);

/// What to write, as one of these commands was asked.
struct WritingWords {
  const RanksCommand* command = nullptr;
  std::string path, words;  // "runs/first", "tessera sample"
};

/// What all ranks compile.
struct WritingRun {
  RunConfig config;
  std::int64_t texts = 1;  // that are written at a time
};

/// `open` is called on rank 0 alone: as of find_run().
WritingRun find_writing(
    Communicator* launched, const WritingWords& asked,
    const std::function<std::int64_t(RunConfig& config, Problems& problems)>& open);

/// Loads the model on all ranks, and calls `body` on rank 0, which has the `writer`. `fewer`: what
/// to lower for want of memory, beside threads and devices; empty: nothing.
void write_on_ranks(const WritingRun& run, const WritingWords& asked, const std::string& fewer,
                    Communicator* launched, Console& console, const std::optional<Writer>& writer,
                    const std::function<void(TextModel& model, RankGroup& group)>& body);

/// Flags that these commands share. The path of the model:
Flag checkpoint_flag();
/// ... which may also be a word. `example`: "tessera sample runs/first".
std::string take_checkpoint(ParsedFlags& parsed, const std::string& example, Problems& problems);
/// --context of a command whose prompts are not known when it starts; 0: it is not given.
Flag context_flag();
std::int64_t take_context(ParsedFlags& parsed, Problems& problems);
/// Errors, as problems: more than the model's; a model that writes from a source.
void give_context(std::int64_t context, ModelConfig& model, TextWriting& writing,
                  Problems& problems);
/// kDeviceFields.
std::vector<Flag> writing_device_flags();

/// How tokens are drawn, and what ends a text.
struct Drawing {
  GenerateOptions options;
  std::vector<std::string> stops;
  bool warm = false, draws = false;  // --temperature was given; or another flag about draws
};
std::vector<Flag> drawing_flags();
/// Numbers out of range are left to problems(GenerateOptions), but for the seed.
Drawing take_drawing(ParsedFlags& parsed, Problems& problems);
/// Reads the number of a flag, if it is given, which is returned.
bool take_number(ParsedFlags& parsed, const char* name, Problems& problems, std::int64_t* to);
bool take_number(ParsedFlags& parsed, const char* name, Problems& problems, double* to);

}  // namespace tessera
