#pragma once
/// What crosses PJRT's C interface beside arguments: objects of a plugin, which only it can look
/// into, and structs and numbers that several calls share.
///
/// Every struct begins with its size, so that either side knows which fields the other has.
/// kSize: to the end of the last field, without padding behind it; that is what plugins compare.

#include <cstddef>
#include <cstdint>

namespace tessera::pjrt::c {

/// A bool, in which a plugin may leave any byte.
using Truth = std::uint8_t;

struct Error;
struct Event;
struct Client;
struct Device;
struct DeviceDescription;
struct Memory;
struct Buffer;
struct Executable;
struct LoadedExecutable;
struct SerializedExecutable;
struct TopologyDescription;

/// The first fields of a struct; extensions are not used.
struct Head {
  std::size_t size = 0;
  void* extensions = nullptr;
};

/// The numbers of gRPC's status codes.
enum class Code : int {
  Ok = 0,
  Cancelled = 1,
  Unknown = 2,
  InvalidArgument = 3,
  DeadlineExceeded = 4,
  NotFound = 5,
  AlreadyExists = 6,
  PermissionDenied = 7,
  ResourceExhausted = 8,
  FailedPrecondition = 9,
  Aborted = 10,
  OutOfRange = 11,
  Unimplemented = 12,
  Internal = 13,
  Unavailable = 14,
  DataLoss = 15,
  Unauthenticated = 16,
};

/// Those element types that Tessera has.
enum class ElementType : int {
  Pred = 1,
  S32 = 4,
  S64 = 5,
  F16 = 10,
  F32 = 11,
  F64 = 12,
  Bf16 = 13
};

/// When the caller may change what it handed over for a buffer.
enum class HostBuffer : int { OnlyDuringCall = 0, UntilTransferred = 1 };

/// Not ended by NUL.
struct Text {
  const char* data = nullptr;
  std::size_t size = 0;
};

template <typename T>
struct List {
  const T* items = nullptr;
  std::size_t count = 0;
};

enum class ValueKind : int { String = 0, Int64 = 1, Int64List = 2, Float = 3, Bool = 4 };

/// `count`: of a string its bytes, of a list its numbers, else 1.
struct NamedValue {
  static constexpr std::size_t kSize = 56;
  Head head;
  Text name;
  ValueKind kind = ValueKind::String;
  union {
    const char* string;
    std::int64_t int64;
    const std::int64_t* int64s;
    float float32;
    Truth boolean;
  };
  std::size_t count = 0;
};

/// Text for a compiler, or the place where it writes one: `code` may be written to.
struct Program {
  static constexpr std::size_t kSize = 48;
  Head head;
  char* code = nullptr;
  std::size_t code_size = 0;
  Text format;
};

/// Dims from the one that changes fastest; no tiles.
struct TiledLayout {
  static constexpr std::size_t kSize = 56;
  Head head;
  List<std::int64_t> minor_to_major;
  const std::int64_t* tile_dims = nullptr;
  const std::size_t* tile_dim_sizes = nullptr;
  std::size_t num_tiles = 0;
};
/// The other kind of layout (strides) is smaller than this one.
struct MemoryLayout {
  static constexpr std::size_t kSize = 76;
  Head head;
  TiledLayout tiled;
  int type = 0;  // 0: tiled
};

/// How a callback of ours makes an error of the plugin's.
using MakeError = Error* (*)(Code code, const char* message, std::size_t size);

/// Asks for a value that another process has put, or will put within the time.
struct KeyValueGet {
  static constexpr std::size_t kSize = 80;
  Head head;
  Text key;
  int timeout_milliseconds = 0;
  MakeError* make_error = nullptr;
  void* user = nullptr;
  char* value = nullptr;  // out, as the next two
  std::size_t value_size = 0;
  void (*delete_value)(char* value) = nullptr;
};
struct KeyValueTryGet {
  static constexpr std::size_t kSize = 72;
  Head head;
  Text key;
  MakeError* make_error = nullptr;
  void* user = nullptr;
  char* value = nullptr;
  std::size_t value_size = 0;
  void (*delete_value)(char* value) = nullptr;
};
struct KeyValuePut {
  static constexpr std::size_t kSize = 64;
  Head head;
  Text key;
  Text value;
  MakeError* make_error = nullptr;
  void* user = nullptr;
};

}  // namespace tessera::pjrt::c
