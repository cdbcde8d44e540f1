/* host PLUGIN: a program that loads a plugin, closes it while its client is open, and goes on; then closes it once
 * more with all that it had given back. Threads that called it end, a child is forked, time passes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static sem_t done, go_on;
static int (*call)(void);
static int result;

static void *make_call(void *unused)
{
    (void)unused;
    result = call();
    sem_post(&done);
    sem_wait(&go_on);
    return NULL; /* and what its thread-specific data has for destructors runs */
}

static void end(const char *why)
{
    printf("host: %s\n", why);
    exit(1);
}

static int child_status(void)
{
    int status = 1;
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    return waitpid(pid, &status, 0) == pid ? status : 1;
}

/* A thread calls that function of the plugin, which is closed before the thread ends. */
static void call_and_close(const char *name, const char *function)
{
    pthread_t thread;
    void *plugin = dlopen(name, RTLD_NOW);

    if (!plugin)
        end(dlerror());
    *(void **)&call = dlsym(plugin, function);
    if (!call || pthread_create(&thread, NULL, make_call, NULL) != 0)
        end("no such function, or no thread");
    sem_wait(&done);
    if (result != 0)
        end(function);
    dlclose(plugin);
    if (child_status() != 0)
        end("the child");
    sem_post(&go_on);
    pthread_join(thread, NULL);
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL); /* for the client's own threads */
}

int main(int argc, char **argv)
{
    if (argc != 2)
        end("host PLUGIN");
    sem_init(&done, 0, 0);
    sem_init(&go_on, 0, 0);
    call_and_close(argv[1], "plugin_begin");
    call_and_close(argv[1], "plugin_end");
    printf("the plugin was closed twice\n");
    return 0;
}
