// For LD_PRELOAD: a line in the file $MINIQAT_LOOK_UPS for each host that a program looks up, and for each connection
// that it asks for beyond this machine's own sockets.

#include <dlfcn.h>
#include <netdb.h>
#include <sys/socket.h>

#include <cstdio>
#include <cstdlib>

namespace {

void note(const char* call, const char* host) {
  const char* name = std::getenv("MINIQAT_LOOK_UPS");
  std::FILE* file = name == nullptr ? nullptr : std::fopen(name, "a");
  if (file == nullptr) return;
  std::fprintf(file, "%s %s\n", call, host);
  std::fclose(file);
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" int getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** found) {
  note("getaddrinfo", host == nullptr ? "" : host);
  return next<int(const char*, const char*, const addrinfo*, addrinfo**)>("getaddrinfo")(host, service, hints, found);
}

extern "C" int connect(int socket, const sockaddr* address, socklen_t size) {
  if (address->sa_family != AF_UNIX) note("connect", "");
  return next<int(int, const sockaddr*, socklen_t)>("connect")(socket, address, size);
}
