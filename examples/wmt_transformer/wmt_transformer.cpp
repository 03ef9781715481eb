/// MindSpore's tutorial of distributed Transformers (its train.py): French to English, from the
/// files that `tessera prepare wmt14` writes. README.md says how to run it.
///
///   bash run.sh /path/wmt14.fr_en.txt 8           eight processes, as the tutorial starts them
///   wmt_transformer --file_path F --devices 8     eight threads of this process
///   wmt_transformer --train=false --file_path F   translates the lines of F

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "monitors.h"
#include "net.h"
#include "tessera/tessera.h"

namespace {

using namespace tessera;

/// The flags of the tutorial, with defaults for two cores; and those below "more".
struct Flags {
  bool distribute = false;  // one rank of several processes
  std::int64_t mp = 1, pipeline_stage = 1, micro_batch_num = 1;
  std::string file_path;  // pairs; with --train=false: sources
  std::int64_t batch_size = 32, src_len = 64, tgt_len = 64;
  std::int64_t d_model = 128, encoder_layer = 2, decoder_layer = 2, vocab_size = 4000;
  double lr = 1e-3;
  bool train = true;
  bool vocab_emb_dp = true, optimizer_shard = false, recompute = false;
  // more
  std::int64_t dp = 0;       // 0: devices / mp / pipeline_stage
  std::int64_t devices = 1;  // threads, where no process was launched for each
  std::int64_t epochs = 1, steps = 0;
  double held_out = 0.05;  // of the pairs, the last ones
  std::int64_t eval_steps = 0, bleu_texts = 20;
  std::int64_t save_checkpoint_steps = 1, keep_checkpoint_max = 4;
  std::string checkpoint = "test";  // the run's folder
  bool recover = false;             // go on from its newest checkpoint
  std::string translations;         // with --train=false: a file for them
};

struct Flag {
  const char* name;
  std::variant<bool Flags::*, std::int64_t Flags::*, double Flags::*, std::string Flags::*> value;
  const char* help;
  std::int64_t least = 0;  // of a whole number
};

constexpr Flag kFlags[] = {
    {"distribute", &Flags::distribute, "this process is one of several, which were launched"},
    {"mp", &Flags::mp, "model parallel: devices that share heads, hidden widths and vocabulary", 1},
    {"pipeline_stage", &Flags::pipeline_stage, "stages into which the layers are cut", 1},
    {"micro_batch_num", &Flags::micro_batch_num, "parts of a batch, computed one after another", 1},
    {"file_path", &Flags::file_path, "wmt14.fr_en.txt; with --train=false, lines to translate"},
    {"batch_size", &Flags::batch_size, "pairs in a step, of all devices together", 1},
    {"src_len", &Flags::src_len, "most tokens of a source; longer pairs are left out", 1},
    {"tgt_len", &Flags::tgt_len, "most tokens of a target; longer pairs are left out", 1},
    {"d_model", &Flags::d_model, "width; a multiple of 8, the number of heads", 1},
    {"encoder_layer", &Flags::encoder_layer, "layers of the encoder", 1},
    {"decoder_layer", &Flags::decoder_layer, "layers of the decoder", 1},
    {"vocab_size", &Flags::vocab_size, "tokens, learned from the text", 1},
    {"lr", &Flags::lr, "learning rate"},
    {"train", &Flags::train, "false: translate"},
    {"vocab_emb_dp", &Flags::vocab_emb_dp, "false: mp devices share the rows of embeddings"},
    {"optimizer_shard", &Flags::optimizer_shard, "dp devices share parameters and moments"},
    {"recompute", &Flags::recompute, "backward computes the layers again"},
    {"dp", &Flags::dp, "data parallel: devices that share a batch; 0: devices / mp / stages"},
    {"devices", &Flags::devices, "threads as devices, where --distribute is false", 1},
    {"epochs", &Flags::epochs, "passes over the pairs", 1},
    {"steps", &Flags::steps, "steps in all, in place of epochs; 0: by epochs"},
    {"held_out", &Flags::held_out, "share of the pairs that is kept to measure by"},
    {"eval_steps", &Flags::eval_steps, "steps between measurements; 0: at the end alone"},
    {"bleu_texts", &Flags::bleu_texts, "held-out sentences that are translated, for BLEU"},
    {"save_checkpoint_steps", &Flags::save_checkpoint_steps,
     "steps between checkpoints; 0: at the end alone"},
    {"keep_checkpoint_max", &Flags::keep_checkpoint_max, "checkpoints that are kept; 0: all"},
    {"checkpoint", &Flags::checkpoint, "the folder of the run"},
    {"recover", &Flags::recover,
     "go on from the run's newest checkpoint; begin where there is none"},
    {"translations", &Flags::translations, "with --train=false: the file for them"},
};

std::string help() {
  std::string out = "wmt_transformer --file_path FILE [--FLAG VALUE...]\n\n";
  for (const Flag& flag : kFlags) {
    std::string line = text("  --", flag.name);
    line.resize(28, ' ');
    out += line + flag.help + "\n";
  }
  return out;
}

template <typename T>
T number(const std::string& name, const std::string& value) {
  T out{};
  const char* const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, out);
  require(error != std::errc::result_out_of_range, "--", name, " is '", value,
          "'; numbers of that size do not fit");
  require(error == std::errc() && stop == end, "--", name, " is '", value, "'; it must be a ",
          std::is_integral_v<T> ? "whole number" : "number");
  return out;
}

