#include "tessera/pjrt/c/key_value.h"

#include <cstring>
#include <exception>

namespace tessera::pjrt::c {

namespace {

std::string copied(Text text) { return std::string(text.size == 0 ? "" : text.data, text.size); }

/// Nothing may be thrown through a plugin.
template <typename Arguments, typename Body>
Error* guarded(Arguments* arguments, const Body& body) {
  const auto report = [&](Code code, std::string_view message) {
    return (*arguments->make_error)(code, message.data(), message.size());
  };
  try {
    return body(*static_cast<const KeyValueStore*>(arguments->user), report);
  } catch (const std::exception& problem) {
    return report(Code::Internal, problem.what());
  } catch (...) {
    return report(Code::Internal, "the key-value store failed");
  }
}

template <typename Arguments>
void hand_over(Arguments& arguments, const std::string& value) {
  arguments.value = new char[value.size() + 1];
  std::memcpy(arguments.value, value.c_str(), value.size() + 1);
  arguments.value_size = value.size();
  arguments.delete_value = [](char* text) -> void { delete[] text; };
}

Error* answer_get(KeyValueGet* get) {
  return guarded(get, [&](const KeyValueStore& store, const auto&) -> Error* {
    hand_over(*get,
              store.get(copied(get->key), std::chrono::milliseconds(get->timeout_milliseconds)));
    return nullptr;
  });
}

Error* answer_try_get(KeyValueTryGet* get) {
  return guarded(get, [&](const KeyValueStore& store, const auto& report) -> Error* {
    const std::optional<std::string> value = store.try_get(copied(get->key));
    if (!value) return report(Code::NotFound, "nobody has put " + copied(get->key));
    hand_over(*get, *value);
    return nullptr;
  });
}

Error* answer_put(KeyValuePut* put) {
  return guarded(put, [&](const KeyValueStore& store, const auto&) -> Error* {
    store.put(copied(put->key), copied(put->value));
    return nullptr;
  });
}

}  // namespace

void connect(ClientCreate& create, KeyValueStore& store) {
  if (store.get) {
    create.get = answer_get;
    create.get_user = &store;
  }
  if (store.put) {
    create.put = answer_put;
    create.put_user = &store;
  }
  if (store.try_get) {
    create.try_get = answer_try_get;
    create.try_get_user = &store;
  }
}

}  // namespace tessera::pjrt::c
