#pragma once
/// Who owns an object of a plugin.

#include <memory>
#include <utility>

#include "tessera/pjrt/plugin.h"

namespace tessera::pjrt {

namespace c {
struct Event;
struct Client;
struct Device;
struct Memory;
struct Buffer;
struct Executable;
struct LoadedExecutable;
struct TopologyDescription;
}  // namespace c

/// The plugin's call that ends an object; nothing is thrown, as nobody could use it.
void destroy(const Plugin& plugin, c::Event* event) noexcept;
void destroy(const Plugin& plugin, c::Client* client) noexcept;
void destroy(const Plugin& plugin, c::Buffer* buffer) noexcept;
void destroy(const Plugin& plugin, c::Executable* executable) noexcept;
void destroy(const Plugin& plugin, c::LoadedExecutable* executable) noexcept;
void destroy(const Plugin& plugin, c::TopologyDescription* topology) noexcept;

/// An object of a plugin, destroyed with its handle; what it needs, such as its client, lives at
/// least as long.
template <typename T>
class Handle {
 public:
  Handle() = default;
  Handle(const Plugin& plugin, T* object, std::shared_ptr<const void> needs = {})
      : plugin_(&plugin), object_(object), needs_(std::move(needs)) {}
  Handle(Handle&& other) noexcept
      : plugin_(other.plugin_),
        object_(std::exchange(other.object_, nullptr)),
        needs_(std::move(other.needs_)) {}
  Handle& operator=(Handle&& other) noexcept {
    Handle old = std::move(*this);
    plugin_ = other.plugin_;
    object_ = std::exchange(other.object_, nullptr);
    needs_ = std::move(other.needs_);
    return *this;
  }
  ~Handle() {
    if (object_ != nullptr) destroy(*plugin_, object_);
  }

  T* get() const { return object_; }
  const Plugin& plugin() const { return *plugin_; }
  const std::shared_ptr<const void>& needs() const { return needs_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  const Plugin* plugin_ = nullptr;
  T* object_ = nullptr;
  std::shared_ptr<const void> needs_;
};

}  // namespace tessera::pjrt
