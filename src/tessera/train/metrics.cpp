#include "tessera/train/metrics.h"

#include <sys/resource.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tessera/base/text.h"
#include "tessera/data/file.h"

namespace tessera {

namespace {

using Json = nlohmann::json;

/// The line as JSON with a whole `step`; discarded where it is torn or not ours.
Json parse_line(const std::string& line) {
  Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  const bool ours = json.is_object() && json.contains("kind") && json["kind"].is_string() &&
                    json.contains("step") && json["step"].is_number_integer();
  return ours ? json : Json(Json::value_t::discarded);
}

}  // namespace

std::string json_number(double value) {
  if (!std::isfinite(value)) return "null";
  std::array<char, 40> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::general, 9);
  return {buffer.data(), end.ptr};
}

MetricsFile::MetricsFile(const std::string& path, std::int64_t step) : path_(path) {
  if (std::filesystem::exists(path)) keep(step);
  file_.reset(std::fopen(path.c_str(), "a"));
  if (file_ == nullptr)
    fail(Fault::Resource, "cannot write '", path, "': ", std::strerror(errno),
         "; check the folder's permissions and the disk");
}

void MetricsFile::keep(std::int64_t step) {
  const std::string old = read_file(path_, Fault::Resource);
  std::string kept;
  for (const std::string& line : split(old, '\n')) {
    const Json json = parse_line(line);
    if (json.is_discarded() || json["step"].get<std::int64_t>() > step) continue;
    const Json loss = json.value("loss", Json());
    if (json["kind"] == "train" && loss.is_number()) train_loss_ = loss.get<double>();
    if (json["kind"] == "valid") {
      valid_step_ = json["step"].get<std::int64_t>();
      if (loss.is_number()) valid_loss_ = loss.get<double>();
    }
    kept += line + "\n";
  }
  if (kept != old) write_atomically(path_, kept);
}

void MetricsFile::write(const std::string& line) {
  const bool written = std::fwrite(line.data(), 1, line.size(), file_.get()) == line.size() &&
                       std::fflush(file_.get()) == 0;
  if (!written)
    fail(Fault::Resource, "cannot write '", path_, "': ", std::strerror(errno),
         "; free some disk, then go on with --resume auto");
}

void MetricsFile::train(const StepRecord& r) {
  write(text(R"({"kind":"train","step":)", r.step, R"(,"loss":)", json_number(r.loss), R"(,"lr":)",
             json_number(r.lr), R"(,"grad_norm":)", json_number(r.grad_norm), R"(,"tokens_per_s":)",
             json_number(r.tokens_per_s), R"(,"step_seconds":)", json_number(r.seconds),
             r.ok ? "" : R"(,"skipped":true)", "}\n"));
  if (std::isfinite(r.loss)) train_loss_ = r.loss;
}

void MetricsFile::valid(std::int64_t step, double loss) {
  write(text(R"({"kind":"valid","step":)", step, R"(,"loss":)", json_number(loss), "}\n"));
  valid_step_ = step;
  valid_loss_ = loss;
}

std::string to_json(const Summary& s) {
  const auto number = [](const std::optional<double>& value) {
    return value ? json_number(*value) : std::string("null");
  };
  std::string out = "{\n";
  const auto line = [&](std::string_view key, const std::string& value) {
    out += text(out.size() > 2 ? ",\n" : "", "  \"", key, "\": ", value);
  };
  line("steps", number_text(s.steps));
  line("skipped_steps", number_text(s.skipped_steps));
  line("train_loss", number(s.train_loss));
  line("val_loss", number(s.val_loss));
  line("seconds", json_number(s.seconds));
  line("tokens_per_s", json_number(s.tokens_per_s));
  line("parameters", number_text(s.parameters));
  line("planned_peak_bytes", number_text(s.planned_peak_bytes));
  if (s.measured_peak_bytes) line("measured_peak_bytes", number_text(*s.measured_peak_bytes));
  line("lower_bound_bytes", number_text(s.lower_bound_bytes));
  line("peak_rss_bytes", number_text(s.peak_rss_bytes));
  return out + "\n}\n";
}

std::int64_t peak_rss_bytes() {
  // VmHWM counts this program alone; getrusage also what ran in this process before exec.
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (starts_with(line, "VmHWM:")) return std::stoll(line.substr(6)) * 1024;
  }
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace tessera
