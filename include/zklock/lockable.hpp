/* SPDX-License-Identifier: Apache-2.0
 *
 * lockable.hpp - the parts of zklock.hpp's classes: the owner of a C object, waits by any clock,
 * and the standard's Lockable and TimedLockable. Programs use it only by those classes.
 */
#ifndef ZKLOCK_LOCKABLE_HPP
#define ZKLOCK_LOCKABLE_HPP

#include <zklock/error.hpp>
#include <zklock/zklock.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace zkl
{
using milliseconds = std::chrono::milliseconds;

namespace detail
{
inline void check(int rc)
{
    if (rc < 0)
        throw error(rc);
}

/* The outcome of a call whose name begins with try_. */
inline bool tried(int rc)
{
    if (rc == ZKL_EBUSY || rc == ZKL_ETIMEDOUT || rc == ZKL_EUNPROVED)
        return false;
    check(rc);
    return true;
}

/* C would see only the part before a NUL, which is another path. */
inline const char *c_text(const std::string &text)
{
    if (text.find('\0') != std::string::npos)
        throw error(ZKL_EINVAL, "a text with a NUL in it");
    return text.c_str();
}

inline const char *c_text_or_null(const std::string &text)
{
    return text.empty() ? nullptr : c_text(text);
}

/* A value out of int's range stays out of every range that C checks. */
inline int c_ms(milliseconds time)
{
    if (time.count() > std::numeric_limits<int>::max())
        return std::numeric_limits<int>::max();
    return time.count() < 0 ? -1 : static_cast<int>(time.count());
}

inline zkl_wait wait_for_ever() noexcept
{
    zkl_wait wait = ZKL_WAIT_INIT;
    return wait;
}

using nanoseconds = std::chrono::duration<double, std::nano>;

/* 31 years and more are forever; a time that is not positive is a try. */
inline zkl_wait wait_for(nanoseconds time) noexcept
{
    zkl_wait wait = wait_for_ever();
    if (!(time.count() > 0))
        wait.flags = ZKL_WAIT_TRY;
    else if (time.count() < 1e18)
        wait.deadline_ns = zkl_now_ns() + static_cast<std::int64_t>(time.count()) + 1;
    return wait;
}

/* Calls try_acquire until it returns true or the clock shows that time, even if the clock is set
 * meanwhile. A time that has passed at the start is not compared exactly, as it may be too long ago
 * for that. */
template <class Clock, class Duration, class TryAcquire>
auto until(const std::chrono::time_point<Clock, Duration> &time, TryAcquire try_acquire)
{
    for (;;) {
        const nanoseconds end = time.time_since_epoch(), now = Clock::now().time_since_epoch();
        auto acquired = try_acquire(wait_for(end - now));
        if (acquired || !(end > now) || Clock::now() >= time)
            return acquired;
    }
}

/* The text that a call writes as snprintf does. */
template <class Call, class... Args> std::string text_of(Call call, Args... args)
{
    std::string out(1280, '\0'); /* no path of a node is longer */
    const int length = call(args..., &out[0], out.size());
    check(length);
    out.resize(static_cast<std::size_t>(length));
    return out;
}

/* Owns a C object, or nothing. */
template <class Native, auto free_native> class handle
{
  public:
    handle() noexcept = default;
    explicit handle(Native *native) noexcept : native_(native) {}
    handle(handle &&other) noexcept : native_(std::exchange(other.native_, nullptr)) {}
    handle &operator=(handle &&other) noexcept
    {
        handle before(std::exchange(native_, std::exchange(other.native_, nullptr)));
        return *this;
    }
    ~handle()
    {
        if (native_) /* a moved-from object fails no call, and keeps zkl_error_detail */
            free_native(native_);
    }
    Native *native_handle() const noexcept { return native_; }

  protected:
    Native *native_ = nullptr;
};

/* Lockable and TimedLockable, for a class that has acquire_code(const zkl_wait &). */
template <class Lock> class timed_lockable
{
  public:
    void lock() { check(self().acquire_code(wait_for_ever())); }
    [[nodiscard]] bool try_lock() { return try_wait(wait_for(nanoseconds::zero())); }
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period> &time)
    {
        return try_wait(wait_for(time));
    }
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration> &time)
    {
        return until(time, [this](const zkl_wait &wait) { return try_wait(wait); });
    }

  private:
    Lock &self() { return static_cast<Lock &>(*this); }
    bool try_wait(const zkl_wait &wait) { return tried(self().acquire_code(wait)); }
};
} // namespace detail
} // namespace zkl

#endif
