#pragma once
/// The mesh: all ranks, arranged along named axes with sizes, outermost first ("dp=2 tp=4").

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// The level of the machine that the ranks of an axis are spread over. Time is special: the
/// coordinates of such an axis are computed one after another by the same rank (micro-batches).
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
  /// Axes of size 1 are dropped, because they split nothing. Errors: a name twice or not of
  /// letters, digits and _; a size below 1; too many.
  explicit Mesh(std::vector<Axis> axes);

  const std::vector<Axis>& axes() const { return axes_; }
  /// 1 for an axis that is not there. Here and below a part of an axis is an axis too.
  std::int64_t size(std::string_view axis) const;
  bool has(std::string_view axis) const { return size(axis) > 1; }
  bool is_time(std::string_view axis) const;
  /// Level::Core for an axis that is not there.
  Level level(std::string_view axis) const;
  /// How far ranks are apart that are neighbours along the axis, not one of time: the coordinate of
  /// a rank is rank / stride % size.
  std::int64_t stride(std::string_view axis) const;
  /// Ranks: the product of all axes but those of time.
  std::int64_t ranks() const;
  friend bool operator==(const Mesh&, const Mesh&) = default;

 private:
  const Axis* find(std::string_view name) const;

  std::vector<Axis> axes_;
};

/// Which of two halves of its part of a dim a rank has. Low and High: the first and the second.
/// Even and Odd are halves in a zigzag, in which rank c of n has the halves c and 2 n - 1 - c of
/// all 2 n: one of them is even, the other odd. So each rank has an early and a late one.
enum class Half : std::uint8_t { None, Low, High, Even, Odd };

/// A part of an axis: its coordinate taken apart into (before, size, rest), major first. Of tp=12
/// (2, 3) is "tp__2x3": coordinate / 2 % 3. It can shard dims and form groups like an axis.
///
/// A part may be turned: its coordinates are `turned` smaller, and begin at the end again below 0.
/// Of cp=4 (1, 4) turned by 1 is "cp__1x4t1": 3, 0, 1, 2; turned by 4, it is as before. With a half
/// it shards a dim twice as often: "cp__1x4h" is 1, 3, 5, 7, "cp__1x4e" is 0, 6, 2, 4.
struct AxisPart {
  std::string_view axis;
  std::int64_t before = 1, size = 1, turned = 0;
  Half half = Half::None;

  /// How many parts of a dim it makes.
  std::int64_t cuts() const { return half == Half::None ? size : 2 * size; }
};
std::string axis_part(const AxisPart& part);
inline std::string axis_part(std::string_view axis, std::int64_t before, std::int64_t size) {
  return axis_part(AxisPart{axis, before, size});
}
/// None if the name is not of that form.
std::optional<AxisPart> parse_axis_part(std::string_view name);

/// Letters, digits and _, at least one.
bool is_axis_name(std::string_view name);

/// "dp=4 tp=2 mb=3@time"
std::string to_text(const Mesh& mesh);
Mesh parse_mesh(std::string_view line);

}  // namespace tessera
