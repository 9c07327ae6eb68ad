#include "daemon/elastic_pool.h"

#include <system_error>
#include <utility>

namespace repotxn::daemon {

void ElasticPool::Run(std::function<void()> task) {
  storage::MutexLock lock(&mutex_);
  if (is_shut_) return;
  tasks_.push_back(std::move(task));
  if (tasks_.size() > idle_ && threads_.size() < threads_max_) {
    try {
      threads_.emplace_back([this] { Work(); });
    } catch (const std::system_error&) {
      // The machine has no thread left: the task waits for one of ours.
    }
  }
  changed_.Signal();
}

void ElasticPool::Work() {
  while (true) {
    std::function<void()> task;
    {
      storage::MutexLock lock(&mutex_);
      ++idle_;
      while (tasks_.empty() && !is_shut_) changed_.Wait(&mutex_);
      --idle_;
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

void ElasticPool::Shutdown() {
  std::vector<std::thread> threads;
  {
    storage::MutexLock lock(&mutex_);
    is_shut_ = true;
    threads.swap(threads_);
    changed_.SignalAll();
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace repotxn::daemon
