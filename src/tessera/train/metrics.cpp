#include "tessera/train/metrics.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "tessera/base/proc.h"
#include "tessera/base/text.h"
#include "tessera/files/file.h"
#include "tessera/plan/memory_parts.h"

namespace tessera {

namespace {

using Json = nlohmann::json;

/// True where the line has a kind and a whole step: it is neither torn nor another program's.
bool is_ours(const Json& line) {
  return line.is_object() && line.contains("kind") && line["kind"].is_string() &&
         line.contains("step") && line["step"].is_number_integer();
}

/// The loss of a line that is ours; none of a step that was skipped.
std::optional<double> loss_of(const Json& line) {
  const auto found = line.find("loss");
  if (found == line.end() || !found->is_number() || line.contains("skipped")) return std::nullopt;
  return found->get<double>();
}

}  // namespace

std::string json_number(double value) {
  if (!std::isfinite(value)) return "null";
  std::array<char, 40> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::general, 9);
  return {buffer.data(), end.ptr};
}

KeptMetrics keep_metrics(std::string_view lines, std::int64_t step) {
  KeptMetrics out;
  for (const std::string& line : split(lines, '\n')) {
    // Nothing of it is copied but numbers: a value may be nested deeper than a stack.
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!is_ours(json) || json["step"].get<std::int64_t>() > step) continue;
    if (json["kind"] == "test") continue;
    const std::optional<double> loss = loss_of(json);
    if (json["kind"] == "train" && loss) out.train_loss = loss;
    if (json["kind"] == "eval") out.eval_step = json["step"].get<std::int64_t>();
    if (json["kind"] == "valid") {
      out.valid_step = json["step"].get<std::int64_t>();
      if (loss) out.valid_loss = out.valid_losses[out.valid_step] = *loss;
    }
    out.lines += line + "\n";
  }
  return out;
}

std::vector<LossLine> loss_lines(std::string_view lines) {
  std::vector<LossLine> out;
  for (const std::string& line : split(lines, '\n')) {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    const bool valid = is_ours(json) && json["kind"] == "valid";
    if (!valid && !(is_ours(json) && json["kind"] == "train")) continue;
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    out.push_back({json["step"].get<std::int64_t>(), loss_of(json).value_or(kNone), valid});
  }
  return out;
}

MetricsFile::MetricsFile(const std::string& path, std::int64_t step, FileCalls calls) {
  if (std::filesystem::exists(path)) {
    const std::string old = read_file(path, Fault::Resource);
    last_ = keep_metrics(old, step);
    if (last_.lines != old) write_atomically(path, last_.lines);
    last_.lines = {};
  }
  file_.emplace(path, std::move(calls));
}

namespace {

/// Keys of lines that are no task's means or scores.
constexpr std::string_view kOwnKeys[] = {
    "kind",         "step",    "epoch",      "loss",    "lr",      "grad_norm", "tokens_per_s",
    "step_seconds", "skipped", "loss_scale", "weights", "backend", "host_bytes"};

/// Quoted; bytes that are no UTF-8 are replaced.
std::string json_string(const std::string& value) {
  return Json(value).dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// ,"mlm_loss":1.5,"nsp_loss":0.7; one that is called like a key of the line is task_NAME.
std::string json_members(const NamedMeans& means) {
  std::string out;
  for (const auto& [name, mean] : means) {
    const bool taken = std::ranges::find(kOwnKeys, name) != std::end(kOwnKeys);
    out += text(",", json_string(taken ? "task_" + name : name), ":", json_number(mean));
  }
  return out;
}

/// ,"tokens":256,"tokens_per_expert":[[140,116],[120,136]],"dropped_fraction":0: of models with
/// experts; the last where none of the means is called so.
std::string json_routing(const StepRecord& r) {
  if (r.tokens_per_expert.empty()) return "";
  std::vector<std::string> routers;
  for (const std::vector<double>& counts : r.tokens_per_expert) {
    std::vector<std::string> numbers;
    for (const double count : counts) numbers.push_back(json_number(count));
    routers.push_back(text("[", join(numbers, ","), "]"));
  }
  const bool drops = std::ranges::any_of(
      r.means, [](const auto& mean) { return mean.first == kDroppedMean; });
  return text(R"(,"tokens":)", r.tokens, R"(,"tokens_per_expert":[)", join(routers, ","), "]",
              drops ? "" : text(",\"", kDroppedMean, "\":0"));
}

/// Calls `write` with the parts of the line: who has a buffer for them allocates nothing.
template <typename Write>
void write_step(const StepRecord& r, const Write& write) {
  write(R"({"kind":"train","step":)", r.step, R"(,"loss":)", json_number(r.loss), R"(,"lr":)",
        json_number(r.lr), R"(,"grad_norm":)", json_number(r.grad_norm), R"(,"tokens_per_s":)",
        json_number(r.tokens_per_s), R"(,"step_seconds":)", json_number(r.seconds),
        json_members(r.means), json_routing(r), r.loss_scale ? R"(,"loss_scale":)" : "",
        r.loss_scale ? json_number(*r.loss_scale) : "",
        r.backend.empty()
            ? ""
            : text(R"(,"backend":)", json_string(r.backend), R"(,"host_bytes":)", r.host_bytes),
        r.ok ? "" : R"(,"skipped":true)", "}");
}

}  // namespace

std::string metrics_line(const StepRecord& r) {
  std::string out;
  write_step(r, [&](const auto&... parts) { out = text(parts...); });
  return out;
}

std::string metrics_line(std::int64_t step, double loss, const NamedMeans& means) {
  return text(R"({"kind":"valid","step":)", step, R"(,"loss":)", json_number(loss),
              json_members(means), "}");
}

std::string metrics_line(const EvalRecord& r) {
  return text(R"({"kind":"eval","epoch":)", r.epoch, R"(,"step":)", r.step, R"(,"loss":)",
              json_number(r.loss), json_members(r.scores), "}");
}

std::string metrics_line(const TestRecord& r) {
  return text(R"({"kind":"test","step":)", r.measured.step, R"(,"weights":")",
              r.best ? "best" : "last", R"(","loss":)", json_number(r.measured.loss),
              json_members(r.measured.scores), "}");
}

