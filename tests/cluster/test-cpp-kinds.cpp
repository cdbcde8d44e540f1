/* SPDX-License-Identifier: Apache-2.0 */
/* zklock.hpp: read-write locks, permits and multi-locks, as the standard's guards and their own holders use them. */
#include "cpp.hpp"

#include <sys/resource.h>

static_assert(is_handle<zkl::shared_mutex> && is_handle<zkl::semaphore> && is_handle<zkl::permit> &&
              is_handle<zkl::multi_lock>);
static_assert(noexcept(std::declval<zkl::shared_mutex &>().unlock()) &&noexcept(
    std::declval<zkl::shared_mutex &>().unlock_shared())
                  &&noexcept(std::declval<zkl::multi_lock &>().unlock()) &&noexcept(
                      std::declval<zkl::permit &>().release()));
static_assert(std::is_default_constructible_v<zkl::permit> &&
              !std::is_convertible_v<zkl::permit, bool>);

using unique = std::unique_lock<zkl::shared_mutex>;
using sharing = std::shared_lock<zkl::shared_mutex>;

/* --- read-write locks --------------------------------------------------------------------------- */

struct with_shared : with_client {
    zkl::shared_mutex shared{client, path};
};

/* Goal: std::shared_lock shares, and keeps writers out. */
CPP_TEST_IN(with_shared, shared_lock_takes_a_shared_mutex_in_each_way)
{
    other_holder<sharing> other(shared);

    check_guards<sharing>(shared, [&] {
        return shared.reader().still_held(0ms) && !shared.writer().still_held(0ms) &&
               shared.reader().token() > 0;
    });
    check_num(shared.reader().hold_count(), ==, 0);
    check_kept_out<unique>(shared);
}

CPP_TEST_IN(with_shared, a_writer_of_a_shared_mutex_is_alone)
{
    check_guards<unique>(shared, [&] { return shared.writer().still_held(0ms); });
    other_holder<unique> other(shared);
    check_kept_out<unique>(shared);
    check_kept_out<sharing>(shared);
}

/* Goal: a writer may continue as a reader. A reader that asks to write gets the error that it would
 * wait for itself. */
CPP_TEST_IN(with_shared, a_shared_mutex_is_downgraded_and_not_upgraded)
{
    std::shared_lock reader(shared, std::defer_lock);

    {
        std::unique_lock writer(shared);
        reader.lock();
    }
    check_true(shared.reader().still_held(0ms) && !shared.writer().still_held(0ms));
    try {
        shared.lock();
        fail();
    } catch (const std::system_error &e) {
        check_true(e.code() == ZKL_EDEADLK && e.code() == std::errc::resource_deadlock_would_occur);
    }
    lose(shared.reader());
    check_true(reader.owns_lock() && !shared.reader().still_held(0ms));
    reader.unlock();
    check_true(zkl::last_unlock() == ZKL_ELOST);
    zkl::shared_mutex moved(std::move(shared));
    check_num(thrown_by([&] { shared.lock_shared(); }), ==, ZKL_EINVAL);
    check_true(std::shared_lock(moved).owns_lock());
}

/* --- semaphores ---------------------------------------------------------------------------------- */

CPP_TEST(permits_are_objects)
{
    zkl::semaphore semaphore(client, path, 2);
    zkl::permit one = semaphore.acquire(), none;

    check_true(one && !none && one.still_held(0ms) && one.token() > 0 && one.window() > 0ms);
    check_num(semaphore.permits(), ==, 2);
    check_wait(one.hold_state() == ZKL_HOLD_HELD && none.hold_state() == 0, WAIT_MS);
    {
        const zkl::permit two = semaphore.try_acquire_for(std::chrono::hours::max());
        check_true(two && two.node_path() != one.node_path());
        check_true(!semaphore.try_acquire());
        check_true(!semaphore.try_acquire_for(5ms));
        check_num(semaphore.waiting(), ==, 0);
        std::thread waiter([&] { (void)semaphore.acquire(); });
        check_wait(semaphore.waiting() == 1, WAIT_MS);
        check_true(!one.release());
        waiter.join();
        one = semaphore.acquire();
        check_true(!semaphore.try_acquire_until(std::chrono::system_clock::now() + 5ms));
    }
    check_true(!zkl::last_unlock());
    none = std::move(one);
    check_true(none && !one && !one.still_held(0ms));
    check_true(one.release() == ZKL_EINVAL && zkl::last_unlock() == ZKL_EINVAL);
    check_true(elsewhere([&] { return !none.release() && !none; }));
    one = semaphore.acquire();
    one = semaphore.acquire(); /* the one before is given back behind it */
    check_true(one && semaphore.try_acquire());
}

