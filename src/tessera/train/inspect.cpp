#include "tessera/train/inspect.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/file.h"
#include "tessera/data/safetensors.h"
#include "tessera/train/checkpoint.h"
#include "tessera/train/checkpoint_folder.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

/// Two columns or more, aligned; each row begins with two blanks.
using Rows = std::vector<std::vector<std::string>>;
std::string table(const Rows& rows);

std::string describe_checkpoints(const std::vector<std::string>& paths);
std::string describe_checkpoint(const Checkpoint& checkpoint);
std::string describe_safetensors(const std::string& path);
void refuse_pickle(const std::string& path);

std::string_view to_text(Role role) {
  return role == Role::Parameter ? "parameter" : role == Role::Moment ? "moment" : "counter";
}

}  // namespace

std::string describe(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return describe_checkpoints(find_checkpoints(path));
  if (!fs::exists(path, ignored))
    fail(Fault::Checkpoint, "nothing at '", path, "'", near_files(path));
  refuse_pickle(path);
  return describe_safetensors(path);
}

namespace {

/// Of several, a line each, and the newest in full.
std::string describe_checkpoints(const std::vector<std::string>& paths) {
  std::string out;
  if (paths.size() > 1) {
    Rows rows;
    for (const std::string& path : paths) {
      std::string state = "damaged, see --verify";
      try {
        const Checkpoint checkpoint = Checkpoint::open(path);
        state = text("step ", grouped(checkpoint.record().step), ", ",
                     grouped(checkpoint.record().samples), " samples");
      } catch (const Error&) {  // this line says that it does not open, opening it alone says why
      }
      rows.push_back({fs::path(path).filename().string(), state});
    }
    out = text(paths.size(), " checkpoints, oldest first\n", table(rows), "\n");
  }
  return out + describe_checkpoint(Checkpoint::open(paths.back()));
}

std::string describe_checkpoint(const Checkpoint& checkpoint) {
  Rows tensors, texts;
  std::int64_t bytes = 0, parameters = 0;
  for (const TensorEntry& tensor : checkpoint.tensors()) {
    bytes += tensor.type.bytes();
    if (tensor.role == Role::Parameter) parameters += tensor.type.numel();
    tensors.push_back(
        {tensor.name, tessera::to_text(tensor.type), std::string(to_text(tensor.role))});
  }
  for (const auto& [key, value] : checkpoint.record().texts) {
    const bool line = !value.empty() && value.size() <= 60 && value.find('\n') == value.npos;
    texts.push_back({key, line ? value : bytes_text(static_cast<std::int64_t>(value.size()))});
  }
  return text("checkpoint ", checkpoint.path(), "\n",
              table({{"step", grouped(checkpoint.record().step)},
                     {"samples", grouped(checkpoint.record().samples)},
                     {"parameters", grouped(parameters)},
                     {"tensors", text(tensors.size(), ", ", bytes_text(bytes))}}),
              table(texts), "\n", table(tensors));
}

std::string describe_safetensors(const std::string& path) {
  const SafetensorsFile file(path);
  Rows tensors, metadata;
  std::int64_t bytes = 0, numel = 0;
  std::vector<StoredTensor> sorted = file.tensors();
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  for (const StoredTensor& tensor : sorted) {
    bytes += tensor.bytes();
    numel += tensor.type.numel();
    tensors.push_back({tensor.name, tessera::to_text(tensor.type), bytes_text(tensor.bytes())});
  }
  for (const auto& [key, value] : file.metadata()) metadata.push_back({key, value});
  return text("safetensors file ", path, "\n",
              table({{"tensors", text(tensors.size(), ", ", bytes_text(bytes))},
                     {"elements", grouped(numel)}}),
              table(metadata), "\n", table(tensors));
}

/// A pickle is a program; it is recognised by its first bytes and not read further.
void refuse_pickle(const std::string& path) {
  const InputFile file(path, Fault::Checkpoint);
  std::string begin(8, '\0');
  if (file.size() < static_cast<std::int64_t>(begin.size())) return;
  file.read(0, std::as_writable_bytes(std::span(begin)));
  // A safetensors file begins with the length of its header, whose upper half is zero.
  const bool zip = begin.starts_with("PK\3\4");
  const bool pickle = begin[0] == '\x80' && begin[1] >= 2 && begin[1] <= 5 &&
                      begin.substr(4) != std::string(4, '\0');
  if (!zip && !pickle) return;
  fail(Fault::Checkpoint, "'", path,
       "' looks like a PyTorch pickle, which can run code when it is loaded, so it is not read; "
       "convert it to safetensors where you trust it");
}

std::string table(const Rows& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      out += "  " + row[i];
      if (i + 1 < row.size()) out.append(widths[i] - row[i].size(), ' ');
    }
    out += "\n";
  }
  return out;
}

}  // namespace

}  // namespace tessera
