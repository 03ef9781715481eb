#include "tessera/tensor/mesh.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "tessera/base/error.h"

namespace tessera {

namespace {
constexpr std::array<const char*, 5> kLevels = {"time", "core", "socket", "host", "rack"};
constexpr std::string_view kHalves = "-lheo";  // of each Half
}  // namespace

Mesh::Mesh(std::vector<Axis> axes) {
  require(axes.size() <= kMaxAxes, "a mesh has at most ", kMaxAxes, " axes, not ", axes.size());
  std::int64_t total = 1;
  for (Axis& axis : axes) {
    require(is_axis_name(axis.name), "mesh axis '", axis.name,
            "': a name has letters, digits and _ only");
    require(axis.size >= 1, "mesh axis '", axis.name, "' has size ", axis.size,
            "; sizes are 1 or more");
    require(!has(axis.name), "mesh axis '", axis.name, "' is given twice");
    require(axis.size <= kMaxSize / total, "mesh axis '", axis.name, "' of size ", axis.size,
            " makes the mesh larger than ", kMaxSize);
    total *= axis.size;
    if (axis.size > 1) axes_.push_back(std::move(axis));
  }
}

const Axis* Mesh::find(std::string_view name) const {
  const auto found =
      std::find_if(axes_.begin(), axes_.end(), [&](const Axis& axis) { return axis.name == name; });
  return found == axes_.end() ? nullptr : &*found;
}

std::int64_t Mesh::size(std::string_view name) const {
  if (const Axis* axis = find(name)) return axis->size;
  const std::optional<AxisPart> part = parse_axis_part(name);
  const Axis* axis = part ? find(part->axis) : nullptr;
  return axis != nullptr && axis->size % (part->before * part->size) == 0 ? part->cuts() : 1;
}

bool Mesh::is_time(std::string_view name) const {
  const Axis* axis = find(name);
  return axis != nullptr && axis->level == Level::Time;
}

Level Mesh::level(std::string_view name) const {
  const Axis* axis = find(name);
  if (axis == nullptr) {
    if (const std::optional<AxisPart> part = parse_axis_part(name)) axis = find(part->axis);
  }
  return axis == nullptr ? Level::Core : axis->level;
}

std::int64_t Mesh::stride(std::string_view name) const {
  const std::optional<AxisPart> part = find(name) == nullptr ? parse_axis_part(name) : std::nullopt;
  const std::string_view whole = part ? part->axis : name;
  std::int64_t out = 1;
  for (auto axis = axes_.rbegin(); axis != axes_.rend(); ++axis) {
    if (axis->name == whole) return part ? out * (axis->size / (part->before * part->size)) : out;
    if (axis->level != Level::Time) out *= axis->size;
  }
  return out;
}

std::int64_t Mesh::ranks() const {
  std::int64_t n = 1;
  for (const Axis& axis : axes_) {
    if (axis.level != Level::Time) n *= axis.size;
  }
  return n;
}

std::string axis_part(const AxisPart& part) {
  const auto half = static_cast<std::size_t>(part.half);
  return text(part.axis, "__", part.before, "x", part.size,
              part.turned == 0 ? "" : text("t", part.turned), kHalves.substr(half, half > 0));
}

std::optional<AxisPart> parse_axis_part(std::string_view name) {
  const std::size_t mark = name.rfind("__");
  if (mark == std::string_view::npos) return std::nullopt;
  AxisPart out{name.substr(0, mark)};
  std::string_view rest = name.substr(mark + 2);
  const auto number = [&](std::int64_t& to) {
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), to);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    return error == std::errc() && to >= 1 && to <= Mesh::kMaxSize;
  };
  const auto mark_is = [&](char mark) {
    if (!rest.starts_with(mark)) return false;
    rest.remove_prefix(1);
    return true;
  };
  if (!number(out.before) || !mark_is('x') || !number(out.size) ||
      out.before > Mesh::kMaxSize / out.size)
    return std::nullopt;
  if (mark_is('t') && (!number(out.turned) || out.turned > out.size)) return std::nullopt;
  if (rest.size() == 1 && kHalves.find(rest[0], 1) != std::string_view::npos) {
    out.half = static_cast<Half>(kHalves.find(rest[0], 1));
    rest = {};
  }
  return rest.empty() ? std::optional(out) : std::nullopt;
}

bool is_axis_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

std::string to_text(const Mesh& mesh) {
  std::string out;
  for (const Axis& axis : mesh.axes()) {
    out += text(out.empty() ? "" : " ", axis.name, "=", axis.size);
    if (axis.level != Level::Core) out += text("@", kLevels[static_cast<std::size_t>(axis.level)]);
  }
  return out;
}

Mesh parse_mesh(std::string_view line) {
  std::vector<Axis> axes;
  for (const std::string& part : split(line, ' ')) {
    const std::string word(trim(part));
    if (word.empty()) continue;
    const std::size_t equals = word.find('=');
    require(equals != std::string::npos, "mesh '", line, "': '", word, "' is not like dp=4");
    Axis axis{word.substr(0, equals), 0, Level::Core};
    const std::size_t at = word.find('@');
    const std::string digits =
        word.substr(equals + 1, at == std::string::npos ? at : at - equals - 1);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), axis.size);
    require(error == std::errc() && end == digits.data() + digits.size(), "mesh '", line, "': '",
            digits, "' is not a size");
    if (at != std::string::npos) {
      bool known = false;
      for (std::size_t i = 0; i < kLevels.size(); ++i) {
        if (word.substr(at + 1) == kLevels[i]) axis.level = static_cast<Level>(i), known = true;
      }
      require(known, "mesh '", line, "': unknown level '", word.substr(at + 1), "'");
    }
    axes.push_back(std::move(axis));
  }
  return Mesh(std::move(axes));
}

}  // namespace tessera
