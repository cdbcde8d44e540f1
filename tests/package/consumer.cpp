/* A C++ program of somebody else, built with the installed pkg-config file alone. Without a server it says what
 * the exception says; every method of every class is at least compiled. */
#include <iostream>
#include <mutex>
#include <shared_mutex>
#include <zklock/zklock.hpp>

using namespace std::chrono_literals;

static const auto later = std::chrono::system_clock::now() + 1s;

static void on_state(zkl_client *, enum zkl_client_state, void *) noexcept {}

static void on_hold(const zkl_hold_event *, void *) noexcept {}

static void on_log(const zkl_log_event *, void *) noexcept {}

static zkl::client open_client(const char *servers)
{
    zkl::client_options options;
    options.servers = servers;
    options.session_timeout = 10s;
    options.connect_timeout = 1ms;
    options.state_fn = on_state;
    options.log_fn = on_log;
    options.log_level = ZKL_LOG_DEBUG;
    return zkl::client(options);
}

template <class Hold> static bool ask(const Hold &hold)
{
    std::cout << hold.token() << hold.window().count() << hold.node_path();
    enum zkl_reason reason;
    return hold.still_held(500ms) && !hold.check(500ms) && !hold.revoke_requested() &&
           hold.hold_state(&reason) == ZKL_HOLD_HELD;
}

static bool mutexes(zkl::client &client)
{
    zkl::cancel cancel;
    zkl_wait wait = ZKL_WAIT_INIT;
    zkl::mutex_options options;
    options.revocable = true;
    zkl::mutex mutex(client, "/consumer/mutex", options);
    zkl::semaphore_mutex any(client, "/consumer/any");
    mutex.set_callback(on_hold, nullptr);
    wait.cancel = cancel.native_handle();
    std::lock_guard first(mutex);
    std::unique_lock second(any, 2s), third(any, later);
    std::scoped_lock fourth(mutex, any);
    mutex.renew(1s);
    cancel.set();
    return cancel.is_set() && ask(mutex) && mutex.hold_count() > 1 && mutex.waiting() == 0 &&
           mutex.acquire(wait).token != 0;
}

#if __cplusplus >= 202002L
/* What C++20 has for options: only what differs is named. */
static bool designated(zkl::client &client)
{
    zkl::client another({.servers = "127.0.0.1:2181", .tick = 2s, .owner = "consumer"});
    zkl::mutex mutex(client, "/consumer/designated", {.owner = "consumer", .retain = 1s});
    zkl::shared_mutex shared_mutex(client, "/consumer/shared", {.revocable = true});
    zkl::semaphore semaphore(client, "/consumer/semaphore", 5, {.metrics = true});
    return mutex.hold_count() == 0 && semaphore.permits() == 0 && another.session_id() == 0;
}
#else
static bool designated(zkl::client &)
{
    return true;
}
#endif

static bool shared(zkl::client &client)
{
    zkl::shared_mutex shared(client, "/consumer/shared");
    std::unique_lock first(shared, 1s);
    std::shared_lock second(shared), third(shared, 1s), fourth(shared, later),
        fifth(shared, std::try_to_lock);
    return ask(shared.reader()) && ask(shared.writer());
}

static bool permits(zkl::client &client)
{
    zkl::semaphore semaphore(client, "/consumer/semaphore", 5);
    semaphore.set_callback(on_hold, nullptr);
    semaphore.set_permits(6);
    zkl::permit one = semaphore.acquire(), two = semaphore.try_acquire(),
                three = semaphore.try_acquire_for(1s);
    three = semaphore.try_acquire_until(later);
    one.renew(1s);
    return ask(one) && two && !two.release() && semaphore.acquire_many(3).size() == 3 &&
           semaphore.permits() == 6 && semaphore.waiting() == 0;
}

static bool several(zkl::client &client)
{
    zkl::mutex a(client, "/consumer/a"), b(client, "/consumer/b");
    zkl::shared_mutex shared(client, "/consumer/shared");
    zkl::semaphore semaphore(client, "/consumer/semaphore", 5);
    zkl::multi_lock all(client, {a, b, shared.reader(), {semaphore, 2}});
    std::unique_lock lock(all, 1s);
    std::cout << all.token(0) << all.node_path(1) << all.window().count();
    return all.still_held(500ms) && !all.check(500ms) && all.hold_state() == ZKL_HOLD_HELD &&
           all.acquire().size() == 4;
}

int main(int argc, char **argv)
{
    try {
        zkl::client client = open_client(argc > 1 ? argv[1] : "");
        std::cout << client.session_id() << client.server();
        const bool fine = mutexes(client) && shared(client) && permits(client) && several(client) &&
                          designated(client) && !client.close(1s);
        return fine && !zkl::last_unlock() ? 0 : 1;
    } catch (const zkl::error &e) {
        const bool expected =
            e.code() == ZKL_EBADSERVERS && e.code() == std::errc::invalid_argument;
        std::cout << e.what() << '\n';
        return expected && !e.is_lost() && !e.is_retryable() ? 0 : 1;
    }
}
