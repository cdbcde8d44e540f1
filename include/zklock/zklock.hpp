/* SPDX-License-Identifier: Apache-2.0
 *
 * zklock.hpp - zklock for C++17: locks for the standard's guards. Header only, over zklock.h.
 * error.hpp has the exception, lockable.hpp has lock() and its variants.
 *
 *     #include <zklock/zklock.hpp>
 *     #include <iostream>
 *     #include <mutex>
 *
 *     int main()
 *     {
 *         using namespace std::chrono_literals;
 *         try {
 *             zkl::client_options options;
 *             options.servers = "127.0.0.1:2181";
 *             options.connect_timeout = 10s;
 *             zkl::client client(options);
 *             zkl::mutex mutex(client, "/locks/report");
 *             {
 *                 std::unique_lock lock(mutex, 5s);
 *                 if (!lock.owns_lock())
 *                     return 75;
 *                 if (mutex.still_held(500ms))
 *                     std::cout << "mine, with token " << mutex.token() << '\n';
 *             }
 *             if (std::error_code code = zkl::last_unlock())
 *                 std::cerr << code.message() << '\n';
 *             return 0;
 *         } catch (const zkl::error &e) {
 *             std::cerr << e.what() << '\n';
 *             return 1;
 *         }
 *     }
 *
 * Classes and their counterparts in the standard:
 * - zkl::mutex         Lockable and TimedLockable; reentrant, as std::recursive_timed_mutex is
 * - zkl::shared_mutex  the same, and SharedTimedLockable, as std::shared_timed_mutex
 * - zkl::multi_lock    Lockable and TimedLockable: several locks as one
 * - zkl::semaphore     acquire and its variants as std::counting_semaphore's, with permits as
 *   objects
 *
 * Errors:
 * - A lock that is not acquired throws zkl::error. The only other exception is std::bad_alloc. The
 *   calls that begin with try_ return false (an empty permit) instead for ZKL_EBUSY, ZKL_ETIMEDOUT
 *   and ZKL_EUNPROVED, and throw everything else: no server reached, no right, a closed client.
 * - Calls that release (unlock, release, close, destructors) never throw. zkl::last_unlock()
 *   returns the result of the calling thread's last unlock or release.
 * - A thread can lose a hold while its guard lives. owns_lock() of std::unique_lock does not know
 *   of that and stays true; still_held(need) of the lock knows. Check it before each write, or let
 *   the resource compare token().
 *
 * Illegal:
 * - Moving, assigning to or destroying a lock that is held, waited for, or named by a guard. (A
 *   mutex that is destroyed while it is held is not freed, and stays locked until its client is
 *   closed.)
 * - Unlocking in another thread than the one that locked, for example after moving a guard there:
 *   nothing is released, and last_unlock() is ZKL_ENOTOWNER there. A zkl::semaphore_mutex, and a
 *   permit, belong to no thread.
 * - std::condition_variable_any with these locks: no other process can notify it, and if the lock
 *   cannot be acquired again after a wait, the standard terminates the program.
 *   std::condition_variable does not compile with them.
 * - std::scoped_lock and std::lock of several of these locks are legal, but they lock, try and
 *   release in turn over the network, and last_unlock() then reports only one of them: use a
 *   zkl::multi_lock.
 *
 * Times may be of any clock and any length; a time that is not positive is a try. A clock that is
 * set during a wait can end it early: the wait then begins anew, at the end of the queue.
 *
 * Objects are handles: a program can move them, but not copy them. Calls on a moved-from object
 * throw, or return, ZKL_EINVAL. native_handle() is the C object, for all calls without a method
 * here (async.h, inspect.h, metrics.h, guard.h). A lock may be destroyed after its client. Threads,
 * forks and callbacks: as in zklock.h.
 */
#ifndef ZKLOCK_ZKLOCK_HPP
#define ZKLOCK_ZKLOCK_HPP

