#pragma once
/// The room `config`: what a run is: its fields, from flags, files, presets and checkpoints.
/// For: one row for each field, from which flag, TOML key, help and record come.
/// Not for: what follows from the data (train/run_data.h).
/// Rejected: stopping at the first mistake: everything that is wrong is gathered and told at once.
/// Changing a flag that was given: a search under a memory cap changes only what was left open.
///
/// The configuration of a run: one value, put together from defaults, a preset, a file and flags.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/checkpoint/checkpoint_names.h"
#include "tessera/config/problems.h"
#include "tessera/data/dialogue_choices.h"
#include "tessera/data/packing.h"
#include "tessera/device/isa.h"
#include "tessera/files/table_file.h"
#include "tessera/models/family.h"
#include "tessera/models/op_parallel_config.h"
#include "tessera/nn/optimizer.h"
#include "tessera/token_files/data_split.h"
#include "tessera/token_files/sampler.h"
#include "tessera/tokenizers/vocabulary.h"

namespace tessera {

/// What remote_device can be: nothing is told, main memory, a file in offload_folder.
inline constexpr std::string_view kRemoteNone = "none", kRemoteMemory = "cpu", kRemoteFile = "nvme";
/// What data_impl can be: names of Megatron-LM for the one way in which token files are read.
inline constexpr std::array<std::string_view, 2> kDataImpls = {"mmap", "infer"};
/// Floats in which gradients are added up (reduce_dtype). "auto": f16 in a run that computes in
/// f16, as in Megatron-LM, and f32 in any other.
inline constexpr std::array<std::string_view, 4> kSumDTypes = {"auto", "f32", "bf16", "f16"};
/// What f32_products can be. "auto": as in the checkpoint, or as measured on this machine.
inline constexpr std::array<std::string_view, 3> kF32ProductWords = {"auto", "amx", "fma"};
inline constexpr std::array<std::string_view, 3> kRemoteDevices = {kRemoteNone, kRemoteMemory,
                                                                   kRemoteFile};

/// What checkpoint_names can be, in the order of CheckpointNames.
inline constexpr std::array<std::string_view, 2> kCheckpointNames = {"step", "iter"};

/// What data with columns is: as the names of files say, or one of kTableFormats.
inline constexpr std::array<std::string_view, 4> kDataFormats = {
    "auto", kTableFormats[0], kTableFormats[1], kTableFormats[2]};

/// train/fields/ describes every field, once for flags, files, help and checkpoints.
struct RunConfig {
  OwnFamilies families;  // that --family can name beside the library's
  std::string preset;
  ModelConfig model = {.vocabulary = 0};         // vocabulary 0: as many as the data has
  OptimizerConfig optimizer;                     // decay_steps 0: as many as steps
  std::vector<std::string> freeze;               // paths of parameters that are not trained
  std::vector<std::string> no_weight_decay_for;  // paths of a group of the optimizer, its last one

  std::vector<std::string> data, valid_data;  // valid_data empty: held_out of data
  std::vector<std::string> test_data;         // empty: nothing is tested at the end
  /// Where the program's task makes samples itself, in place of `data`: a digest of them, by which
  /// a resumed run knows that they are the same. Empty: it does not.
  std::string program_data;
  VocabularyKind vocabulary = VocabularyKind::Characters;
  // TokenizerChoice; where one is chosen, vocabulary is Tokenizer
  std::string tokenizer, tokenizer_type = "auto", vocab_file, merge_file;
  std::int64_t vocab_extra_ids = 0;
  std::string text_column;       // of tables: documents, or sources; empty: data is texts
  std::string target_column;     // of tables: targets; empty: none
  std::string text_pair_column;  // of tables: second texts to classify; empty: none
  std::string negative_column;   // of tables: texts that do not belong to the first; empty: none
  std::string label_column;      // of tables: labels; empty: none
  std::string label_separator = ",";      // between several labels of a cell
  std::vector<std::string> column_names;  // of tables whose first row does not say them
  std::string data_format{kDataFormats[0]};
  bool skip_bad_rows = false;         // of tables: rows that do not fit are left out, however many
  std::string packing{kPackings[0]};  // of documents in tables
  bool stream = false;                // texts are read and encoded while the run trains
  std::int64_t shuffle_buffer = 4096, stream_offset = 0;  // samples, bytes
  std::string chat_loss{kDialogueLosses[0]}, long_dialogues{kLongDialogues[0]};
  std::string chat_date = "2024-07-26";
  std::string image_processor;  // as parse_image_processor reads it
  bool augment = true;          // of pictures in files
  std::string bucket_lengths;   // "32,64"; empty: none
  SampleOrder sample_order = SampleOrder::ShuffledWindows;
  double held_out = 0.1;
  std::string split{kUsualSplit};  // of token files: training, validation, test
  std::string data_cache;          // of token files: a folder; empty: beside them
  std::string data_impl = "mmap";  // of token files: how they are read
  std::int64_t eod_token = -1;     // of token files: what ends a document; -1: the tokenizer's
  bool eod_mask_loss = false;
  std::int64_t global_batch_size = 8;  // samples per step
  std::int64_t micro_batch_size = 0;   // samples at a time; 0: all of them

