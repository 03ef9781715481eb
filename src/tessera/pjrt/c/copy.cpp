#include <cstring>

#include "tessera/pjrt/c/call.h"

namespace tessera::pjrt::c {

namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 40;  // of a serialised program, or any text
constexpr std::size_t kMostValues = std::size_t{1} << 20;

/// Values lie behind each other in the size that the plugin's version of the struct has, which may
/// be more than ours.
std::size_t stride_of(const NamedValue& value) {
  constexpr std::size_t kAlign = alignof(NamedValue);
  return (value.head.size + kAlign - 1) / kAlign * kAlign;
}

}  // namespace

std::string copy(const Plugin& plugin, Call call, Text said) {
  if (said.size > kMostBytes || (said.data == nullptr && said.size > 0)) {
    fail_answer(plugin, call, text("a text of ", said.size, " bytes"));
  }
  return std::string(said.size == 0 ? "" : said.data, said.size);
}

NamedValues copy(const Plugin& plugin, Call call, List<NamedValue> values) {
  if (values.count > kMostValues || (values.items == nullptr && values.count > 0)) {
    fail_answer(plugin, call, text("a list of ", values.count, " values"));
  }
  NamedValues out;
  const char* at = reinterpret_cast<const char*>(values.items);
  for (std::size_t i = 0; i < values.count; ++i) {
    NamedValue value;
    std::memcpy(&value.head, at, sizeof(Head));
    if (value.head.size < NamedValue::kSize || value.head.size > 16 * NamedValue::kSize) {
      fail_answer(plugin, call, text("a named value of ", value.head.size, " bytes"));
    }
    const std::size_t stride = stride_of(value);
    std::memcpy(&value, at, sizeof value);
    at += stride;
    std::string name = copy(plugin, call, value.name);
    switch (value.kind) {
      case ValueKind::String:
        out.push_back({std::move(name), copy(plugin, call, Text{value.string, value.count})});
        break;
      case ValueKind::Int64: out.push_back({std::move(name), value.int64}); break;
      case ValueKind::Int64List: {
        const auto list = checked(plugin, call, List<std::int64_t>{value.int64s, value.count});
        out.push_back({std::move(name), std::vector<std::int64_t>(list.begin(), list.end())});
        break;
      }
      case ValueKind::Float: out.push_back({std::move(name), value.float32}); break;
      case ValueKind::Bool: out.push_back({std::move(name), value.boolean != 0}); break;
    }
  }
  return out;
}

NamedValues attributes_of(const Plugin& plugin, DeviceDescription* device) {
  auto get = arguments<DeviceDescriptionAttributes>();
  get.of = device;
  if (!call_if_there(plugin, get)) return {};
  return copy(plugin, Call::DeviceDescriptionAttributes, {get.answer.items, get.answer.count});
}

std::vector<NamedValue> views(const NamedValues& values) {
  std::vector<NamedValue> out;
  for (const pjrt::NamedValue& value : values) {
    NamedValue& view_of = out.emplace_back();
    view_of.head.size = NamedValue::kSize;
    view_of.name = view(value.name);
    view_of.count = 1;
    if (const auto* string = std::get_if<std::string>(&value.value)) {
      view_of.kind = ValueKind::String;
      view_of.string = string->data();
      view_of.count = string->size();
    } else if (const auto* boolean = std::get_if<bool>(&value.value)) {
      view_of.kind = ValueKind::Bool;
      view_of.boolean = *boolean ? 1 : 0;
    } else if (const auto* number = std::get_if<std::int64_t>(&value.value)) {
      view_of.kind = ValueKind::Int64;
      view_of.int64 = *number;
    } else if (const auto* real = std::get_if<float>(&value.value)) {
      view_of.kind = ValueKind::Float;
      view_of.float32 = *real;
    } else {
      const auto& list = std::get<std::vector<std::int64_t>>(value.value);
      view_of.kind = ValueKind::Int64List;
      view_of.int64s = list.data();
      view_of.count = list.size();
    }
  }
  return out;
}

}  // namespace tessera::pjrt::c
