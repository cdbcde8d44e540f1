/* SPDX-License-Identifier: Apache-2.0 */
/* zklock.hpp: mutexes are what the standard's guards take, and what goes wrong is said as promised. */
#include "cpp.hpp"

/* --- what they are ---------------------------------------------------------------------------- */

static_assert(is_handle<zkl::client> && is_handle<zkl::cancel> && is_handle<zkl::mutex> &&
              is_handle<zkl::semaphore_mutex>);
static_assert(std::is_base_of_v<std::system_error, zkl::error>);
static_assert(std::is_nothrow_copy_constructible_v<zkl::error>);
static_assert(noexcept(std::declval<zkl::mutex &>().unlock()) &&noexcept(zkl::last_unlock()));
static_assert(std::is_same_v<decltype(std::declval<zkl::mutex &>().try_lock()), bool>);
static_assert(std::is_error_code_enum_v<enum zkl_error>);

/* --- mutexes ---------------------------------------------------------------------------------- */

using unique = std::unique_lock<zkl::mutex>;

CPP_TEST(unique_lock_takes_a_mutex_in_each_way)
{
    check_guards<unique>(mutex, [&] {
        return mutex.still_held(0ms) && mutex.hold_count() == 1 && mutex.token() > 0 &&
               mutex.window() > 0ms;
    });
    check_num(mutex.hold_count(), ==, 0);
    other_holder<unique> other(mutex);
    check_kept_out<unique>(mutex);
}

/* Goal: the other guards; a mutex is reentrant, and a hold ends with its last guard. */
CPP_TEST(lock_guard_and_scoped_lock_take_a_mutex)
{
    {
        std::lock_guard outer(mutex);
        std::scoped_lock inner(mutex);
        check_num(mutex.hold_count(), ==, 2);
    }
    check_num(mutex.hold_count(), ==, 0);
    try {
        std::lock_guard guard(mutex);
        throw 5;
    } catch (int) {
        check_num(mutex.hold_count(), ==, 0);
    }
}

/* Goal: std::lock and std::scoped_lock of two mutexes end, whatever order two threads name them in. */
CPP_TEST(locks_of_two_end)
{
    zkl::mutex other(client, cluster_path("cpp-two"));
    auto there = std::async(std::launch::async, [&] { return take_both(mutex, other); });

    check_num(take_both(other, mutex), ==, 10);
    check_num(there.get(), ==, 10);
}

/* A clock that is wrong by hours, and runs only when it is looked at. */
struct odd_clock {
    using rep = std::int64_t;
    using period = std::milli;
    using duration = std::chrono::duration<rep, period>;
    using time_point = std::chrono::time_point<odd_clock>;
    static constexpr bool is_steady = false;
    static time_point now() { return time_point(duration(looks++ - 3600000)); }
    static rep looks;
};
odd_clock::rep odd_clock::looks;

/* Goal: times that no number of nanoseconds holds wait for ever; what has passed, though in nanoseconds it would
 * be another time, and what is no number, is a try: it acquires what is free and does not wait for what is not. */
CPP_TEST(times_may_be_of_any_size_and_clock)
{
    using double_hours = std::chrono::duration<double, std::ratio<3600>>;
    /* looks: at the odd clock, each of which waits for what is left. */
    const auto each_way = [&](odd_clock::rep looks) {
        int acquired = 0;
        const auto count = [&](bool yes) {
            acquired += yes;
            if (yes)
                mutex.unlock();
        };
        count(mutex.try_lock_for(-1ms));
        count(mutex.try_lock_for(0h));
        count(mutex.try_lock_for(std::chrono::hours::min()));
        count(mutex.try_lock_for(double_hours(std::numeric_limits<double>::quiet_NaN())));
        count(mutex.try_lock_for(double_hours(-std::numeric_limits<double>::infinity())));
        count(mutex.try_lock_until(std::chrono::steady_clock::time_point::min()));
        count(mutex.try_lock_until(std::chrono::system_clock::time_point::min()));
        using year_1513 = std::chrono::time_point<std::chrono::system_clock, std::chrono::hours>;
        count(mutex.try_lock_until(year_1513(-4000000h)));
        using no_time = std::chrono::time_point<std::chrono::system_clock, double_hours>;
        count(
            mutex.try_lock_until(no_time(double_hours(std::numeric_limits<double>::quiet_NaN()))));
        const auto end = odd_clock::now() + odd_clock::duration(looks);
        count(mutex.try_lock_until(end));
        check_true(acquired == 10 || odd_clock::now() >= end);
        return acquired;
    };

    check_num(each_way(1000), ==, 10);
    {
        other_holder<unique> other(mutex);
        check_num(each_way(20), ==, 0);
    }
    check_true(std::unique_lock(mutex, std::chrono::hours::max()).owns_lock());
    check_true(std::unique_lock(mutex, std::chrono::nanoseconds::max()).owns_lock());
    check_true(
        std::unique_lock(mutex, double_hours(std::numeric_limits<double>::infinity())).owns_lock());
    check_true(std::unique_lock(mutex, std::chrono::steady_clock::time_point::max()).owns_lock());
    check_true(std::unique_lock(mutex, std::chrono::system_clock::time_point::max()).owns_lock());
}

