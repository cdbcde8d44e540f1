/* SPDX-License-Identifier: Apache-2.0 */
#include "languages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peers.h"

#define JARS "/usr/share/java/"
#define CLASS_PATH                                                                                 \
    JARS "curator-recipes.jar:" JARS "curator-framework.jar:" JARS "curator-client.jar:" JARS      \
         "zookeeper.jar:" JARS "slf4j-simple.jar"

static const char *python; /* one that has Kazoo */
static bool has_go;        /* go-zookeeper, which the others do without */

/* --- what is installed ------------------------------------------------------------------------ */

static bool runs(const char *command)
{
    return system(command) == 0;
}

/* The first in PATH need not be the one that Debian's packages are for. */
static const char *find_python(void)
{
    if (runs("python3 -c 'import kazoo.client' 2>/dev/null"))
        return "python3";
    if (runs("/usr/bin/python3 -c 'import kazoo.client' 2>/dev/null"))
        return "/usr/bin/python3";
    return NULL;
}

bool languages_available(char *why, size_t size)
{
    const char *missing = NULL;

    if (!runs("command -v javac >/dev/null"))
        missing = "there is no javac in PATH: apt-get install default-jdk-headless";
    else if (access(JARS "curator-recipes.jar", R_OK) != 0)
        missing = "there is no Curator: apt-get install libcurator-recipes-java";
    else if ((python = find_python()) == NULL)
        missing = "there is no Kazoo: apt-get install python3-kazoo";
    if (missing != NULL)
        snprintf(why, size, "%s", missing);
    return missing == NULL;
}

static bool is_newer(const char *one, const char *other)
{
    struct stat a, b;

    return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_mtime >= b.st_mtime;
}

/* The classes lie in the build folder; they are made anew when the source has changed. */
static int compile_java(char *why, size_t size)
{
    if (is_newer(CROWD_CLASSES "/Peer.class", CROWD_JAVA) ||
        runs("javac -J-Xmx128m -J-XX:+UseSerialGC -J-XX:-UsePerfData -Xlint:all,-path "
             "-cp " CLASS_PATH " -d '" CROWD_CLASSES "' '" CROWD_JAVA "' >&2"))
        return 0;
    snprintf(why, size, "javac refuses " CROWD_JAVA);
    return -1;
}

/* Compiles the peer where Go and go-zookeeper are installed. */
static int compile_go(char *why, size_t size)
{
    int status = system("sh '" CROWD_GO_SH "' '" CROWD_GO_SOURCE "' '" CROWD_GO "' >&2");

    has_go = status == 0;
    if (has_go || (WIFEXITED(status) && WEXITSTATUS(status) == 77))
        return 0;
    snprintf(why, size, "go refuses " CROWD_GO_SOURCE);
    return -1;
}

/* --- all of them ------------------------------------------------------------------------------- */

bool languages_have(char language)
{
    return language != 'g' || has_go;
}

int languages_start(const char *servers, const char *journal, const char *folder, char *why,
                    size_t size)
{
    const char *const c[] = {CROWD_C, servers, journal, NULL};
    const char *const java[] = {"java",
                                "-Xmx96m",
                                "-XX:+UseSerialGC",
                                "-XX:TieredStopAtLevel=1",
                                "-XX:-UsePerfData",
                                "-Djava.io.tmpdir=.",
                                "-XX:ErrorFile=hs_err.log",
                                "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
                                "-cp",
                                CROWD_CLASSES ":" CLASS_PATH,
                                "Peer",
                                servers,
                                journal,
                                NULL};
    const char *const kazoo[] = {python, "-B", CROWD_PYTHON, servers, journal, NULL};
    const char *const go[] = {CROWD_GO, servers, journal, NULL};

    if (compile_java(why, size) != 0 || compile_go(why, size) != 0 ||
        peer_start("c", c, folder, why, size) != 0 ||
        peer_start("j", java, folder, why, size) != 0 ||
        peer_start("k", kazoo, folder, why, size) != 0 ||
        (has_go && peer_start("g", go, folder, why, size) != 0))
        return -1;
    return peers_await(why, size);
}
