#include "tessera/report/inspect.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/checkpoint/checkpoint.h"
#include "tessera/checkpoint/checkpoint_folder.h"
#include "tessera/config/recorded.h"
#include "tessera/files/file.h"
#include "tessera/files/safetensors.h"
#include "tessera/ir/builder.h"
#include "tessera/ir/graph_words.h"
#include "tessera/ir/parse.h"
#include "tessera/ops/table.h"
#include "tessera/pretrained/pretrained_model.h"
#include "tessera/report/inspect_pretrained.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

using InspectJson = nlohmann::ordered_json;

/// Two columns or more, aligned; each row begins with two blanks.
using Rows = std::vector<std::vector<std::string>>;
std::string table(const Rows& rows);

Inspection inspect_checkpoints(const std::vector<std::string>& paths, const CheckpointJudge& judge);
/// `list`: what stands before it, of several.
Inspection inspect_checkpoint(const Checkpoint& checkpoint, const std::string& list = "",
                              const InspectJson& list_json = {});
std::vector<std::string> checkpoints_at(const std::string& folder);
Inspection inspect_safetensors(const std::string& path);
Inspection inspect_graph(const std::string& path);
/// The first bytes of a file, as many as there are.
std::string first_bytes(const std::string& path);
void refuse_pickle(const std::string& path);
bool is_text(const std::string& path);

std::string gflop_text(double flops) {
  std::array<char, 40> out;
  std::snprintf(out.data(), out.size(), "%.3g GFLOP", flops * 1e-9);
  return out.data();
}

Inspection inspection_of(std::string text, const InspectJson& json) {
  return {std::move(text), json.dump(-1, ' ', false, InspectJson::error_handler_t::replace)};
}

InspectJson json_of(const std::string& name, const TensorType& type) {
  return {{"name", name},
          {"dtype", to_text(type.dtype)},
          {"shape", std::vector(type.shape.begin(), type.shape.end())}};
}

/// A name as a file has it, for a row of a table.
std::string one_line(std::string_view name) {
  std::string out = printable(name);
  for (std::size_t at = 0; (at = out.find_first_of("\n\t", at)) != out.npos; at += 2)
    out.replace(at, 1, out[at] == '\n' ? "\\n" : "\\t");
  return out;
}

}  // namespace

Inspection inspect(const std::string& path, const CheckpointJudge& judge) {
  std::error_code ignored;
  if (PretrainedModel::is_at(path)) return inspect_pretrained(path);
  if (fs::is_directory(path, ignored)) return inspect_checkpoints(checkpoints_at(path), judge);
  if (fs::status(path, ignored).type() == fs::file_type::not_found)
    fail(Fault::Checkpoint, "nothing at '", path, "'", near_files(path));
  refuse_pickle(path);
  return is_text(path) ? inspect_graph(path) : inspect_safetensors(path);
}