#include <zklock/lockable.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace zkl
{
/* The result of an acquisition, as struct zkl_grant. */
struct grant {
    std::uint64_t token;
    milliseconds window;
    std::int64_t hold_count;
};

/* A bit that ends waits: put native_handle() into zkl_wait's cancel. */
class cancel : public detail::handle<zkl_cancel, zkl_cancel_free>
{
  public:
    cancel() { detail::check(zkl_cancel_new(&native_)); }
    void set() noexcept { zkl_cancel_set(native_); }
    bool is_set() const noexcept { return native_ && zkl_cancel_is_set(native_) == 1; }
};

/* --- client ------------------------------------------------------------- */

/* As struct zkl_client_options; an empty text and 0 are its defaults. Callbacks are functions and
 * not objects, because they may still run for a while after the client is destroyed. They must not
 * throw: */
struct client_options {
    std::string servers{};
    milliseconds session_timeout{0};
    milliseconds connect_timeout{0}; /* 0: the constructor does not wait for a server */
    milliseconds tick{0};
    std::string auth_scheme{};
    std::string auth_credential{};
    std::string auth_file{};
    std::string auth_env{};
    std::string tls_ca_file{};
    std::string tls_cert_file{};
    std::string tls_key_file{};
    std::string tls_passphrase_file{};
    std::string sasl_mechanism{};
    std::string sasl_user{};
    std::string sasl_password_file{};
    std::string sasl_service{};
    std::string sasl_host{};
    bool follow_ensemble = false; /* use the ensemble's own list of servers */
    enum zkl_acl acl = ZKL_ACL_OPEN;
    std::string owner{};
    void (*state_fn)(zkl_client *client, enum zkl_client_state state, void *arg) noexcept = nullptr;
    void *state_arg = nullptr;
    void (*log_fn)(const zkl_log_event *event, void *arg) noexcept = nullptr;
    void *log_arg = nullptr;
    enum zkl_log_level log_level = ZKL_LOG_INFO;
    std::int64_t ephemeral_bytes_max = 0;
};

/* One connection, of the process that opened it. The destructor closes it and waits 10 s at most
 * for that. */
class client : public detail::handle<zkl_client, zkl_client_free>
{
  public:
    explicit client(const client_options &options)
    {
        zkl_client_options native = ZKL_CLIENT_OPTIONS_INIT;
        native.servers = detail::c_text(options.servers);
        native.session_timeout_ms = detail::c_ms(options.session_timeout);
        native.connect_timeout_ms = detail::c_ms(options.connect_timeout);
        native.tick_ms = detail::c_ms(options.tick);
        native.auth_scheme = detail::c_text_or_null(options.auth_scheme);
        native.auth_credential = detail::c_text_or_null(options.auth_credential);
        native.auth_file = detail::c_text_or_null(options.auth_file);
        native.auth_env = detail::c_text_or_null(options.auth_env);
        native.tls_ca_file = detail::c_text_or_null(options.tls_ca_file);
        native.tls_cert_file = detail::c_text_or_null(options.tls_cert_file);
        native.tls_key_file = detail::c_text_or_null(options.tls_key_file);
        native.tls_passphrase_file = detail::c_text_or_null(options.tls_passphrase_file);
        native.sasl_mechanism = detail::c_text_or_null(options.sasl_mechanism);
        native.sasl_user = detail::c_text_or_null(options.sasl_user);
        native.sasl_password_file = detail::c_text_or_null(options.sasl_password_file);
        native.sasl_service = detail::c_text_or_null(options.sasl_service);
        native.sasl_host = detail::c_text_or_null(options.sasl_host);
        native.follow_ensemble = options.follow_ensemble;
        native.acl = options.acl;
        native.owner = detail::c_text_or_null(options.owner);
        native.state_fn = options.state_fn;
        native.state_arg = options.state_arg;
        native.log_fn = options.log_fn;
        native.log_arg = options.log_arg;
        native.log_level = options.log_level;
        native.ephemeral_bytes_max = options.ephemeral_bytes_max;
        detail::check(zkl_client_open(&native_, &native));
    }

    /* End the session: every hold is lost, every wait ends with ZKL_ECLOSED: zkl_client_close. */
    std::error_code close(milliseconds timeout) noexcept
    {
        return detail::code_of(zkl_client_close(native_, timeout.count()));
    }
    enum zkl_client_state state() const
    {
        int state = zkl_client_get_state(native_);
        detail::check(state);
        return static_cast<enum zkl_client_state>(state);
    }
    /* As zkl_client_session_id. 0: there is no session now. */
    std::int64_t session_id() const noexcept { return zkl_client_session_id(native_); }
    /* The address of the connected server, "address:port"; empty: there is no link. */
    std::string server() const
    {
        char buf[512];
        const int length = zkl_client_server(native_, buf, sizeof buf);
        if (length == ZKL_EDISCONNECTED)
            return {};
        detail::check(length);
        return buf;
    }
    /* Other servers of the same ensemble, for the next link: zkl_client_set_servers. */
    void set_servers(const std::string &servers)
    {
        detail::check(zkl_client_set_servers(native_, detail::c_text(servers)));
    }
};

/* --- mutex -------------------------------------------------------------- */

/* As struct zkl_lock_options; an empty text and 0 are its defaults. */
struct lock_options {
    enum zkl_names names = ZKL_NAMES_CURATOR;
    std::string owner{};
    bool revocable = false;
    bool posted_unlock = false;
    bool metrics = false;
};

/* As struct zkl_mutex_options: the options of all locks, and those of a mutex. */
struct mutex_options {
    enum zkl_names names = ZKL_NAMES_CURATOR;
    std::string owner{};
    bool revocable = false;
    bool posted_unlock = false;
    bool metrics = false;
    std::string name{};
    std::int64_t local_handoffs_max = 0;
    milliseconds retain{0};
};

namespace detail
{
template <class Native, class Options>
void fill_lock_options(Native &native, const Options &options)
{
    native.names = options.names;
    native.owner = c_text_or_null(options.owner);
    native.revocable = options.revocable;
    native.posted_unlock = options.posted_unlock;
    native.metrics = options.metrics;
}

/* The results live no longer than the options, to whose texts they point. */
inline zkl_lock_options c_options(const lock_options &options)
{
    zkl_lock_options native = ZKL_LOCK_OPTIONS_INIT;
    fill_lock_options(native, options);
    return native;
}

inline zkl_mutex_options c_options(const mutex_options &options)
{
    zkl_mutex_options native = ZKL_MUTEX_OPTIONS_INIT;
    fill_lock_options(native, options);
    native.name = c_text_or_null(options.name);
    native.local_handoffs_max = options.local_handoffs_max;
    native.retain_ms = options.retain.count();
    return native;
}
} // namespace detail

/* What all mutexes can do, halves of read-write locks among them. The object is a reference: its
 * user must keep the mutex alive. Its hold is that of the calling thread. */
class mutex_ref : public detail::timed_lockable<mutex_ref>
{
  public:
    explicit mutex_ref(zkl_mutex *native) noexcept : native_(native) {}

    /* lock() and its variants come from timed_lockable. This is zkl_mutex_acquire, for cancel
     * objects and leases. It throws for every reason not to acquire, ZKL_ETIMEDOUT and
     * ZKL_ECANCELED too. */
    grant acquire(const zkl_wait &wait = detail::wait_for_ever())
    {
        zkl_grant given = ZKL_GRANT_INIT;
        detail::check(zkl_mutex_acquire(native_, &wait, &given));
        return {given.token, milliseconds(given.window_ms), given.hold_count};
    }
    /* last_unlock() has the result. */
    void unlock() noexcept { detail::unlock_code() = zkl_mutex_unlock(native_); }

    /* True if held, and proved for that time from now. False also after any misuse. */
    [[nodiscard]] bool still_held(milliseconds need) const noexcept
    {
        return zkl_mutex_still_held(native_, need.count()) == 1;
    }
    /* The same with a reason: ZKL_ENOTOWNER, ZKL_ELOST, ZKL_EUNPROVED. */
    std::error_code check(milliseconds need) const noexcept
    {
        return detail::code_of(zkl_mutex_check(native_, need.count()));
    }
    /* 0: not held, or lost. */
    std::uint64_t token() const noexcept { return zkl_mutex_token(native_); }
    milliseconds window() const noexcept { return milliseconds(zkl_mutex_window_ms(native_)); }
    int hold_count() const noexcept { return zkl_mutex_hold_count(native_); }
    /* The state of the hold, and the reason if it is not HELD: as zkl_mutex_hold_state. 0: not
     * held. */
    int hold_state(enum zkl_reason *reason = nullptr) const noexcept
    {
        return zkl_mutex_hold_state(native_, reason);
    }
    /* How many calls wait through this handle, and the place of the first: as zkl_mutex_waiting. */
    int waiting(zkl_standing *standing = nullptr) const noexcept
    {
        return zkl_mutex_waiting(native_, standing);
    }
    bool revoke_requested() const noexcept { return zkl_mutex_revoke_requested(native_) == 1; }
    void renew(milliseconds lease) { detail::check(zkl_mutex_renew(native_, lease.count())); }
    std::string node_path() const { return detail::text_of(zkl_mutex_node_path, native_); }
    /* As zkl_mutex_set_callback. */
    void set_callback(void (*fn)(const zkl_hold_event *event, void *arg) noexcept, void *arg)
    {
        detail::check(zkl_mutex_set_callback(native_, fn, arg));
    }
    zkl_mutex *native_handle() const noexcept { return native_; }

    int acquire_code(const zkl_wait &wait) noexcept
    {
        return zkl_mutex_acquire(native_, &wait, nullptr);
    }

  protected:
    zkl_mutex *native_;
};

/* A handle on the mutex at a path. Reentrant: the thread that holds it may lock it again, and must
 * unlock as often. One thread must use one handle for a path (ZKL_EDEADLK). */
class mutex : public mutex_ref
{
  public:
    mutex(client &client, const std::string &path, const mutex_options &options = {})
        : mutex_ref(nullptr)
    {
        const zkl_mutex_options native = detail::c_options(options);
        detail::check(
            zkl_mutex_new(&native_, client.native_handle(), detail::c_text(path), &native));
    }
    mutex(mutex &&other) noexcept : mutex_ref(std::exchange(other.native_, nullptr)) {}
    mutex &operator=(mutex &&other) noexcept
    {
        zkl_mutex_free(std::exchange(native_, std::exchange(other.native_, nullptr)));
        return *this;
    }
    ~mutex() { zkl_mutex_free(native_); }

  protected:
    explicit mutex(zkl_mutex *native) noexcept : mutex_ref(native) {}
};

/* A mutex that is not reentrant and that any thread may unlock: zkl_semaphore_mutex_new. */
class semaphore_mutex : public mutex
{
  public:
    semaphore_mutex(client &client, const std::string &path, const lock_options &options = {})
        : mutex(nullptr)
    {
        const zkl_lock_options native = detail::c_options(options);
        detail::check(zkl_semaphore_mutex_new(&native_, client.native_handle(),
                                              detail::c_text(path), &native));
    }
};

/* --- read-write lock ---------------------------------------------------- */

/* Any number of readers (lock_shared), or one writer (lock). Fair: first come, first served. A
 * thread that has the write lock may also call lock_shared, and keeps the read lock when it
 * unlocks. A thread that has only the read lock gets ZKL_EDEADLK from lock. Each half has its own
 * hold: see reader().still_held(need), writer().token(). */
class shared_mutex : public detail::timed_lockable<shared_mutex>,
                     public detail::handle<zkl_rwlock, zkl_rwlock_free>
{
  public:
    shared_mutex(client &client, const std::string &path, const lock_options &options = {})
    {
        const zkl_lock_options native = detail::c_options(options);
        detail::check(
            zkl_rwlock_new(&native_, client.native_handle(), detail::c_text(path), &native));
    }

    void unlock() noexcept { writer().unlock(); }
    void lock_shared() { reader().lock(); }
    [[nodiscard]] bool try_lock_shared() { return reader().try_lock(); }
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_shared_for(const std::chrono::duration<Rep, Period> &time)
    {
        return reader().try_lock_for(time);
    }
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration> &time)
    {
        return reader().try_lock_until(time);
    }
    void unlock_shared() noexcept { reader().unlock(); }

    /* Readers share a node that stays on the server for that time at most; see rwlock.h. */
    void retain_readers(milliseconds retain)
    {
        detail::check(zkl_rwlock_retain_readers(native_, retain.count()));
    }

    /* The halves; they are valid as long as this object. */
    mutex_ref reader() const noexcept { return mutex_ref(zkl_rwlock_reader(native_)); }
    mutex_ref writer() const noexcept { return mutex_ref(zkl_rwlock_writer(native_)); }

    int acquire_code(const zkl_wait &wait) noexcept { return writer().acquire_code(wait); }
};