/* Goal: acquire gives the grant, takes a cancel object and a lease, and throws whatever ends it. */
CPP_TEST(acquire_gives_grants_and_says_why_not)
{
    zkl::cancel cancel;
    zkl_wait wait = ZKL_WAIT_INIT;
    zkl::grant grant = mutex.acquire();

    check_num(grant.token, ==, mutex.token());
    check_num(grant.window.count(), >, 0);
    check_num(grant.hold_count, ==, 1);
    check_num(mutex.acquire().hold_count, ==, 2);
    check_true(mutex.node_path().rfind(path, 0) == 0);
    mutex.unlock();
    mutex.unlock();
    wait.lease_ms = 60000;
    check_num(mutex.acquire(wait).hold_count, ==, 1);
    mutex.renew(1ms);
    check_wait(mutex.check(0ms) == ZKL_ELOST, WAIT_MS);
    check_num(thrown_by([&] { mutex.renew(1s); }), ==, ZKL_ELOST);
    mutex.unlock();
    check_true(zkl::last_unlock() == ZKL_ELOST);

    other_holder<unique> other(mutex);
    wait = zkl_wait ZKL_WAIT_INIT;
    wait.cancel = cancel.native_handle();
    check_true(!cancel.is_set());
    cancel.set();
    check_true(cancel.is_set());
    check_num(thrown_by([&] { mutex.acquire(wait); }), ==, ZKL_ECANCELED);
    wait = zkl_wait ZKL_WAIT_INIT;
    wait.flags = ZKL_WAIT_TRY;
    check_num(thrown_by([&] { mutex.acquire(wait); }), ==, ZKL_EBUSY);
    check_num(mutex.acquire_code(wait), ==, ZKL_EBUSY);
}

/* --- what goes wrong --------------------------------------------------------------------------- */

/* Goal: what is thrown is a std::system_error of our codes, which the standard's conditions can be compared
 * with, and its text is the detail. */
CPP_TEST(exceptions_carry_codes)
{
    try {
        zkl::mutex nowhere(client, "no slash");
        fail();
    } catch (const std::system_error &e) {
        check_true(e.code() == ZKL_EBADPATH && e.code() == std::errc::invalid_argument);
        check_true(std::strstr(e.what(), "no slash") != nullptr);
    }
    check_num(thrown_by([&] { zkl::mutex(client, std::string("/a\0b", 4)); }), ==, ZKL_EINVAL);
    check_num(thrown_by([&] { zkl::mutex(client, ""); }), ==, ZKL_EBADPATH);

    zkl::client_options bad = options();
    bad.session_timeout = -1ms;
    check_num(thrown_by([&] { zkl::client c(bad); }), ==, ZKL_EINVAL);
    bad = options();
    bad.connect_timeout = std::chrono::milliseconds::min();
    check_num(thrown_by([&] { zkl::client c(bad); }), ==, ZKL_EBADTIMEOUT);
    bad.servers = "127.0.0.1:1";
    bad.connect_timeout = 50ms;
    try {
        zkl::client nobody(bad);
        fail();
    } catch (const zkl::error &e) {
        check_true(e.code() == ZKL_EDISCONNECTED && e.is_retryable() && !e.is_lost());
    }
    check_true(zkl::error(ZKL_ELOST).is_lost());
    check_true(std::strcmp(zkl::error(ZKL_ELOST, "").what(), zkl_strerror(ZKL_ELOST)) == 0);
}