CPP_TEST(permits_are_taken_together_or_not_at_all)
{
    zkl::semaphore semaphore(client, path, 3);
    zkl_wait once = ZKL_WAIT_INIT;
    std::vector<zkl::permit> all = semaphore.acquire_many(3);

    once.flags = ZKL_WAIT_TRY;
    check_num(all.size(), ==, 3);
    all.pop_back();
    check_num(thrown_by([&] { (void)semaphore.acquire_many(2, once); }), ==, ZKL_EBUSY);
    check_num(thrown_by([&] { (void)semaphore.acquire(); }), ==, 0);
    check_num(thrown_by([&] { (void)semaphore.acquire_many(0); }), ==, ZKL_EINVAL);
    check_num(thrown_by([&] { (void)semaphore.acquire_many(-1); }), ==, ZKL_EINVAL);
    check_num(thrown_by([&] { (void)semaphore.acquire_many(1 << 30); }), ==, ZKL_EINVAL);
    semaphore.set_permits(4);
    check_num(semaphore.acquire_many(2, once).size(), ==, 2);

    zkl::semaphore other(client, path, 5);
    check_num(thrown_by([&] { (void)other.try_acquire(); }), ==, ZKL_EMISMATCH);
}

/* Goal: a lost permit says so, and its destructor leaves that in last_unlock(). */
CPP_TEST(a_permit_outlives_its_hold)
{
    zkl::semaphore semaphore(client, path, 1);

    {
        zkl::permit permit = semaphore.acquire();
        check_ok(wire_delete(raw, cluster_at(permit.node_path().c_str()), -1));
        check_wait(permit.check(0ms) == ZKL_ELOST, WAIT_MS);
        zkl_reason reason = ZKL_REASON_NONE;
        check_true(permit && !permit.still_held(0ms));
        check_true(permit.hold_state(&reason) == ZKL_HOLD_LOST &&
                   reason == ZKL_REASON_NODE_DELETED);
        check_num(thrown_by([&] { permit.renew(1s); }), ==, ZKL_ELOST);
    }
    check_true(zkl::last_unlock() == ZKL_ELOST);
    zkl::permit permit = semaphore.acquire();
    check_closed(client.close(WAIT_MS * 1ms).value());
    check_true(permit.release() == ZKL_ELOST && !permit);
    check_num(thrown_by([&] { (void)semaphore.try_acquire(); }), ==, ZKL_ECLOSED);
}

/* Goal: a mutex of one permit is locked by one thread and unlocked by another; a second lock waits. */
CPP_TEST(a_semaphore_mutex_belongs_to_no_thread)
{
    using any = std::unique_lock<zkl::semaphore_mutex>;
    zkl::semaphore_mutex one(client, path);

    check_guards<any>(one, [&] { return one.still_held(0ms); });
    one.lock();
    check_kept_out<any>(one);
    check_true(elsewhere([&] {
        one.unlock();
        return !zkl::last_unlock();
    }));
    check_true(one.try_lock());
    one.unlock();
}

/* --- multi-locks ---------------------------------------------------------------------------------- */

