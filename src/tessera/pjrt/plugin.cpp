#include "tessera/pjrt/plugin.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>

#include "tessera/pjrt/c/call.h"

namespace tessera::pjrt {

namespace {

/// A library whose symbols nobody else sees, so that two plugins can have the same ones.
struct CloseLibrary {
  void operator()(void* library) const { dlclose(library); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

std::string last_problem() {
  const char* const problem = dlerror();
  return problem == nullptr ? "no reason given" : problem;
}

/// Which file a path leads to.
using FileId = std::pair<dev_t, ino_t>;
FileId file_id(const std::string& file) {
  struct stat about {};
  if (stat(file.c_str(), &about) != 0) {
    fail(Fault::Resource, file, ": no such plugin; give one of ", join(plugin_names()),
         ", which ./dev accelerator brings, or the path of its .so file");
  }
  if (!S_ISREG(about.st_mode)) {
    fail(Fault::Resource, file, " is no file; give the path of the plugin's .so file");
  }
  return {about.st_dev, about.st_ino};
}

/// What a process maps of a library, in bytes from the file's first; 0: the file is none of 64 bits.
std::uint64_t bytes_to_map(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  Elf64_Ehdr head = {};
  in.read(reinterpret_cast<char*>(&head), sizeof head);
  if (!in || !std::equal(head.e_ident, head.e_ident + SELFMAG, ELFMAG) ||
      head.e_ident[EI_CLASS] != ELFCLASS64)
    return 0;
  std::uint64_t out = head.e_phoff + std::uint64_t{head.e_phnum} * sizeof(Elf64_Phdr);
  in.seekg(static_cast<std::streamoff>(head.e_phoff));
  for (int i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr part = {};
    in.read(reinterpret_cast<char*>(&part), sizeof part);
    if (in && part.p_type == PT_LOAD) out = std::max(out, part.p_offset + part.p_filesz);
  }
  return out;
}

/// The dynamic linker maps a file that was cut off, and then the process ends by SIGBUS.
void require_whole(const std::string& file) {
  const std::uint64_t has = std::filesystem::file_size(file), needs = bytes_to_map(file);
  if (has < needs)
    fail(Fault::Resource, file, ": has ", has, " bytes, and says that it has at least ", needs,
         ": it was cut off; bring it again, with ./dev accelerator");
}

/// Threads of a plugin work on while a process ends, and abort it where the destructors of the library
/// have ended what they use. So there are to be none: what was written is on its way by then.
void leave_at_once(int status, void*) {
  std::cout.flush(), std::fflush(nullptr);
  _exit(status);
}

std::unique_ptr<Plugin> open_plugin(const std::string& file) {
  // A name without a slash would be looked for in the system's folders.
  const std::string path = std::filesystem::absolute(file).string();
  require_whole(path);
  Library library(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (library == nullptr) {
    fail(Fault::Resource, file, ": cannot be loaded: ", last_problem(),
         "; is it a plugin for this machine, and is what it needs installed?");
  }
  void* const symbol = dlsym(library.get(), "GetPjrtApi");
  if (symbol == nullptr) {
    fail(Fault::Resource, file, ": no PJRT plugin: it has no GetPjrtApi; give another .so file");
  }
  const c::Api* const api = reinterpret_cast<const c::Api* (*)()>(symbol)();
  if (api == nullptr || api->head.size < offsetof(c::Api, calls)) {
    fail(Fault::Resource, file,
         ": GetPjrtApi returns no table; take another version of the plugin");
  }
  static_cast<void>(library.release());      // what has run must stay
  if (on_exit(leave_at_once, nullptr) != 0)  // called before what was registered earlier
    fail(Fault::Resource, file, ": no room for what is to be done at the end of the process");
  return std::make_unique<Plugin>(file, api);
}

void check_version(const Plugin& plugin) {
  const InterfaceVersion has = plugin.version();
  if (has.major == kOldestInterface.major && has.minor >= kOldestInterface.minor) return;
  fail(Fault::Resource, plugin.file(), ": its interface is ", has, ", and Tessera needs ",
       kOldestInterface, " or a later ", kOldestInterface.major,
       ".x; take another version of the plugin");
}

}  // namespace

std::string to_text(const InterfaceVersion& version) {
  return text(version.major, ".", version.minor);
}

Plugin::Plugin(std::string file, const c::Api* api) : file_(std::move(file)), api_(api) {
  check_version(*this);
  auto initialize = c::arguments<c::PluginInitialize>();
  c::call(*this, initialize);
  auto attributes = c::arguments<c::PluginAttributes>();
  if (c::call_if_there(*this, attributes)) {
    attributes_ = c::copy(*this, c::Call::PluginAttributes, attributes.attributes);
  }
}

InterfaceVersion Plugin::version() const { return {api_->version.major, api_->version.minor}; }

const Plugin& load_plugin(const std::string& file) {
  // The one thing that outlives all callers: a library is loaded once per process, and may be
  // initialised only once.
  static std::mutex mutex;
  static auto& loaded = *new std::map<FileId, std::unique_ptr<Plugin>>;
  const std::lock_guard<std::mutex> lock(mutex);
  const FileId id = file_id(file);
  auto found = loaded.find(id);
  if (found == loaded.end()) found = loaded.emplace(id, open_plugin(file)).first;
  return *found->second;
}

}  // namespace tessera::pjrt