void set(Flags& flags, const Flag& flag, const std::string& value) {
  const std::string name = flag.name;
  if (const auto* field = std::get_if<bool Flags::*>(&flag.value)) {
    require(value == "true" || value == "false", "--", name, " is '", value,
            "'; it must be true or false");
    flags.** field = value == "true";
  } else if (const auto* count = std::get_if<std::int64_t Flags::*>(&flag.value)) {
    flags.** count = number<std::int64_t>(name, value);
    require(flags.**count >= flag.least, "--", name, " is ", value, "; it must be at least ",
            flag.least);
  } else if (const auto* real = std::get_if<double Flags::*>(&flag.value)) {
    flags.** real = number<double>(name, value);
  } else {
    flags.*std::get<std::string Flags::*>(flag.value) = value;
  }
}

/// `--name value`, `--name=value`, and `--name` of a switch. The last of a name counts, so that
/// scripts can have flags of their own before those of their user.
Flags parse(const std::vector<std::string>& words) {
  Flags out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    require(word.starts_with("--"), "unexpected '", word, "'; flags begin with --");
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string name = word.substr(2, equals - 2);
    const auto* flag = std::ranges::find(kFlags, name, &Flag::name);
    require(flag != std::end(kFlags), "unknown flag --", name, "\n", help());
    const bool is_switch = std::holds_alternative<bool Flags::*>(flag->value);
    if (equals < word.size()) {
      set(out, *flag, word.substr(equals + 1));
    } else if (is_switch && (i + 1 == words.size() || words[i + 1].starts_with("--"))) {
      set(out, *flag, "true");
    } else {
      require(i + 1 < words.size(), "--", name, " has no value");
      set(out, *flag, words[++i]);
    }
  }
  require(!out.file_path.empty(), "--file_path is missing; it is the file ",
          out.train ? "wmt14.fr_en.txt that `tessera prepare wmt14` writes"
                    : "with lines to translate");
  require(!out.checkpoint.empty(), "--checkpoint is empty; give the folder of the run");
  require(!out.train || out.translations.empty(),
          "--translations is of --train=false; give both, or leave it out");
  return out;
}

ModelConfig model_of(const Flags& flags) {
  ModelConfig out = published(wmt::kWmt);
  out.layers = flags.encoder_layer, out.decoder_layers = flags.decoder_layer;
  out.heads = 8;
  out.width = out.ffn_width = flags.d_model;
  out.source_context = flags.src_len, out.context = flags.tgt_len;
  out.dropout = 0.1;
  out.vocabulary = flags.vocab_size;
  return out;
}

