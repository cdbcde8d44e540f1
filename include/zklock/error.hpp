/* SPDX-License-Identifier: Apache-2.0
 *
 * error.hpp - zklock's codes in the form of C++: std::error_code, and the one exception of
 * zklock.hpp.
 *
 *     #include <zklock/error.hpp>
 *     #include <functional>
 *     #include <iostream>
 *
 *     static void guarded(const std::function<void()> &work)
 *     {
 *         try {
 *             work();
 *         } catch (const zkl::error &e) {
 *             if (e.code() == ZKL_EACCES || e.code() == std::errc::invalid_argument)
 *                 throw;
 *             std::cerr << e.what() << (e.is_retryable() ? ": again\n" : "\n");
 *         }
 *     }
 *
 *     int main() { guarded([] { throw zkl::error(ZKL_EBUSY); }); }
 */
#ifndef ZKLOCK_ERROR_HPP
#define ZKLOCK_ERROR_HPP

#if __cplusplus < 201703L
#error "zklock.hpp needs C++17: compile with -std=c++17 or later"
#endif

#include <zklock/error.h>

#include <stdexcept>
#include <string>
#include <system_error>

namespace std
{
template <> struct is_error_code_enum<enum zkl_error> : true_type {
};
} // namespace std

namespace zkl
{
namespace detail
{
class ZKL_API category_type final : public std::error_category
{
  public:
    const char *name() const noexcept override { return "zklock"; }
    std::string message(int code) const override { return zkl_strerror(code); }
    std::error_condition default_error_condition(int code) const noexcept override
    {
        switch (code) {
        case ZKL_EINVAL:
        case ZKL_EBADPATH:
        case ZKL_EBADTIMEOUT:
        case ZKL_EBADSERVERS:
            return std::errc::invalid_argument;
        case ZKL_EDEADLK:
            return std::errc::resource_deadlock_would_occur;
        case ZKL_ENOTOWNER:
            return std::errc::operation_not_permitted;
        case ZKL_EBUSY:
            return std::errc::device_or_resource_busy;
        case ZKL_ETIMEDOUT:
            return std::errc::timed_out;
        case ZKL_ECANCELED:
            return std::errc::operation_canceled;
        case ZKL_EDISCONNECTED:
            return std::errc::not_connected;
        case ZKL_ENOMEM:
            return std::errc::not_enough_memory;
        case ZKL_EACCES:
            return std::errc::permission_denied;
        default:
            return std::error_condition(code, *this);
        }
    }
};
} // namespace detail

/* The category of all these codes; its messages are zkl_strerror's. */
ZKL_API inline const std::error_category &category() noexcept
{
    static const detail::category_type the_category;
    return the_category;
}
} // namespace zkl

/* Lets a program write "e.code() == ZKL_ELOST"; "e.code() == std::errc::timed_out" works as
 * well. */
inline std::error_code make_error_code(enum zkl_error code) noexcept
{
    return std::error_code(code, zkl::category());
}

namespace zkl
{
/* The only exception of zklock.hpp. A std::system_error, as the standard's mutexes throw it, so
 * code that catches theirs and reads code() works unchanged. what() is zkl_error_detail() of the
 * thread that failed. */
class ZKL_API error : public std::system_error
{
  public:
    /* From a call that has just returned this code, on this thread. */
    explicit error(int code) : error(code, zkl_error_detail()) {}
    error(int code, const char *text)
        : std::system_error(code, category()), text_(*text ? text : zkl_strerror(code))
    {
    }
    const char *what() const noexcept override { return text_.what(); }
    /* As zkl_error_is_lost: a hold existed, and another client may have, or have had, the lock. */
    bool is_lost() const noexcept { return zkl_error_is_lost(code().value()) != 0; }
    /* As zkl_error_is_retryable: the same call may succeed later. */
    bool is_retryable() const noexcept { return zkl_error_is_retryable(code().value()) != 0; }

  private:
    std::runtime_error text_; /* a text that can be copied without an exception */
};

namespace detail
{
ZKL_API inline int &unlock_code() noexcept
{
    thread_local int code = 0;
    return code;
}

inline std::error_code code_of(int rc) noexcept
{
    return std::error_code(rc, category());
}

} // namespace detail

/* The result of the calling thread's last unlock or release, of any object: false if all was well.
 * Check it directly after the guard's block:
 * - ZKL_ELOST, ZKL_EDOUBT     another client may have held the lock: check what was written
 * - ZKL_EUNCONFIRMED          released, and the answer is still to come
 * - ZKL_EACCES                released, but the node stays until the session ends
 * - ZKL_ENOTOWNER and others  nothing was released */
inline std::error_code last_unlock() noexcept
{
    return detail::code_of(detail::unlock_code());
}
} // namespace zkl

#endif
