#include "base/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include "base/error.h"

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

}  // namespace tutti
