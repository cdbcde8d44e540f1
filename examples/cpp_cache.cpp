/* SPDX-License-Identifier: Apache-2.0 */
/* A cache in C++ that many threads read and one fills. Readers share a zkl::shared_mutex. A thread
 * that finds the cache empty fills it, alone, and goes on as a reader. The file stands for whatever
 * several machines share. */
#include <zklock/zklock.hpp>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <future>
#include <iostream>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

using namespace std::chrono_literals;

static std::string read(const std::string &file)
{
    std::string value;
    std::ifstream in(file);
    std::getline(in, value);
    return value;
}

static void fill(const std::string &file, const zkl::mutex_ref &hold)
{
    if (!hold.still_held(500ms)) /* the guard does not know of a loss; the lock does */
        throw zkl::error(ZKL_ELOST, "too little of the lock is left to write");
    std::ofstream(file) << "made once, with token " << std::hex << hold.token() << '\n';
}

static std::string get(zkl::shared_mutex &lock, const std::string &file)
{
    {
        std::shared_lock reader(lock, 10s);
        if (!reader.owns_lock())
            throw zkl::error(ZKL_ETIMEDOUT, "no reader's lock within 10 s");
        if (std::string value = read(file); !value.empty())
            return value;
    } /* released: a reader that asks for the writer's lock gets ZKL_EDEADLK */
    std::shared_lock reader(lock, std::defer_lock);
    {
        std::unique_lock writer(lock);
        if (read(file).empty()) /* no other thread was faster */
            fill(file, lock.writer());
        reader.lock(); /* a downgrade: no writer comes in between */
    }
    if (const int code = zkl::last_unlock().value(); zkl_error_is_lost(code)) /* the writer's */
        throw zkl::error(code, "what was written is in doubt");
    return read(file);
}

int main(int argc, char **argv)
{
    char file[] = "/tmp/cpp_cache.XXXXXX";
    try {
        const char *servers = argc > 1 ? argv[1] : std::getenv("ZKLOCK_SERVERS");
        zkl::client_options options;
        options.servers = servers ? servers : "";
        options.connect_timeout = 10s;
        zkl::client client(options);
        zkl::shared_mutex lock(client, "/zklock/examples/cache");
        if (mkstemp(file) < 0)
            return 1;
        std::vector<std::future<std::string>> readers;
        for (int i = 0; i < 4; i++)
            readers.push_back(std::async(std::launch::async, [&] { return get(lock, file); }));
        for (std::future<std::string> &reader : readers)
            std::cout << "a reader got what was " << reader.get() << '\n';
        std::remove(file);
        return 0;
    } catch (const zkl::error &e) {
        std::cerr << "cpp_cache: " << e.what() << '\n';
        std::remove(file);
        return 1;
    }
}
