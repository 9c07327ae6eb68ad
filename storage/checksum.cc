#include "storage/checksum.h"

#include <openssl/evp.h>
#include <openssl/sha.h>

#include <cstdlib>
#include <cstring>

#include "storage/check.h"
#include "xxhash.h"

namespace repotxn::storage {

static_assert(kSha256Bytes == SHA256_DIGEST_LENGTH);
static_assert(sizeof(XXH128_canonical_t) == sizeof(Xxh128));

uint64_t Xxh3(absl::string_view data) { return XXH3_64bits(data.data(), data.size()); }

uint64_t Xxh3Seeded(absl::string_view data, uint64_t seed) {
  return XXH3_64bits_withSeed(data.data(), data.size(), seed);
}

Xxh128 Xxh3Wide(absl::string_view data) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(data.data(), data.size()));
  Xxh128 result;
  std::memcpy(result.bytes.data(), canonical.digest, sizeof(canonical.digest));
  return result;
}

std::string Sha256(absl::string_view data) {
  // The one-shot call of the library looks the algorithm up each time, which costs more than
  // hashing 200 bytes. A context for each thread, initialised with the algorithm once, does not.
  struct Cached {
    EVP_MD* algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    ~Cached() {
      EVP_MD_CTX_free(context);
      EVP_MD_free(algorithm);
    }
  };
  static thread_local Cached cached;
  std::string digest(kSha256Bytes, '\0');
  auto* const out = reinterpret_cast<unsigned char*>(digest.data());
  const bool done = EVP_DigestInit_ex(cached.context, cached.algorithm, nullptr) == 1 &&
                    EVP_DigestUpdate(cached.context, data.data(), data.size()) == 1 &&
                    EVP_DigestFinal_ex(cached.context, out, nullptr) == 1;
  if (!done) std::abort();  // Only exhausted memory fails here; a wrong digest must not travel.
  return digest;
}

std::string Sha1(absl::string_view data) {
  std::string digest(SHA_DIGEST_LENGTH, '\0');
  auto* const out = reinterpret_cast<unsigned char*>(digest.data());
  if (EVP_Digest(data.data(), data.size(), out, nullptr, EVP_sha1(), nullptr) != 1) std::abort();
  return digest;
}

struct Sha256Stream::Context {
  EVP_MD_CTX* context = EVP_MD_CTX_new();

  Context() { Begin(); }
  ~Context() { EVP_MD_CTX_free(context); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  void Begin() {
    if (EVP_DigestInit_ex(context, EVP_sha256(), nullptr) != 1) std::abort();
  }
};

Sha256Stream::Sha256Stream() : context_(std::make_unique<Context>()) {}
Sha256Stream::~Sha256Stream() = default;
Sha256Stream::Sha256Stream(Sha256Stream&&) noexcept = default;
Sha256Stream& Sha256Stream::operator=(Sha256Stream&&) noexcept = default;

void Sha256Stream::Update(absl::string_view data) {
  REPOTXN_DCHECK(context_ != nullptr);
  if (EVP_DigestUpdate(context_->context, data.data(), data.size()) != 1) std::abort();
}

std::string Sha256Stream::Finish() {
  REPOTXN_DCHECK(context_ != nullptr);
  std::string digest(kSha256Bytes, '\0');
  auto* const out = reinterpret_cast<unsigned char*>(digest.data());
  if (EVP_DigestFinal_ex(context_->context, out, nullptr) != 1) std::abort();
  context_->Begin();
  return digest;
}

}  // namespace repotxn::storage