/* Goal: a guard whose hold is lost does not know of it; the mutex does, and the guard's destructor leaves the
 * reason in last_unlock(). After that the mutex can be locked anew. */
CPP_TEST(a_guard_outlives_its_hold)
{
    {
        std::unique_lock lock(mutex);
        lose(mutex);
        check_true(lock.owns_lock());
        check_true(!mutex.still_held(0ms));
        check_num(mutex.token(), ==, 0);
        check_num(thrown_by([&] { mutex.lock(); }), ==, ZKL_ELOST);
        check_num(thrown_by([&] { return mutex.try_lock(); }), ==, ZKL_ELOST);
    }
    check_true(zkl::last_unlock() == ZKL_ELOST && zkl_error_is_lost(zkl::last_unlock().value()));
    check_true(elsewhere([&] { return !zkl::last_unlock(); }));
    {
        std::lock_guard guard(mutex);
        check_true(mutex.still_held(0ms));
    }
    check_true(!zkl::last_unlock());
}

CPP_TEST(a_closed_client_refuses_and_unlocks)
{
    {
        std::lock_guard guard(mutex);
        check_true(client.state() == ZKL_CLIENT_CONNECTED);
        check_closed(client.close(WAIT_MS * 1ms).value());
        check_true(client.state() == ZKL_CLIENT_CLOSED);
        check_true(!mutex.still_held(0ms));
    }
    check_true(zkl::last_unlock() == ZKL_ELOST);
    check_num(thrown_by([&] { mutex.lock(); }), ==, ZKL_ECLOSED);
    check_num(thrown_by([&] { return mutex.try_lock(); }), ==, ZKL_ECLOSED);
    check_num(thrown_by([&] { return mutex.try_lock_for(1s); }), ==, ZKL_ECLOSED);
    check_num(thrown_by([&] { zkl::mutex(client, "/late"); }), ==, ZKL_ECLOSED);
    mutex.unlock();
    check_true(zkl::last_unlock() == ZKL_ENOTOWNER);
    std::unique_ptr<zkl::mutex> last;
    {
        zkl::client gone(options());
        last = std::make_unique<zkl::mutex>(gone, cluster_path("cpp-gone"));
    }
    last.reset();
}

/* Goal: what was moved from is refused, what was moved to works, and what an assignment replaces is freed. */
CPP_TEST(moved_from_objects_are_refused)
{
    zkl::client other(std::move(client));
    zkl::mutex &a = mutex, b(std::move(a)), c(other, cluster_path("cpp-moved"));

    check_num(thrown_by([&] { zkl::mutex(client, "/moved"); }), ==, ZKL_EINVAL);
    check_num(thrown_by([&] { a.lock(); }), ==, ZKL_EINVAL);
    check_num(thrown_by([&] { return a.try_lock(); }), ==, ZKL_EINVAL);
    a.unlock();
    check_true(zkl::last_unlock() == ZKL_EINVAL);
    check_true(!a.still_held(0ms) && a.check(0ms) == ZKL_EINVAL && a.token() == 0);
    c = std::move(b);
    std::lock_guard guard(c);
    check_true(c.still_held(0ms));
    check_true(c.node_path().find(path) == 0);
    check_true(b.native_handle() == nullptr);
}

/* Goal: a guard that was moved to another thread releases nothing there, and the thread can see
 * that in last_unlock. The lock still belongs to the thread that locked it. */
CPP_TEST(a_guard_unlocks_in_the_thread_that_locked)
{
    std::unique_lock lock(mutex);

    check_true(elsewhere([&] {
        std::unique_lock here(std::move(lock));
        here.unlock();
        return zkl::last_unlock() == ZKL_ENOTOWNER;
    }));
    check_true(!lock.owns_lock() && mutex.hold_count() == 1 && mutex.still_held(0ms));
    mutex.unlock();
    check_true(!zkl::last_unlock() && mutex.hold_count() == 0);
}

static std::string failed_call()
{
    check_num(zkl_mutex_lock(nullptr), ==, ZKL_EINVAL);
    return zkl_error_detail();
}

