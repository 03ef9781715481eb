#pragma once
/// The plugin of tests/pjrt/plugin, whose devices are memory of this process, for one test alone.

#include <dlfcn.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <string>

#include "pjrt/plugin/control.h"
#include "tessera/base/error.h"
#include "tessera/pjrt/plugin.h"

namespace tessera::pjrt {

/// A copy of the plugin's file: a plugin is loaded once per file, so each copy begins anew.
class TestPlugin {
 public:
  TestPlugin() {
    std::string folder = (std::filesystem::temp_directory_path() / "pjrt.XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no folder for a test");
    folder_ = folder;
    file_ = folder + "/plugin.so";
    std::filesystem::copy_file(TESSERA_TEST_PLUGIN, file_);
    void* const library = dlopen(file_.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(dlerror());
    control_ = reinterpret_cast<Control* (*)()>(dlsym(library, kControlSymbol))();
  }
  TestPlugin(const TestPlugin&) = delete;
  ~TestPlugin() { std::filesystem::remove_all(folder_); }

  const std::string& file() const { return file_; }
  const std::string& folder() const { return folder_; }
  Control& control() const { return *control_; }
  const Plugin& load() const { return load_plugin(file_); }

 private:
  std::string folder_, file_;
  Control* control_ = nullptr;
};

/// What the error says; empty where there is none.
template <typename Body>
std::string error_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}
template <typename Body>
Fault fault_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.fault();
  }
  throw std::runtime_error("no error");
}

inline bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace tessera::pjrt