  std::string output;
  std::int64_t steps = 1000;  // attempts: skipped steps count
  std::int64_t epochs = 0;    // above 0: steps follow from the data, in prepare_run
  std::int64_t exit_interval = 0;
  std::int64_t save_every = 0, keep_last = 3;
  std::string checkpoint_names{kCheckpointNames[0]};
  bool background_save = true, keep_best = false;
  bool save_base = false;  // checkpoints of adapters hold the weights that these are of
  std::int64_t eval_every = 0, eval_iters = 0, eval_texts = 0;
  bool eval_at_end = true;
  std::int64_t sample_every = 0, sample_tokens = 200;
  std::int64_t log_every = 0;  // steps; 0: 10, or more where that is above 40 lines
  std::int64_t seed = 1;
  std::string resume = "none";    // none, auto, or a path
  std::string init_from;          // a path; empty: none
  bool init_from_config = false;  // of a folder of Hugging Face's: without its weights
  bool allow_changes = false;
  std::string dump_dir;
  std::string tensorboard_dir;  // a folder; empty: none
  std::string profile;          // a file; empty: none
  std::int64_t profile_steps = 3;

  bool bf16 = false, fp16 = false, mixed_precision = false;  // of forward and backward
  bool tf32 = false;                                         // of products in f32
  std::string reduce_dtype = "auto";                         // of sums of gradients

  std::string device = "cpu";  // kProcessors, or kPjrt and a plugin
  std::int64_t threads = 0;    // per device; 0: one per core, shared out
  std::string max_isa = "auto", pack_weights = "auto", f32_products = "auto";  // CpuChoices
  bool graph_optimization = true;     // all of Optimizations, or none
  bool amx = true;                    // false: at most the level below
  std::optional<CpuChoices> choices;  // what devices are made from, once it is known
  std::string f32_reason;  // why f32_products are so, where nobody asked for them; empty: unknown

  // micro_batches, repeat and what is sharded follow from other fields; machine is what commands
  // find by the next
  ParallelConfig parallel;
  std::string machine;             // a name or a file (find_machine); empty: nothing is known of it
  std::int64_t data_parallel = 0;  // devices that share out the batch; 0: all that are left to it
  std::int64_t distributed_timeout = 60;  // seconds without a sign of life of other ranks
  std::int64_t zero_stage = 0;
  bool zero1 = false, zero2 = false, zero3 = false, fsdp = false;
  std::string recompute_granularity = "elementwise";
  bool checkpoint_activations = false;
  bool offload_optimizer = false, offload_gradients = false, offload_parameters = false;
  bool offload_activations = false;
  std::string fsdp_gather = "block", cp_comm_type = "auto";
  std::string remote_device{kRemoteNone}, offload_folder;
  std::string memory_cap = "none";  // parse_memory_cap

  /// Names of fields that neither a preset nor a file nor a flag gave: a resumed run takes those of
  /// its model from the checkpoint. Of the data a preset gives nothing.
  std::set<std::string, std::less<>> defaulted;
  /// By name, what a flag said, or a file with another value than the default, as it was written:
  /// "--micro-batch-size 4". What a memory cap has chosen for an earlier run is among these, if
  /// that run's file is given.
  std::map<std::string, std::string, std::less<>> given;