/* Goal: the end of an object that was moved from is no call: zkl_error_detail still has the last failure. */
CPP_TEST(the_end_of_a_moved_from_object_keeps_the_detail)
{
    auto first = std::make_unique<zkl::client>(std::move(client));
    const zkl::client second(std::move(*first));
    auto moved = std::make_unique<zkl::mutex>(std::move(mutex));
    const zkl::mutex kept(std::move(*moved));
    std::string before = failed_call();

    first.reset();
    check_true(before == zkl_error_detail());
    before = failed_call();
    moved.reset();
    check_true(before == zkl_error_detail());
    before = failed_call();
    {
        zkl::permit none;
    }
    check_true(before == zkl_error_detail());
    check_true(kept.native_handle() != nullptr);
}

/* Goal: session_id and server return what the C functions return. A wrong call of a number answers
 * 0. */
CPP_TEST(a_client_tells_its_session_and_server)
{
    char address[256];

    check_num(client.session_id(), !=, 0);
    check_num(client.session_id(), ==, zkl_client_session_id(client.native_handle()));
    check_num(zkl_client_server(client.native_handle(), address, sizeof address), >, 0);
    check_true(client.server() == address);
    client.set_servers(address);
    check_num(thrown_by([&] { client.set_servers("a"); }), ==, ZKL_EBADSERVERS);
    zkl::client moved(std::move(client));
    check_num(client.session_id(), ==, 0);
    check_num(thrown_by([&] { (void)client.server(); }), ==, ZKL_EINVAL);

    zkl::client_options nobody = options();
    nobody.servers = "127.0.0.1:1";
    nobody.connect_timeout = 0ms;
    const zkl::client alone(nobody);
    check_true(alone.session_id() == 0 && alone.server().empty());

    check_closed(moved.close(WAIT_MS * 1ms).value());
    check_num(moved.session_id(), ==, 0);
    check_num(thrown_by([&] { (void)moved.server(); }), ==, ZKL_ECLOSED);
}

/* Goal: a mutex shows the state of its hold, the reason, and the standing of its waiter. */
CPP_TEST(a_mutex_tells_its_hold_and_who_waits)
{
    zkl_reason reason = ZKL_REASON_LINK;
    zkl_standing standing = ZKL_STANDING_INIT;

    check_num(mutex.hold_state(&reason), ==, 0);
    check_num(reason, ==, ZKL_REASON_NONE);
    check_num(mutex.waiting(), ==, 0);
    {
        std::unique_lock lock(mutex);
        check_wait(mutex.hold_state() == ZKL_HOLD_HELD, WAIT_MS);
        std::thread waiter([&] { std::lock_guard guard(mutex); });
        check_wait(mutex.waiting(&standing) == 1 && standing.before == 1, WAIT_MS);
        check_num(standing.since_ns, >, 0);
        lose(mutex);
        check_num(mutex.hold_state(&reason), ==, ZKL_HOLD_LOST);
        check_num(reason, ==, ZKL_REASON_NODE_DELETED);
        lock.unlock();
        waiter.join();
    }
    zkl::mutex moved(std::move(mutex));
    check_true(mutex.hold_state() == 0 && mutex.waiting() == 0);
}

/* Goal: a forked child gets ZKL_EFORK from all it inherits, and its destructors harm nobody. */
CPP_TEST(a_forked_child_is_refused)
{
    if (UNDER_ASAN)
        skip(); /* children of a busy process hang under it */

    std::unique_lock lock(mutex);

    check_ok(in_child([&] {
        int wrong = thrown_by([&] { mutex.lock(); }) != ZKL_EFORK;
        wrong += thrown_by([&] { return mutex.try_lock_for(1s); }) != ZKL_EFORK;
        wrong += thrown_by([&] { zkl::mutex(client, "/child"); }) != ZKL_EFORK;
        wrong += mutex.still_held(0ms);
        wrong += mutex.hold_state() != 0 || mutex.waiting() != 0 || client.session_id() != 0;
        wrong += thrown_by([&] { (void)client.server(); }) != ZKL_EFORK;
        lock.unlock();
        wrong += zkl::last_unlock() != ZKL_EFORK;
        zkl::mutex gone(std::move(mutex));
        return wrong;
    }));
    check_true(mutex.still_held(0ms));
}