void MetricsFile::train(const StepRecord& r) {
  write_step(r, [&](const auto&... parts) { file_->write(parts..., "\n"); });
  if (r.ok) last_.train_loss = r.loss;
}

void MetricsFile::valid(std::int64_t step, double loss, const NamedMeans& means) {
  file_->write(metrics_line(step, loss, means), "\n");
  last_.valid_step = step;
  last_.valid_loss = loss;
}

void MetricsFile::eval(const EvalRecord& r) {
  if (last_.eval_step == r.step) return;
  file_->write(metrics_line(r), "\n");
  last_.eval_step = r.step;
}

void MetricsFile::test(const TestRecord& r) { file_->write(metrics_line(r), "\n"); }

std::string to_json(const Summary& s) {
  const auto number = [](const std::optional<double>& value) {
    return value ? json_number(*value) : std::string("null");
  };
  std::string out = "{\n";
  const auto line = [&](std::string_view key, const std::string& value) {
    out += text(out.size() > 2 ? ",\n" : "", "  \"", key, "\": ", value);
  };
  line("steps", number_text(s.steps));
  if (!s.backend.empty()) line("backend", json_string(s.backend));
  if (!s.isa.empty()) line("isa", text("\"", s.isa, "\""));
  if (!s.f32_products.empty()) line("f32_products", text("\"", s.f32_products, "\""));
  line("skipped_steps", number_text(s.skipped_steps));
  line("train_loss", number(s.train_loss));
  line("val_loss", number(s.val_loss));
  line("seconds", json_number(s.seconds));
  line("tokens_per_s", json_number(s.tokens_per_s));
  line("flops_per_step", json_number(s.flops_per_step));
  line("recomputed_flops_per_step", json_number(s.recomputed_flops_per_step));
  line("product_flops_per_s", json_number(s.product_flops_per_s));
  line("mfu", number(s.mfu));
  line("parameters", number_text(s.parameters));
  line("planned_peak_bytes", number_text(s.planned_peak_bytes));
  if (s.measured_peak_bytes) line("measured_peak_bytes", number_text(*s.measured_peak_bytes));
  line("lower_bound_bytes", number_text(s.lower_bound_bytes));
  line("planned_host_bytes", number_text(s.planned_host.memory));
  line("planned_file_bytes", number_text(s.planned_host.file));
  if (s.measured_host_bytes) line("measured_host_bytes", number_text(*s.measured_host_bytes));
  line("recompute_granularity", text("\"", to_text(s.choice.recompute), "\""));
  line("recompute_layers", text("\"", recomputed_layers(s.choice), "\""));
  line("micro_batch_size", number_text(s.choice.micro_batch_size));
  std::string offload;
  for (const std::string& word : offload_words(s.choice.offload))
    offload += text(offload.empty() ? "" : ", ", "\"", word, "\"");
  line("offload", text("[", offload, "]"));
  line("save_copy_bytes", number_text(s.save_copy_bytes));
  line("huge_page_bytes", number_text(s.huge_page_bytes));
  line("outside_arena_bytes", to_json(s.outside));
  std::string sent;
  for (const auto& [axes, bytes] : s.sent)
    sent += text(sent.empty() ? "" : ", ", "\"", axes, "\": ", bytes);
  line("sent_bytes_per_step", text("{", sent, "}"));
  line("peak_rss_bytes", number_text(s.peak_rss_bytes));
  std::string memory;
  for (const MemoryPart& part : kMemoryParts)
    memory += text(memory.empty() ? "" : ", ", "\"", part.key, "\": ", s.memory.*part.bytes);
  line("memory", text("{", memory, "}"));
  line("devices", number_text(s.devices));
  line("mesh", json_string(s.mesh));
  std::string notices;
  for (const std::string& notice : s.notices)
    notices += text(notices.empty() ? "" : ", ", json_string(notice));
  line("notices", text("[", notices, "]"));
  return out + "\n}\n";
}

std::int64_t peak_rss_bytes() {
  // VmHWM counts this program alone; getrusage also what ran in this process before exec.
  if (const std::int64_t most = proc_bytes("/proc/self/status", "VmHWM:"); most > 0) return most;
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

std::int64_t resident_bytes() { return proc_bytes("/proc/self/status", "VmRSS:"); }

}  // namespace tessera
