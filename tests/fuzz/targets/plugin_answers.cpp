/// What a plugin answers: named values, texts of errors, element types, dims, bytes of memory. Places
/// are sound, as those of a plugin must be; sizes, counts, kinds and contents are anything.

#include <array>

#include "fuzz/bytes.h"
#include "fuzz/target.h"
#include "tessera/base/printable.h"
#include "tessera/pjrt/c/call.h"
#include "tessera/pjrt/c/element_type.h"
#include "tessera/pjrt/client.h"
#include "tessera/pjrt/compiled.h"

namespace tessera::pjrt::c {

struct Error {
  Code code;
  std::string message;
};

namespace {

/// What the plugin answers next.
struct Answers {
  std::string message;
  Code code = Code::Ok;
  CompiledBytes compiled;
};
Answers answers;

template <auto function, typename Arguments>
void add(Api& api, Error* (*)(Arguments*)) {
  api.calls[static_cast<std::size_t>(Arguments::kCall)] = reinterpret_cast<void (*)()>(function);
}

Error* initialize(PluginInitialize*) { return nullptr; }
void destroy_error(ErrorDestroy* of) { delete of->of; }
void message(ErrorMessage* of) { of->answer = {of->of->message.data(), of->of->message.size()}; }
Error* code(ErrorGetCode* of) {
  of->answer = of->of->code;
  return nullptr;
}
Error* compiled(ExecutableGetCompiledMemoryStats* of) {
  of->answer = answers.compiled;
  return nullptr;
}
Error* fingerprint(ExecutableFingerprint*) { return new Error{answers.code, answers.message}; }
Error* destroy_executable(ExecutableDestroy*) { return nullptr; }

const Plugin& plugin() {
  static Api api;
  static const Plugin kPlugin =
      [] {
        api.head.size = sizeof api;
        api.version = {{sizeof(Version), nullptr}, 0, 106};
        add<initialize>(api, initialize);
        add<code>(api, code);
        add<compiled>(api, compiled);
        add<fingerprint>(api, fingerprint);
        add<destroy_executable>(api, destroy_executable);
        const auto place = [](Call call) -> std::size_t { return static_cast<std::size_t>(call); };
        api.calls[place(Call::ErrorDestroy)] = reinterpret_cast<void (*)()>(destroy_error);
        api.calls[place(Call::ErrorMessage)] = reinterpret_cast<void (*)()>(message);
        return true;
      }()
          ? Plugin("plugin.so", &api)
          : Plugin("", nullptr);
  return kPlugin;
}

constexpr std::size_t kMostStride = 17 * NamedValue::kSize;

/// Values behind each other, each as large as its head says.
NamedValues copied_values(fuzz::Bytes& in) {
  const std::size_t count = in.take<std::uint8_t>() % 8;
  std::vector<char> room(count * kMostStride + kMostStride);
  std::vector<std::string> texts;
  texts.reserve(2 * count);
  char* at = room.data();
  for (std::size_t i = 0; i < count; ++i) {
    NamedValue value;
    value.head.size = in.below(4) == 0 ? in.take<std::uint64_t>() % (2 * kMostStride)
                                       : NamedValue::kSize + in.take<std::uint8_t>() % 64;
    texts.emplace_back(in.text());
    value.name = {texts.back().data(), texts.back().size()};
    value.kind = static_cast<ValueKind>(in.below(8) == 0 ? in.take<int>() : in.below(5));
    texts.emplace_back(in.text());
    texts.back().resize((texts.back().size() + 7) / 8 * 8);
    value.string = texts.back().data();
    value.count = texts.back().size() / 8;
    if (in.below(8) == 0) value.string = nullptr, value.count = in.take<std::uint64_t>();
    std::memcpy(at, &value, sizeof value);
    const std::size_t stride = (std::min(value.head.size, kMostStride) + 7) / 8 * 8;
    at += std::min(stride, kMostStride);
  }
  return copy(plugin(), Call::PluginAttributes,
              List<NamedValue>{reinterpret_cast<const NamedValue*>(room.data()), count});
}

void check_values(const NamedValues& values) {
  for (const pjrt::NamedValue& value : values) {
    const std::string shown = to_text(value);
    check(printable(shown) == shown, "a value is not fit for a terminal");
    check(find(values, value.name) != nullptr, "a value is not found");
  }
  const std::vector<NamedValue> again = views(values);
  const NamedValues back = copy(plugin(), Call::PluginAttributes, {again.data(), again.size()});
  for (std::size_t i = 0; i < values.size(); ++i)
    check(to_text(back.at(i)) == to_text(values[i]), "values are copied otherwise");
}

/// An error of any code and message is told within bounds.
void check_error(fuzz::Bytes& in, const Compiled& program) {
  answers.code = static_cast<Code>(in.below(4) == 0 ? in.take<int>() : in.below(17));
  answers.message = in.rest();
  if (answers.code == Code::Unimplemented) return;  // it is optional there
  try {
    program.fingerprint();
  } catch (const tessera::Error& error) {
    const std::string what = error.what();
    check(printable(what) == what && what.size() < 20'000, "an error is not fit for a terminal");
    check(starts_with(what, "plugin.so: PJRT_Executable_Fingerprint: "), "an error of nobody");
    return;
  }
  check(false, "an error is not thrown");
}

void run(std::string_view input) {
  fuzz::Bytes in(input);
  const int what = in.below(4);
  const Compiled program(Handle<Executable>(plugin(), reinterpret_cast<Executable*>(&answers)));
  if (what == 0) return check_values(copied_values(in));
  if (what == 1) return fuzz::then([&] { check_error(in, program); });
  if (what == 2) {
    const DType dtype = dtype_of(plugin(), static_cast<ElementType>(in.below(20)));
    std::vector<std::int64_t> dims;
    while (!in.empty() && dims.size() < 40)
      dims.push_back(in.below(4) == 0 ? in.take<std::int64_t>() : in.below(9));
    const Shape shape = shape_of(plugin(), Call::BufferDimensions, dims);
    return fuzz::then([&] {
      check(static_cast<std::size_t>(shape.ndim()) == dims.size(), "another number of dims");
      check((TensorType{dtype, shape, {}}).bytes() >= 0, "a tensor of less than no bytes");
    });
  }
  answers.compiled = in.take<CompiledBytes>();
  const CompiledMemory memory = program.memory();
  fuzz::then([&] {
    check(memory.temp >= 0 && memory.device_peak() <= std::int64_t{4} << 50 &&
              memory.host_peak() <= std::int64_t{4} << 50,
          "bytes that no device has");
  });
}

}  // namespace
}  // namespace tessera::pjrt::c

namespace tessera::fuzz {
const Target kTarget = {1 << 20, 2048, pjrt::c::run};
}  // namespace tessera::fuzz
