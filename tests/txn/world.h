// One world for tests of txn/: a store over an in-memory disk, a clock that only the test moves, seeded randomness, and
// commits to point refs at.
//
// Objects are put as loose files straight into a repository's object directory, as if they had been there for ever: what
// is tested here is refs, files and rows. Packs and Git children are tested on a real disk (snapshot_test, daemon/).
#ifndef REPOTXN_TESTS_TXN_WORLD_H_
#define REPOTXN_TESTS_TXN_WORLD_H_

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <openssl/sha.h>
#include <zlib.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "refs/ref_name.h"
#include "refs/ref_value.h"
#include "storage/file_system.h"
#include "storage/log.h"
#include "tests/support/memory_file_system.h"
#include "tests/support/scripted_clock.h"
#include "tests/support/seeded_random.h"
#include "tests/support/status_matchers.h"
#include "txn/layout.h"
#include "txn/store.h"

namespace repotxn::testing {

inline std::string Deflate(const std::string& bytes) {
  uLongf size = compressBound(bytes.size());
  std::string out(size, '\0');
  compress(reinterpret_cast<Bytef*>(&out[0]), &size, reinterpret_cast<const Bytef*>(bytes.data()),
           bytes.size());
  out.resize(size);
  return out;
}

// A loose object: its id and the bytes of its file.
struct LooseObject {
  ObjectId oid;
  std::string file;
};

inline LooseObject MakeLooseObject(const std::string& type, const std::string& content) {
  const std::string object = absl::StrCat(type, " ", content.size()) + std::string(1, '\0') + content;
  std::string digest(SHA_DIGEST_LENGTH, '\0');
  SHA1(reinterpret_cast<const unsigned char*>(object.data()), object.size(),
       reinterpret_cast<unsigned char*>(&digest[0]));
  return LooseObject{*ObjectId::FromBytes(digest), Deflate(object)};
}

// Commit number n, over the empty tree.
inline LooseObject MakeCommit(int n) {
  return MakeLooseObject("commit",
                         absl::StrCat("tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n"
                                      "author A <a@example.org> ", n, " +0000\n"
                                      "committer A <a@example.org> ", n, " +0000\n\n", n, "\n"));
}

inline refs::RefName Ref(absl::string_view name) { return refs::RefName::Literal(name); }
inline refs::RefName Branch(absl::string_view name) { return Ref(absl::StrCat("refs/heads/", name)); }
inline txn::RepositoryPath Path(absl::string_view path) { return *txn::RepositoryPath::Parse(path); }

class World {
 public:
  explicit World(uint64_t seed = 1) : random_(seed) { storage::SetLogLevel(storage::LogLevel::kNone); }

  // Options that make everything happen when the test says so.
  static txn::StoreOptions Options() {
    txn::StoreOptions options;
    options.create_if_missing = true;
    options.segment_bytes = 256 << 10;
    options.background_thread = false;
    options.lock_wait = absl::ZeroDuration();
    // The suites run both ways: results must not depend on it (tests/CMakeLists.txt).
    const char* const intents = std::getenv("REPOTXN_TEST_INTENT_QUEUE");
    if (intents != nullptr) options.intent_queue = absl::string_view(intents) != "off";
    return options;
  }

  absl::Status Open(const txn::StoreOptions& options = Options()) { return OpenOn(fs_.get(), options); }
  absl::Status OpenOn(storage::FileSystem* fs, const txn::StoreOptions& options = Options()) {
    return OpenIn({fs, &clock_, &random_}, options);
  }
  absl::Status OpenIn(const txn::Environment& environment, const txn::StoreOptions& options = Options()) {
    auto store = txn::Store::Open(environment, options);
    if (!store.ok()) return store.status();
    store_ = *std::move(store);
    return absl::OkStatus();
  }
  // Closes (or, without, drops) the store and goes on with what a crash at this moment leaves.
  void CrashAndKeep(const CrashOptions& options) {
    auto clone = fs_->CrashClone(options);
    store_.reset();
    fs_ = std::move(clone);
  }
  absl::Status Reopen() {
    REPOTXN_RETURN_IF_ERROR(store_->Close());
    store_.reset();
    return Open();
  }

  txn::Store& store() { return *store_; }
  bool is_open() const { return store_ != nullptr; }
  void Drop() { store_.reset(); }
  MemoryFileSystem& fs() { return *fs_; }
  std::unique_ptr<MemoryFileSystem>& owned_fs() { return fs_; }
  ScriptedClock& clock() { return clock_; }
  SeededRandom& random() { return random_; }

  // Makes a repository and puts commits 0..9 into it.
  RepositoryId Create(absl::string_view path) {
    RepositoryId id;
    const auto result = store_->Run({}, [&](txn::Transaction& txn) -> absl::Status {
      auto created = txn.CreateRepository(Path(path), {});
      if (created.ok()) id = *created;
      return created.status();
    });
    EXPECT_THAT(result.status, IsOk());
    for (int n = 0; n < 10; ++n) PutObject(id, MakeCommit(n));
    return id;
  }
  void PutObject(const RepositoryId& id, const LooseObject& object) {
    const std::string hex = object.oid.ToHex();
    const storage::StorePath directory = txn::layout::RepositoryDirectory(id) / "objects" / hex.substr(0, 2);
    EXPECT_THAT(storage::MakeDirectories(*fs_, directory), IsOk());
    EXPECT_THAT(storage::WriteFile(*fs_, directory / hex.substr(2), object.file, 0444), IsOk());
    EXPECT_THAT(fs_->SyncAll(), IsOk());
  }
  // The value "commit n".
  static refs::RefValue At(int n) { return refs::RefValue::Object(MakeCommit(n).oid); }

  std::unique_ptr<txn::Transaction> Begin() {
    auto transaction = store_->Begin({});
    EXPECT_THAT(transaction, IsOk());
    return *std::move(transaction);
  }
  // Sets a ref in a transaction of its own.
  txn::CommitResult Set(const RepositoryId& id, const refs::RefName& name, const refs::RefValue& value) {
    return store_->Run({}, [&](txn::Transaction& txn) {
      return txn.UpdateRef(id, {.name = name, .expected = {}, .value = value});
    });
  }
  refs::RefValue Read(const RepositoryId& id, const refs::RefName& name) {
    auto value = Begin()->ReadRef(id, name);
    EXPECT_THAT(value, IsOk());
    return value.ok() ? *value : refs::RefValue::Absent();
  }
  // All refs and HEAD as text: "name value" lines.
  std::string Refs(const RepositoryId& id) {
    auto transaction = Begin();
    auto refs = transaction->ListRefs(id, "");
    EXPECT_THAT(refs, IsOk());
    std::string text = absl::StrCat("HEAD ", Read(id, refs::RefName::Head()).ToString(), "\n");
    for (const auto& [name, value] : *refs) absl::StrAppend(&text, name.text(), " ", Name(value), "\n");
    return text;
  }
  // "c<n>" for commit n of this world.
  static std::string Name(const refs::RefValue& value) {
    for (int n = 0; n < 10; ++n) {
      if (value.SameAs(At(n))) return absl::StrCat("c", n);
    }
    return value.ToString();
  }

 private:
  std::unique_ptr<MemoryFileSystem> fs_ = std::make_unique<MemoryFileSystem>();
  ScriptedClock clock_;
  SeededRandom random_;
  std::unique_ptr<txn::Store> store_;
};

}  // namespace repotxn::testing

#endif  // REPOTXN_TESTS_TXN_WORLD_H_