CPP_TEST(a_multi_lock_is_a_lock)
{
    zkl::mutex &a = mutex, b(client, cluster_path("cpp-multi"));
    zkl::shared_mutex shared(client, cluster_path("cpp-multi"));
    zkl::semaphore semaphore(client, cluster_path("cpp-multi"), 2);
    zkl::multi_lock all(client, {b, shared.reader(), a, {semaphore, 2}});
    using multi_guard = std::unique_lock<zkl::multi_lock>;

    check_guards<multi_guard>(all, [&] {
        return all.still_held(0ms) && a.still_held(0ms) && shared.reader().still_held(0ms) &&
               all.token(2) == a.token() && all.token(4) == 0 && all.window() > 0ms &&
               all.node_path(0) == b.node_path() &&
               wait_until(all.hold_state() == ZKL_HOLD_HELD, WAIT_MS);
    });
    check_true(!a.still_held(0ms) && !all.still_held(0ms));
    const std::vector<zkl::grant> grants = all.acquire();
    check_num(grants.size(), ==, 4);
    check_num(grants[0].token, ==, b.token());
    lose(a);
    check_true(all.check(0ms) == ZKL_ELOST && b.still_held(0ms));
    zkl_reason reason = ZKL_REASON_NONE;
    check_num(all.hold_state(&reason), ==, ZKL_HOLD_LOST);
    check_num(reason, ==, ZKL_REASON_NODE_DELETED);
    all.unlock();
    check_num(all.hold_state(), ==, 0);
    check_true(zkl::last_unlock() == ZKL_ELOST && !b.still_held(0ms));
    other_holder<std::unique_lock<zkl::mutex>> other(a);
    check_kept_out<multi_guard>(all);
    check_num(b.hold_count(), ==, 0);
    check_num(thrown_by([&] { zkl::multi_lock(client, {a, a}); }), ==, ZKL_EDEADLK);
    check_num(thrown_by([&] { zkl::multi_lock(client, {}); }), ==, ZKL_EINVAL);
    zkl::multi_lock moved(std::move(all));
    check_num(thrown_by([&] { all.lock(); }), ==, ZKL_EINVAL);
}

/* Goal: two threads that name the same locks in opposite orders both get them, and std::lock of a multi-lock and
 * another lock ends. */
CPP_TEST(multi_locks_do_not_wait_for_each_other)
{
    zkl::mutex other(client, cluster_path("cpp-orders")),
        beside(client, cluster_path("cpp-orders"));
    zkl::multi_lock theirs(client, {mutex, other}), ours(client, {other, mutex});
    auto there = std::async(std::launch::async, [&] { return take_both(theirs, beside); });

    check_num(take_both(beside, ours), ==, 10);
    check_num(there.get(), ==, 10);
}

/* --- what is not supported ------------------------------------------------------------------------- */

template <class Lock, class = void> inline constexpr bool takes = false;
template <class Lock>
inline constexpr bool takes<
    Lock,
    std::void_t<decltype(std::declval<std::condition_variable &>().wait(std::declval<Lock &>()))>> =
    true;
static_assert(takes<std::unique_lock<std::mutex>> && !takes<std::unique_lock<zkl::mutex>>);

enum { THROWN = 3 };

/* A wait on a condition, during which the client is closed. */
static int wait_for_a_condition(const zkl::client_options &options)
{
    zkl::client client(options);
    zkl::mutex mutex(client, "/cpp-condition");
    std::condition_variable_any condition;
    std::unique_lock lock(mutex);
    std::thread closer([&] {
        const std::lock_guard guard(mutex); /* it waits */
        (void)client.close(WAIT_MS * 1ms);
        condition.notify_all();
    });

    int thrown = thrown_by([&] { condition.wait(lock); });
    closer.join();
    if (thrown == ZKL_ECLOSED)
        _exit(THROWN); /* what the standard does not allow for, but libstdc++ does */
    return 0;
}

/* Goal: why zklock.hpp calls std::condition_variable_any illegal: where the mutex can't be locked again, wait does
 * not return. */
CPP_TEST_IN(with_nothing, a_condition_variable_can_not_go_on)
{
    if (UNDER_ASAN || UNDER_TSAN)
        skip(); /* they take the signal */

    const zkl::client_options own = options();
    const int status = in_child([&] {
        const rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        (void)!std::freopen("/dev/null", "w", stderr);
        return wait_for_a_condition(own);
    });
    check_true(status == THROWN || status == 100 + SIGABRT);
}