/* --- semaphore ---------------------------------------------------------- */

namespace detail
{
inline void release(zkl_permit *native) noexcept
{
    if (native)
        unlock_code() = zkl_permit_release(native);
}
} // namespace detail

/* One permit, or none: false. The destructor releases it; any thread may do that. */
class permit : public detail::handle<zkl_permit, detail::release>
{
  public:
    using handle::handle;
    explicit operator bool() const noexcept { return native_ != nullptr; }

    /* Release it now; last_unlock() has the result, too. */
    std::error_code release() noexcept
    {
        const int rc = detail::unlock_code() = zkl_permit_release(native_);
        if (rc != ZKL_EFORK && rc != ZKL_EINCALLBACK)
            native_ = nullptr;
        return detail::code_of(rc);
    }
    /* As the methods of mutex_ref. */
    [[nodiscard]] bool still_held(milliseconds need) const noexcept
    {
        return zkl_permit_still_held(native_, need.count()) == 1;
    }
    std::error_code check(milliseconds need) const noexcept
    {
        return detail::code_of(zkl_permit_check(native_, need.count()));
    }
    std::uint64_t token() const noexcept { return zkl_permit_token(native_); }
    milliseconds window() const noexcept { return milliseconds(zkl_permit_window_ms(native_)); }
    int hold_state(enum zkl_reason *reason = nullptr) const noexcept
    {
        return zkl_permit_hold_state(native_, reason);
    }
    bool revoke_requested() const noexcept { return zkl_permit_revoke_requested(native_) == 1; }
    void renew(milliseconds lease) { detail::check(zkl_permit_renew(native_, lease.count())); }
    std::string node_path() const { return detail::text_of(zkl_permit_node_path, native_); }
};