RunConfig run_of(const Flags& flags, std::int64_t devices) {
  RunConfig out;
  out.families = {&wmt::kWmt};
  out.model = model_of(flags);
  out.data = {flags.file_path};
  out.vocabulary = VocabularyKind::Bpe;
  out.held_out = flags.held_out;
  out.eval_every = flags.eval_steps;
  out.eval_texts = flags.held_out > 0 ? flags.bleu_texts : 0;
  out.output = flags.checkpoint;
  out.global_batch_size = flags.batch_size;
  out.epochs = flags.steps > 0 ? 0 : flags.epochs;
  if (flags.steps > 0) out.steps = flags.steps;

  // [optimizer]
  out.optimizer.kind = OptimizerKind::AdamWeightDecay;
  out.optimizer.eps = 1e-6;
  out.optimizer.weight_decay = 0.1;  // none for norms and biases
  out.optimizer.schedule = {.kind = ScheduleKind::Constant, .lr = flags.lr};
  // [end]

  // [checkpoints]
  out.save_every = flags.save_checkpoint_steps;
  out.keep_last = flags.keep_checkpoint_max;
  out.resume = flags.recover ? "auto" : "none";
  // [end]

  // [parallel]
  TransformerOpParallelConfig parallel;
  parallel.model_parallel = flags.mp;
  parallel.pipeline_stage = flags.pipeline_stage;
  parallel.micro_batch_num = flags.micro_batch_num;
  parallel.optimizer_shard = flags.optimizer_shard;
  parallel.recompute = flags.recompute;
  parallel.vocab_emb_dp = flags.vocab_emb_dp;
  parallel.data_parallel =
      flags.dp > 0 ? flags.dp
                   : std::max<std::int64_t>(1, devices / flags.mp / flags.pipeline_stage);
  set_parallel(out, parallel, devices);
  // [end]
  return out;
}

/// Those that were launched, or threads.
std::int64_t devices_of(const Flags& flags) {
  const Launched launched = launched_as(flags.devices == 1 ? 0 : flags.devices);
  const bool alone = launched.how == Launched::Alone;
  require(flags.distribute || alone, "this process is one of ", launched.size, " ranks, as ",
          launched.who, " say; give --distribute=true, or unset them");
  require(!flags.distribute || !alone,
          "--distribute=true, but nothing says which rank this process is; start it by run.sh, "
          "mpirun, torchrun or srun, or give --devices N in its place for N threads");
  // Some launchers of MPI tell the size to MPI alone.
  require(alone || launched.size > 0 || flags.devices > 1,
          "the launcher does not say how many ranks there are; give their number as --devices N");
  return alone || launched.size <= 0 ? flags.devices : launched.size;
}

int run(const Flags& flags, Console& console) {
  if (!flags.train) {
    require(flags.translations.empty() || !std::filesystem::exists(flags.translations),
            "--translations '", flags.translations, "' exists; give another file, or remove it");
    Arguments arguments = {"sample", flags.checkpoint, "--input", flags.file_path};
    if (!flags.translations.empty())
      arguments.insert(arguments.end(), {"--output", flags.translations});
    return run_command(arguments, console, {&wmt::kWmt});
  }
  const std::int64_t devices = devices_of(flags);
  // No rank writes there before all have met, so all of them find the same.
  const std::vector<std::string> traces = traces_of_run(flags.checkpoint);
  require(flags.recover || traces.empty(), "--checkpoint '", flags.checkpoint,
          "' holds another run (", join(traces),
          "); go on with it by --recover=true, or give another folder");
  const RunConfig config = run_of(flags, devices);
  std::printf("device_num is %lld, dp is %lld\n", static_cast<long long>(devices),
              static_cast<long long>(config.data_parallel));
  wmt::LossMonitor losses;
  wmt::TimeMonitor times;
  return run_training(config, console, {&losses, &times});
}

}  // namespace

int main(int count, char** values) {
  return main_of([&](Console& console) {
    const std::vector<std::string> words(values + 1, values + count);
    if (std::ranges::find(words, "--help") != words.end()) {
      console.out << help();
      return 0;
    }
    return run(parse(words), console);
  });
}
