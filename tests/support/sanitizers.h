// Whether this build runs under a sanitizer that brings its own operator new, so that a test cannot replace it.
#ifndef REPOTXN_TESTS_SUPPORT_SANITIZERS_H_
#define REPOTXN_TESTS_SUPPORT_SANITIZERS_H_

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define REPOTXN_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define REPOTXN_SANITIZED 1
#endif
#endif

#ifndef REPOTXN_SANITIZED
#define REPOTXN_SANITIZED 0
#endif

#endif  // REPOTXN_TESTS_SUPPORT_SANITIZERS_H_