/* At most a number of permits are out at a time. permits 0: the number that the path has already.
 * The semaphore must outlive its permits: it is not freed while permits are out. */
class semaphore : public detail::handle<zkl_semaphore, zkl_semaphore_free>
{
  public:
    semaphore(client &client, const std::string &path, int permits,
              const lock_options &options = {})
    {
        const zkl_lock_options native = detail::c_options(options);
        detail::check(zkl_semaphore_new(&native_, client.native_handle(), detail::c_text(path),
                                        permits, &native));
    }

    /* With a wait: throws also ZKL_EBUSY, ZKL_ETIMEDOUT and so on. Never an empty permit. */
    [[nodiscard]] permit acquire(const zkl_wait &wait = detail::wait_for_ever())
    {
        zkl_permit *one = nullptr;
        detail::check(zkl_semaphore_acquire(native_, 1, &wait, &one));
        return permit(one);
    }
    /* All or none. */
    [[nodiscard]] std::vector<permit> acquire_many(int count,
                                                   const zkl_wait &wait = detail::wait_for_ever())
    {
        zkl_permit *natives[ZKL_PERMITS_AT_ONCE_MAX];
        std::vector<permit> permits(
            count > 0 && count <= ZKL_PERMITS_AT_ONCE_MAX ? static_cast<std::size_t>(count) : 0);
        detail::check(zkl_semaphore_acquire(native_, count, &wait, natives));
        for (std::size_t i = 0; i < permits.size(); i++)
            permits[i] = permit(natives[i]);
        return permits;
    }
    [[nodiscard]] permit try_acquire() { return try_wait(detail::wait_for(milliseconds(0))); }
    template <class Rep, class Period>
    [[nodiscard]] permit try_acquire_for(const std::chrono::duration<Rep, Period> &time)
    {
        return try_wait(detail::wait_for(time));
    }
    template <class Clock, class Duration>
    [[nodiscard]] permit try_acquire_until(const std::chrono::time_point<Clock, Duration> &time)
    {
        return detail::until(time, [this](const zkl_wait &wait) { return try_wait(wait); });
    }