namespace {

/// Why `what` fails for a checkpoint, in one line; empty: it does not.
template <typename What>
std::string refusal_of(const What& what) {
  try {
    what();
    return "";
  } catch (const Error& error) {
    if (error.fault() != Fault::Checkpoint) throw;
    const std::string why = error.what();
    return why.substr(0, why.find('\n'));
  }
}

/// Errors: those of find_checkpoints, or of a folder of others by what it is.
std::vector<std::string> checkpoints_at(const std::string& folder) {
  try {
    return find_checkpoints(folder);
  } catch (const Error&) {
    PretrainedModel::refuse_other(folder);
    throw;
  }
}

/// Of several, a line each, and in full the newest of those that are neither damaged nor refused.
Inspection inspect_checkpoints(const std::vector<std::string>& paths,
                               const CheckpointJudge& judge) {
  if (paths.size() == 1) {
    const Checkpoint checkpoint = Checkpoint::open(paths.front());
    if (judge) judge(checkpoint);
    return inspect_checkpoint(checkpoint);
  }
  Rows rows;
  InspectJson list_json;
  std::optional<Checkpoint> newest;
  std::vector<std::string> unfit;         // those that are newer
  bool damaged = false, refused = false;  // among all
  for (const std::string& path : paths) {
    const std::string name = fs::path(path).filename().string();
    std::optional<Checkpoint> checkpoint;
    const std::string damage = refusal_of([&] { checkpoint.emplace(Checkpoint::open(path)); });
    const std::string refusal =
        damage.empty() && judge ? refusal_of([&] { judge(*checkpoint); }) : "";
    damaged = damaged || !damage.empty(), refused = refused || !refusal.empty();
    if (!damage.empty() || !refusal.empty()) {
      rows.push_back({name, damage.empty() ? "refused: " + refusal : "damaged: " + damage});
      unfit.push_back(name);
      list_json.push_back(
          {{"name", name},
           {damage.empty() ? "refused" : "damaged", damage.empty() ? refusal : damage}});
      continue;
    }
    list_json.push_back({{"name", name},
                         {"step", checkpoint->record().step},
                         {"samples", checkpoint->record().samples}});
    rows.push_back({name, text("step ", grouped(checkpoint->record().step), ", ",
                               grouped(checkpoint->record().samples), " samples")});
    newest.emplace(std::move(*checkpoint));
    unfit.clear();
  }
  const std::string list = text(paths.size(), " checkpoints, oldest first\n", table(rows), "\n");
  const char* const how = damaged && refused ? "damaged or refused"
                          : damaged          ? "damaged"
                                             : "refused";
  if (!newest)
    fail(Fault::Checkpoint, "all checkpoints are ", how, damaged ? "; restore one from a copy" : "",
         "\n", list);
  const std::string remark =
      unfit.empty() ? ""
                    : text(join(unfit), unfit.size() == 1 ? " is " : " are ", how,
                           "; this is the newest that is not (--verify reads every byte):\n\n");
  return inspect_checkpoint(*newest, list + remark, list_json);
}

/// Where the weights lie that an adapter is of (kRecordedBase).
std::string folder_of_base(const std::string& recorded) {
  const InspectJson json = InspectJson::parse(recorded, nullptr, /*allow_exceptions=*/false);
  return json.is_object() && json.contains("path") && json["path"].is_string()
             ? json["path"].get<std::string>()
             : "of a form that is not known here";
}

Inspection inspect_checkpoint(const Checkpoint& checkpoint, const std::string& list,
                              const InspectJson& list_json) {
  Rows tensors, texts;
  InspectJson json = {{"kind", "checkpoint"},
                      {"path", checkpoint.path()},
                      {"step", checkpoint.record().step},
                      {"samples", checkpoint.record().samples}};
  InspectJson of_tensors = InspectJson::array();
  std::int64_t bytes = 0, parameters = 0;
  for (const TensorEntry& tensor : checkpoint.tensors()) {
    bytes += tensor.type.bytes();
    if (tensor.role == Role::Parameter) parameters += tensor.type.numel();
    of_tensors.push_back(json_of(tensor.name, tensor.type));
    of_tensors.back()["role"] = role_text(tensor.role);
    tensors.push_back(
        {one_line(tensor.name), to_text(tensor.type), std::string(role_text(tensor.role))});
  }
  for (const auto& [key, value] : checkpoint.record().texts) {
    if (key == kRecordedBase) {
      texts.push_back({key, one_line(folder_of_base(value))});
      continue;
    }
    const bool line = !value.empty() && value.size() <= 60 && value.find('\n') == value.npos;
    texts.push_back(
        {one_line(key), line ? value : bytes_text(static_cast<std::int64_t>(value.size()))});
  }
  json["parameters"] = parameters;
  json["bytes"] = bytes;
  json["texts"] = checkpoint.record().texts;
  json["tensors"] = std::move(of_tensors);
  if (!list.empty()) json["checkpoints"] = list_json;
  return inspection_of(text(list, "checkpoint ", checkpoint.path(), "\n",
                            table({{"step", grouped(checkpoint.record().step)},
                                   {"samples", grouped(checkpoint.record().samples)},
                                   {"parameters", grouped(parameters)},
                                   {"tensors", text(tensors.size(), ", ", bytes_text(bytes))}}),
                            table(texts), "\n", table(tensors)),
                       json);
}

Inspection inspect_safetensors(const std::string& path) {
  const SafetensorsFile file(path);
  Rows tensors, metadata;
  InspectJson of_tensors = InspectJson::array();
  std::int64_t bytes = 0, numel = 0;
  std::vector<StoredTensor> sorted = file.tensors();
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  for (const StoredTensor& tensor : sorted) {
    bytes += tensor.bytes();
    numel += tensor.type.numel();
    of_tensors.push_back(json_of(tensor.name, tensor.type));
    tensors.push_back(
        {one_line(tensor.name), tessera::to_text(tensor.type), bytes_text(tensor.bytes())});
  }
  for (const auto& [key, value] : file.metadata())
    metadata.push_back({one_line(key), one_line(value)});
  const InspectJson json = {{"kind", "safetensors"},       {"path", path},
                            {"elements", numel},           {"bytes", bytes},
                            {"metadata", file.metadata()}, {"tensors", of_tensors}};
  return inspection_of(text("safetensors file ", path, "\n",
                            table({{"tensors", text(tensors.size(), ", ", bytes_text(bytes))},
                                   {"elements", grouped(numel)}}),
                            table(metadata), "\n", table(tensors)),
                       json);
}

/// What it takes, what it gives, and how often it does what.
Inspection inspect_graph(const std::string& path) {
  Graph graph;
  try {
    graph = parse_graph(read_file(path, Fault::Checkpoint), find_op);
  } catch (const Error& error) {
    fail(Fault::Checkpoint, "'", path,
         "' is neither a safetensors file nor a graph that can be read: ", error.what());
  }
  Rows inputs, ops;
  InspectJson batch = InspectJson::array(), metrics = batch, of_ops = batch;
  std::map<std::string_view, std::pair<std::int64_t, double>> of_op;  // calls, flops
  double flops = 0;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const OpDef& op = *graph.node(id).op;
    const OpCall call = graph.call(id);
    auto& [calls, work] = of_op[op.name];
    ++calls;
    const double more = op.flops == nullptr ? 0 : op.flops(call);
    work += more;
    flops += more;
    if (&op == &kBatch) {
      batch.push_back(json_of(call.string("name"), graph.node(id).type()));
      inputs.push_back({"batch", call.string("name"), tessera::to_text(graph.node(id).type())});
    }
  }
  std::int64_t state_bytes = 0;
  for (const State& state : graph.states()) state_bytes += graph.type(state.value).bytes();
  for (const Output& output : graph.outputs()) {
    if (output.kind != Output::Kind::Metric) continue;
    metrics.push_back(json_of(output.name, graph.type(output.value)));
    inputs.push_back({"metric", output.name, tessera::to_text(graph.type(output.value))});
  }
  for (const auto& [name, use] : of_op) {
    of_ops.push_back({{"name", name}, {"nodes", use.first}, {"flops", use.second}});
    ops.push_back({std::string(name), grouped(use.first), gflop_text(use.second)});
  }
  const std::string form(graph_words::kForms[static_cast<std::size_t>(graph.form())]);
  const InspectJson json = {{"kind", "graph"},
                            {"path", path},
                            {"form", form},
                            {"nodes", graph.size()},
                            {"states", graph.states().size()},
                            {"state_bytes", state_bytes},
                            {"flops", flops},
                            {"batch", batch},
                            {"metrics", metrics},
                            {"ops", of_ops}};
  return inspection_of(
      text("graph ", path, "\n",
           table({{"form", form},
                  {"nodes", grouped(graph.size())},
                  {"states", text(graph.states().size(), ", ", bytes_text(state_bytes))},
                  {"work", gflop_text(flops)}}),
           table(inputs), "\n", table(ops)),
      json);
}

/// A pickle is a program; it is recognised by its first bytes and not read further.
void refuse_pickle(const std::string& path) {
  const std::string begin = first_bytes(path);
  if (begin.size() < 8) return;
  // A safetensors file begins with the length of its header, whose upper half is zero.
  const bool zip = begin.starts_with("PK\3\4");
  const bool pickle = begin[0] == '\x80' && begin[1] >= 2 && begin[1] <= 5 &&
                      begin.substr(4) != std::string(4, '\0');
  if (!zip && !pickle) return;
  fail(Fault::Checkpoint, "'", path,
       "' looks like a PyTorch pickle, which can run code when it is loaded, so it is not read; if "
       "you trust it, convert it to safetensors");
}

/// A safetensors file begins with a number whose last bytes are zero.
bool is_text(const std::string& path) {
  const std::string begin = first_bytes(path);
  return !begin.empty() && begin.find('\0') == begin.npos;
}

std::string first_bytes(const std::string& path) {
  const InputFile file(path, Fault::Checkpoint);
  std::string out(static_cast<std::size_t>(std::min<std::int64_t>(file.size(), 8)), '\0');
  file.read(0, std::as_writable_bytes(std::span(out)));
  return out;
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
