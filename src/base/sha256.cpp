#include "base/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include "tutti/error.h"

namespace tutti {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  if (EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) != 1) throw Error("OpenSSL offers no SHA-256");
}

Sha256::~Sha256() = default;

void Sha256::update(const void* data, std::size_t bytes) { EVP_DigestUpdate(state_->context, data, bytes); }

std::string Sha256::hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  EVP_DigestFinal_ex(state_->context, digest, &length);
  std::string text;
  for (unsigned int i = 0; i < length; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

std::string sha256_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error("cannot open {}: {}", path.string(), std::strerror(errno));
  Sha256 hash;
  std::vector<char> piece(1 << 20);
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())) || file.gcount() > 0)
    hash.update(piece.data(), static_cast<std::size_t>(file.gcount()));
  if (file.bad()) throw Error("cannot read {}: {}", path.string(), std::strerror(errno));
  return hash.hex();
}

}  // namespace tutti