    /* The number of permits as this handle knows it; 0: not known yet. */
    int permits() const noexcept { return zkl_semaphore_permits(native_); }
    /* As mutex_ref::waiting. */
    int waiting(zkl_standing *standing = nullptr) const noexcept
    {
        return zkl_semaphore_waiting(native_, standing);
    }
    /* For all clients. */
    void set_permits(int permits, const zkl_wait &wait = detail::wait_for_ever())
    {
        detail::check(zkl_semaphore_set_permits(native_, permits, &wait));
    }
    /* As zkl_semaphore_set_callback. */
    void set_callback(void (*fn)(const zkl_hold_event *event, void *arg) noexcept, void *arg)
    {
        detail::check(zkl_semaphore_set_callback(native_, fn, arg));
    }

  private:
    permit try_wait(const zkl_wait &wait)
    {
        zkl_permit *one = nullptr;
        return detail::tried(zkl_semaphore_acquire(native_, 1, &wait, &one)) ? permit(one)
                                                                             : permit();
    }
};

/* --- multi-lock --------------------------------------------------------- */

/* A member of a multi_lock: a mutex, half of a read-write lock, or some permits of a semaphore. */
class member
{
  public:
    member(const mutex_ref &mutex) noexcept : native_(zkl_member_mutex(mutex.native_handle())) {}
    member(const semaphore &semaphore, int count) noexcept
        : native_(zkl_member_semaphore(semaphore.native_handle(), count))
    {
    }
    const zkl_member &native() const noexcept { return native_; }

