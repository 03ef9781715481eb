/// tessera export: a trained model as a folder from which Hugging Face's transformers loads it.

#include <charconv>

#include "tessera/apps/command.h"
#include "tessera/apps/commands_here.h"
#include "tessera/apps/export_model.h"
#include "tessera/apps/flags.h"
#include "tessera/apps/model_names.h"
#include "tessera/base/error.h"
#include "tessera/base/size.h"
#include "tessera/base/text.h"
#include "tessera/pretrained/pretrained_model.h"

namespace tessera {

namespace {

DType dtype_of_words(const std::string& word, Problems& problems) {
  for (const DType dtype : {DType::F32, DType::BF16, DType::F16}) {
    if (word == to_text(dtype)) return dtype;
  }
  problems.add(text("dtype is '", word, "'; it is f32, bf16 or f16"));
  return DType::F32;
}

/// Decimal units, as Hugging Face's: "500MB".
std::int64_t bytes_of_words(const std::string& word, Problems& problems) {
  std::int64_t count = 0;
  const char* end = word.data() + word.size();
  const auto [at, error] = std::from_chars(word.data(), end, count);
  const std::string unit(at, end);
  constexpr std::int64_t kMost = 1'000'000;
  for (const auto& [name, bytes] :
       {std::pair<const char*, std::int64_t>("MB", 1'000'000), {"GB", 1'000'000'000}}) {
    if (error == std::errc() && unit == name && count >= 1 && count <= kMost) return count * bytes;
  }
  problems.add(text("max-shard-size is '", word, "'; give a number and a unit, like 500MB or 5GB"));
  return 1;
}

ExportedModel written_model(const std::string& path, const std::string& output,
                            const SavePretrained& how, AdapterExport adapter,
                            const OwnFamilies& families) {
  if (const std::string folder = model_folder(path);
      adapter == AdapterExport::Merged && PretrainedModel::is_at(folder))
    return merge_adapter(folder, output, how);
  return export_model(path, output, how, adapter, families);
}

ExportedTo export_as_asked(ParsedFlags& parsed, AdapterExport adapter, Problems& problems,
                           const OwnFamilies& families) {
  const bool merges = adapter == AdapterExport::Merged;
  if (parsed.words.size() != 1)
    problems.add(text(merges ? "merge-adapter" : "export", " takes one PATH, not ",
                      parsed.words.size(), "; give the folder of a run or a checkpoint",
                      merges ? ", or that of an adapter" : ""));
  SavePretrained how;
  const std::string output = parsed.take_value("output");
  if (output.empty()) problems.add("output is missing; give a folder, like --output exported");
  how.overwrite = parsed.take_switch("overwrite");
  if (parsed.find("dtype") != nullptr)
    how.dtype = dtype_of_words(parsed.take_value("dtype"), problems);
  if (parsed.find("max-shard-size") != nullptr)
    how.most_file_bytes = bytes_of_words(parsed.take_value("max-shard-size"), problems);
  problems.raise();
  return {output, written_model(parsed.words.front(), output, how, adapter, families)};
}

void print_export_notices(const ExportedModel& written, Console& console) {
  if (!written.unwritten_tokens.empty())
    console.err << "notice: the model's tokens are " << written.unwritten_tokens
                << " of its training text, for which Hugging Face has no file: the folder has no "
                   "tokenizer. To continue training, give --init-from the run\n";
  if (const std::string notice = notice_of_left_out(written); !notice.empty())
    console.err << "notice: " << notice << "\n";
}

ExportedTo exported_here(const Arguments& arguments, AdapterExport adapter, Console& console,
                         const OwnFamilies& families) {
  Problems problems;
  ParsedFlags parsed = parse_flags(arguments, export_flags({}), problems);
  refuse_help(parsed.help);
  ExportedTo out = export_as_asked(parsed, adapter, problems, families);
  print_export_notices(out.model, console);
  return out;
}

}  // namespace

std::vector<Flag> export_flags(const OwnFamilies&) {
  return {
      {"output", {}, "FOLDER", "folder for config.json and the weights; made if it does not exist"},
      {"dtype", {}, "f32|bf16|f16", "dtype of the weights [f32]"},
      {"max-shard-size",
       {},
       "BYTES",
       "maximum bytes of tensors per file, like 500MB or 5GB; larger models get several files "
       "[5GB]"},
      {"overwrite", {}, "", "replace the files of an earlier export"},
  };
}

ExportedTo export_here(const Arguments& arguments, Console& console, const OwnFamilies& families) {
  return exported_here(arguments, AdapterExport::Apart, console, families);
}

ExportedTo merge_adapter_here(const Arguments& arguments, Console& console,
                              const OwnFamilies& families) {
  return exported_here(arguments, AdapterExport::Merged, console, families);
}

namespace {

int write_folder(const Arguments& arguments, Console& console, AdapterExport adapter,
                 std::string_view help, const OwnFamilies& families) {
  Problems problems;
  ParsedFlags parsed = parse_flags(arguments, export_flags({}), problems);
  if (parsed.help) {
    console.out << help << "\n\n" << flags_help(export_flags({}), console.columns);
    return 0;
  }
  const auto [folder, written] = export_as_asked(parsed, adapter, problems, families);
  console.out << "wrote " << (written.adapter ? "the adapter of " : "") << written.family;
  if (written.step > 0) console.out << " after step " << written.step;
  console.out << " to " << folder << "\n";
  print_export_notices(written, console);
  return 0;
}

}  // namespace

int export_command(const Arguments& arguments, Console& console, const OwnFamilies& families) {
  constexpr std::string_view kHelp =
      "tessera export PATH --output FOLDER [FLAG...]\n\n"
      "PATH is the folder of a run, or a checkpoint. Writes config.json and safetensors weights "
      "that\nHugging Face's transformers can load; of a run with --lora-rank, its adapter as PEFT "
      "can load it.";
  return write_folder(arguments, console, AdapterExport::Apart, kHelp, families);
}

int merge_adapter_command(const Arguments& arguments, Console& console,
                          const OwnFamilies& families) {
  constexpr std::string_view kHelp =
      "tessera merge-adapter PATH --output FOLDER [FLAG...]\n\n"
      "PATH is the folder of a run with --lora-rank, one of its checkpoints, or an adapter of "
      "PEFT.\nWrites the whole model, with what the adapter adds, as tessera export does.";
  return write_folder(arguments, console, AdapterExport::Merged, kHelp, families);
}

}  // namespace tessera
