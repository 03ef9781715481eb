#pragma once
/// The mesh: named axes with sizes, outermost first.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// What an axis is bound to. Time: its coordinates run one after another on the same rank
/// (micro-batches).
enum class Level : std::uint8_t { Time, Core, Socket, Host, Rack };

struct Axis {
  std::string name;
  std::int64_t size = 1;
  Level level = Level::Core;
  friend bool operator==(const Axis&, const Axis&) = default;
};

class Mesh {
 public:
  Mesh() = default;
  static constexpr std::size_t kMaxAxes = 32;
  static constexpr std::int64_t kMaxSize = std::int64_t{1}
                                           << 40;  // of all axes together, time included
  /// Axes of size 1 are dropped: they shard nothing. Errors: a name twice or not of letters, digits
  /// and _; a size below 1; too many.
  explicit Mesh(std::vector<Axis> axes);

  const std::vector<Axis>& axes() const { return axes_; }
  /// 1 for an axis that is not there.
  std::int64_t size(std::string_view axis) const;
  bool has(std::string_view axis) const { return size(axis) > 1; }
  bool is_time(std::string_view axis) const;
  /// Ranks: the product of all axes but those of time.
  std::int64_t ranks() const;
  friend bool operator==(const Mesh&, const Mesh&) = default;

 private:
  std::vector<Axis> axes_;
};

/// Letters, digits and _, at least one.
bool is_axis_name(std::string_view name);

/// "dp=4 tp=2 mb=3@time"
std::string to_text(const Mesh& mesh);
Mesh parse_mesh(std::string_view line);

}  // namespace tessera