  /// Per device: samples of a step over those that the data parallel devices compute at a time.
  std::int64_t micro_batches() const {
    const std::int64_t at_a_time = micro_batch_size * parallel.data();
    return at_a_time == 0 ? 1 : (global_batch_size + at_a_time - 1) / at_a_time;
  }
};

/// One statement about a field.
struct Setting {
  std::string key;                  // a field's name or alias, as the user wrote it
  std::vector<std::string> values;  // one, or several where the field is a list
  std::string source;               // for messages: "--steps", "steps in run.toml:3"
};

/// Defaults, then the preset, then the file, then the flags: the later wins. Unknown keys (with
/// the nearest names), bad values and flags that disagree become problems; a flag that overrules
/// the file becomes a notice. Where a flag leaves a field of the file without a meaning, as
/// remote-device none does offload-folder, the file says nothing of it.
RunConfig configure(const std::vector<Setting>& file, const std::vector<Setting>& flags,
                    Problems& problems, std::vector<std::string>& notices,
                    const OwnFamilies& families = {});

/// What is asked of tensor or context parallel devices in a run that has one. Of a plan that is yet to
/// be chosen it is not known.
void note_idle_parallelism(const RunConfig& config, std::vector<std::string>& notices);

/// Devices of a run: this machine's processors, or accelerators, with a plugin's name or file
/// behind it.
inline constexpr std::string_view kProcessors = "cpu", kPjrt = "pjrt:";
/// The plugin of such a device; empty: the device is this machine's processors.
std::string plugin_of(const RunConfig& config);

/// Sets what is derived from other fields: max_isa, pack_weights and f32_products (choices),
/// micro_batch_size, what the model's family derives (ModelFamily::complete), the optimizer's last
/// group (no_weight_decay_for), decay_steps (steps; a step more than the warm-up where that is
/// longer, so that a short trial of a long recipe runs its beginning).
void complete(RunConfig& config);
/// The steps of config.epochs passes over data of `samples` samples, where it has epochs;
/// decay_steps follow where `given` leaves them open.
void complete_epochs(RunConfig& config, const RunConfig& given, std::int64_t samples);

/// data_parallel x pipeline x tensor x context; 0 where data_parallel is left open.
std::int64_t parallel_parts(const RunConfig& config);

/// Sets what `parallel` says on so many devices: sizes, micro-batches of global_batch_size, what is
/// sharded and computed again. Errors: Fault::Usage: as of TransformerOpParallelConfig::on; a
/// global batch that data_parallel x micro_batch_num does not divide.
void set_parallel(RunConfig& config, const TransformerOpParallelConfig& parallel,
                  std::int64_t devices);

/// The lengths of buckets, the last that of the whole context; empty: there are none. Errors:
/// Fault::Usage: no lengths, or one above the context.
std::vector<std::int64_t> bucket_lengths(const RunConfig& config);

/// What the fields say of a machine that could take `machine`.
/// Errors: Fault::Usage: an instruction set that it lacks; fields that disagree; no such value.
CpuChoices choices_of(const RunConfig& config, const CpuChoices& machine);

/// Everything that can be known to be wrong without reading a file, but for consequences of a value
/// that was refused already (Problems::refuse). `config` is complete.
void find_problems(const RunConfig& config, Problems& problems);

/// What vocabulary to make of the data. A size that leaves no room for the bytes is a problem that
/// find_problems tells.
VocabularyChoice vocabulary_choice(const RunConfig& config);
TokenizerChoice tokenizer_choice(const RunConfig& config);
CheckpointNames checkpoint_names(const RunConfig& config);

/// Every field by name, as text: what checkpoints record.
std::map<std::string, std::string> record_of(const RunConfig& config);
/// Reads a record; fields that it lacks keep their defaults, names that it alone knows are passed
/// over. Errors: Fault::Checkpoint: a value that the field refuses; `where` names the file.
RunConfig config_of(const std::map<std::string, std::string>& record, const std::string& where,
                    const OwnFamilies& families = {});
/// The same over what `base` says: what is no field stays, as a program has set it.
RunConfig config_over(RunConfig base, const std::map<std::string, std::string>& record,
                      const std::string& where);

/// A TOML file that makes this run again.
std::string to_toml(const RunConfig& config);

}  // namespace tessera
