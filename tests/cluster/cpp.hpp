/* SPDX-License-Identifier: Apache-2.0 */
/* What the C++ tests share, with the suite's own parts of C. */
#ifndef ZKTEST_CPP_HPP
#define ZKTEST_CPP_HPP

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <future>
#include <limits>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <zklock/zklock.hpp>

extern "C" {
#include "cluster.h"
#include "sanitizer.h"
}

using namespace std::chrono_literals;

/* cmocka jumps out of a test that fails, over the destructors that would end its threads. Here a failure is thrown,
 * and cmocka hears of it behind them. */
struct failure {
    const char *file;
    int line;
};
[[noreturn]] inline void throw_failure(const char *file, int line)
{
    throw failure{file, line};
}
#undef fail
#define fail() throw_failure(__FILE__, __LINE__)

template <auto test> void catch_failure(void **state)
{
    failure at = {__FILE__, __LINE__};

    try {
        return test(state);
    } catch (const failure &thrown) {
        at = thrown;
    } catch (const std::exception &e) {
        print_error("ERROR: %s\n", e.what());
    }
    _fail(at.file, at.line);
}

/* A test is a method of what it needs. */
#define CPP_TEST_IN(fixture, name)                                                                 \
    struct name : fixture {                                                                        \
        void run();                                                                                \
        static void runs(void **) { name().run(); }                                                \
    };                                                                                             \
    TEST_OF(name, catch_failure<name::runs>, cluster_raw_open, cluster_raw_close, nullptr)         \
    void name::run()
#define CPP_TEST(name) CPP_TEST_IN(with_client, name)

template <class T>
inline constexpr bool is_handle =
    !std::is_copy_constructible_v<T> && !std::is_copy_assignable_v<T> &&
    std::is_nothrow_move_constructible_v<T> && std::is_nothrow_move_assignable_v<T> &&
    std::is_nothrow_destructible_v<T>;

inline zkl::client_options options()
{
    const struct zkl_client_options c = cluster_options();
    zkl::client_options out;

    out.servers = c.servers;
    out.session_timeout = std::chrono::milliseconds(c.session_timeout_ms);
    out.connect_timeout = std::chrono::milliseconds(c.connect_timeout_ms);
    return out;
}

struct with_nothing {
};
/* A connected client, and a mutex of its. */
struct with_client {
    zkl::client client{options()};
    const std::string path = cluster_path("cpp");
    zkl::mutex mutex{client, path};
};

/* The code of the error that f throws; 0 if it throws none, and 1 if it throws another type, or an
 * error without a text. */
template <class F> int thrown_by(F f)
{
    try {
        f();
    } catch (const zkl::error &e) {
        return std::strlen(e.what()) > 0 && e.code().category() == zkl::category()
                   ? e.code().value()
                   : 1;
    } catch (...) {
        return 1;
    }
    return 0;
}

/* In a thread of its own, which is another owner. */
template <class F> auto elsewhere(F f)
{
    return std::async(std::launch::async, f).get();
}

/* Another thread has a guard on the lock for as long as this lives. */
template <class Guard> class other_holder
{
  public:
    explicit other_holder(typename Guard::mutex_type &lock)
    {
        std::atomic<bool> held{false};
        thread_ = std::thread([&] {
            Guard guard(lock);
            std::unique_lock<std::mutex> wait(mutex_);
            held = true;
            wake_.wait(wait, [this] { return done_; });
        });
        while (!held)
            std::this_thread::yield();
    }
    ~other_holder()
    {
        {
            std::lock_guard guard(mutex_);
            done_ = true;
        }
        wake_.notify_one();
        thread_.join();
    }

  private:
    std::thread thread_;
    std::mutex mutex_;
    std::condition_variable wake_;
    bool done_ = false;
};

/* The standard's guard in each of its ways, with times of both clocks, by which the calling thread holds: held(). */
template <class Guard, class Held> void check_guards(typename Guard::mutex_type &lock, Held held)
{
    const auto in_turn = [&](bool acquired, Guard &guard) {
        check_true(acquired && guard.owns_lock() && held());
        guard.unlock();
        check_true(!guard.owns_lock() && !held() && !zkl::last_unlock());
    };
    const auto once = [&](Guard &&guard) { in_turn(true, guard); };

    once(Guard(lock));
    once(Guard(lock, std::try_to_lock));
    once(Guard(lock, WAIT_MS * 1ms));
    once(Guard(lock, std::chrono::hours::max()));
    once(Guard(lock, std::chrono::steady_clock::now() + WAIT_MS * 1ms));
    once(Guard(lock, std::chrono::system_clock::now() + WAIT_MS * 1ms));
    (void)Guard(lock).release();
    once(Guard(lock, std::adopt_lock));
    {
        const Guard ends(lock);
    }
    check_true(!held() && !zkl::last_unlock());
    Guard guard(lock, std::defer_lock);
    check_true(!guard.owns_lock() && !held());
    guard.lock();
    in_turn(true, guard);
    in_turn(guard.try_lock(), guard);
    in_turn(guard.try_lock_for(WAIT_MS * 1ms), guard);
    in_turn(guard.try_lock_until(std::chrono::system_clock::now() + WAIT_MS * 1ms), guard);
}

/* None of them gets what somebody else holds. */
template <class Guard> void check_kept_out(typename Guard::mutex_type &lock)
{
    check_true(!Guard(lock, std::try_to_lock).owns_lock());
    check_true(!Guard(lock, 5ms).owns_lock());
    check_true(!Guard(lock, std::chrono::steady_clock::now() + 5ms).owns_lock());
    check_true(!Guard(lock, std::chrono::system_clock::now() + 5ms).owns_lock());
}

/* How often both were held of ten times. */
template <class A, class B> int take_both(A &first, B &second)
{
    int held = 0;

    for (int i = 0; i < 10; i++) {
        const std::scoped_lock guard(first, second);
        held += first.still_held(0ms) && second.still_held(0ms);
    }
    std::lock(first, second);
    first.unlock();
    second.unlock();
    return held;
}

/* Deletes the node that a hold of the mutex is. */
inline void lose(const zkl::mutex_ref &mutex)
{
    check_ok(wire_delete(raw, cluster_at(mutex.node_path().c_str()), -1));
    check_wait(mutex.check(0ms) == ZKL_ELOST, WAIT_MS);
}

/* What fn gives, as the exit status of a child, or 100 and the signal that ended it. */
template <class F> int in_child(F fn)
{
    int status = 0;
    const pid_t pid = fork();

    if (pid == 0) {
        alarm(60);
        _exit(fn());
    }
    check_num(waitpid(pid, &status, 0), ==, pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

#endif