  private:
    zkl_member native_;
};

/* Several locks as one, all or none. Multi_locks cannot deadlock among themselves, whatever order
 * their members are named in:
 *
 *     zkl::multi_lock both(client, {from, to, {transfers, 1}});
 *     std::lock_guard guard(both);
 *
 * The members must outlive the multi_lock. As for a mutex, the holds are the calling thread's. */
class multi_lock : public detail::timed_lockable<multi_lock>,
                   public detail::handle<zkl_multi, zkl_multi_free>
{
  public:
    multi_lock(client &client, const std::vector<member> &members) : count_(members.size())
    {
        std::vector<zkl_member> natives;
        for (const member &one : members)
            natives.push_back(one.native());
        detail::check(
            zkl_multi_new(&native_, client.native_handle(), natives.data(), natives.size()));
    }

    /* One grant for each member, in their order; as mutex_ref::acquire. */
    std::vector<grant> acquire(const zkl_wait &wait = detail::wait_for_ever())
    {
        const zkl_grant none = ZKL_GRANT_INIT;
        std::vector<zkl_grant> given(count_, none);
        std::vector<grant> grants;
        grants.reserve(count_);
        detail::check(zkl_multi_acquire(native_, &wait, given.data()));
        for (const zkl_grant &one : given)
            grants.push_back({one.token, milliseconds(one.window_ms), one.hold_count});
        return grants;
    }
    /* last_unlock() is the worst result of all members. */
    void unlock() noexcept { detail::unlock_code() = zkl_multi_unlock(native_, nullptr); }

    [[nodiscard]] bool still_held(milliseconds need) const noexcept
    {
        return zkl_multi_still_held(native_, need.count()) == 1;
    }
    std::error_code check(milliseconds need) const noexcept
    {
        return detail::code_of(zkl_multi_check(native_, need.count()));
    }
    /* Of one member. */
    std::uint64_t token(std::size_t index) const noexcept
    {
        return zkl_multi_token(native_, index);
    }
    std::string node_path(std::size_t index) const
    {
        return detail::text_of(zkl_multi_node_path, native_, index);
    }
    /* The shortest. */
    milliseconds window() const noexcept { return milliseconds(zkl_multi_window_ms(native_)); }
    /* Of the member in the worst state: as zkl_multi_hold_state. */
    int hold_state(enum zkl_reason *reason = nullptr) const noexcept
    {
        return zkl_multi_hold_state(native_, reason);
    }

    int acquire_code(const zkl_wait &wait) noexcept
    {
        return zkl_multi_acquire(native_, &wait, nullptr);
    }

  private:
    std::size_t count_ = 0;
};
} // namespace zkl

#endif
