/* SPDX-License-Identifier: Apache-2.0 */
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.KeeperException;

/** The Curator peer. What it is told and what it answers is in peers.h. */
public final class Peer {
    private static final int SESSION_MS = 30000;
    private static final int RUN_MS = 60000;
    private static final long NAP_NS = 100000;
    private static final long PERMIT_NAP_NS = 2000000; // permits are to be out at the same time

    private static CuratorFramework client;
    private static FileChannel journal;
    private static FileChannel calls; // null: no record for tests/linear
    private static final long PID = ProcessHandle.current().pid();
    private static final Map<String, Handle> handles = new ConcurrentHashMap<>();

    /** Something that can be locked, by the recipe it is. */
    private abstract static class Handle {
        final char access;
        final List<String> paths;

        Handle(char access, List<String> paths) {
            this.access = access;
            this.paths = paths;
        }

        abstract boolean lock(Worker worker, long ms) throws Exception;

        abstract void unlock(Worker worker) throws Exception;

        String half() {
            return access == 'r' ? "read" : "alone";
        }

        Collection<String> nodes() throws Exception {
            throw new IllegalArgumentException("has no list");
        }

        boolean revoked(long ms) throws Exception {
            throw new IllegalArgumentException("is not revocable");
        }
    }

    private static final class Recipe extends Handle {
        private final InterProcessLock lock;

        Recipe(char access, List<String> paths, InterProcessLock lock) {
            super(access, paths);
            this.lock = lock;
        }

        @Override
        boolean lock(Worker worker, long ms) throws Exception {
            return lock.acquire(ms, TimeUnit.MILLISECONDS);
        }

        @Override
        void unlock(Worker worker) throws Exception {
            lock.release();
        }
    }

    /** InterProcessMutex, and the two halves of a read-write lock, which are of that class. */
    private static final class Mutex extends Handle {
        private final InterProcessMutex mutex;
        private final boolean revocable;
        private final Semaphore asked = new Semaphore(0);

        Mutex(char access, List<String> paths, InterProcessMutex mutex, boolean revocable) {
            super(access, paths);
            this.mutex = mutex;
            this.revocable = revocable;
        }

        @Override
        boolean lock(Worker worker, long ms) throws Exception {
            if (revocable) {
                mutex.makeRevocable(ignored -> asked.release()); // each release takes it away
            }
            return mutex.acquire(ms, TimeUnit.MILLISECONDS);
        }

        @Override
        void unlock(Worker worker) throws Exception {
            mutex.release();
        }

        @Override
        Collection<String> nodes() throws Exception {
            return mutex.getParticipantNodes();
        }

        @Override
        boolean revoked(long ms) throws Exception {
            return asked.tryAcquire(ms, TimeUnit.MILLISECONDS);
        }
    }

    private static final class Permits extends Handle {
        private final InterProcessSemaphoreV2 semaphore;
        private final int permits;

        Permits(List<String> paths, int permits) {
            super('p', paths);
            this.permits = permits;
            semaphore = new InterProcessSemaphoreV2(client, paths.get(0), permits);
        }

        @Override
        boolean lock(Worker worker, long ms) throws Exception {
            Lease lease = semaphore.acquire(ms, TimeUnit.MILLISECONDS);
            if (lease != null) {
                worker.leases.computeIfAbsent(this, key -> new ArrayList<>()).add(lease);
            }
            return lease != null;
        }

        @Override
        void unlock(Worker worker) {
            List<Lease> leases = worker.leases.get(this);
            semaphore.returnLease(leases.remove(leases.size() - 1));
        }

        @Override
        String half() {
            return "permit" + permits;
        }

        @Override
        Collection<String> nodes() throws Exception {
            List<String> nodes = new ArrayList<>();
            for (String name : semaphore.getParticipantNodes()) { // names, not paths as of a mutex
                nodes.add(paths.get(0) + "/leases/" + name);
            }
            return nodes;
        }
    }

    /** Lets everybody in. */
    private static final class Open extends Handle {
        Open(List<String> paths) {
            super('x', paths);
        }

        @Override
        boolean lock(Worker worker, long ms) {
            return true;
        }

        @Override
        void unlock(Worker worker) {}
    }

    // --- handles ---------------------------------------------------------------------------------

    private static void make(String name, String kind, String where, Map<String, String> options) {
        List<String> paths = List.of(where.split(","));
        String path = paths.get(0);
        boolean revocable = options.containsKey("revocable");
        switch (kind) {
            case "mutex" ->
                handles.put(name, new Mutex('x', paths, new InterProcessMutex(client, path), revocable));
            case "rwlock" -> {
                InterProcessReadWriteLock lock = new InterProcessReadWriteLock(client, path);
                handles.put(name + ".read", new Mutex('r', paths, lock.readLock(), revocable));
                handles.put(name + ".write", new Mutex('x', paths, lock.writeLock(), revocable));
            }
            case "single" ->
                handles.put(name, new Recipe('x', paths, new InterProcessSemaphoreMutex(client, path)));
            case "semaphore" ->
                handles.put(name, new Permits(paths, Integer.parseInt(options.get("permits"))));
            case "multi" ->
                handles.put(name, new Recipe('x', paths, multi(paths, options.get("last"))));
            case "none" -> handles.put(name, new Open(paths));
            default -> throw new IllegalArgumentException("no kind " + kind);
        }
    }

    /** The last member can be another recipe. */
    private static InterProcessLock multi(List<String> paths, String last) {
        if (last == null) {
            return new InterProcessMultiLock(client, paths);
        }
        List<InterProcessLock> members = new ArrayList<>();
        for (String path : paths.subList(0, paths.size() - 1)) {
            members.add(new InterProcessMutex(client, path));
        }
        members.add(new InterProcessSemaphoreMutex(client, paths.get(paths.size() - 1)));
        return new InterProcessMultiLock(members);
    }

    private static Handle handle(String name) {
        Handle handle = handles.get(name);
        if (handle == null) {
            throw new IllegalArgumentException("no handle " + name);
        }
        return handle;
    }

    private static String list(String name) throws Exception {
        List<String> texts = new ArrayList<>();
        for (String node : handle(name).nodes()) {
            try {
                texts.add(new String(client.getData().forPath(node), StandardCharsets.UTF_8));
            } catch (KeeperException.NoNodeException gone) {
                continue;
            }
        }
        return "ok " + String.join("|", texts);
    }

    // --- workers ---------------------------------------------------------------------------------

    private static final class Worker extends Thread {
        final BlockingQueue<String[]> orders = new LinkedBlockingQueue<>();
        final Map<Handle, List<Lease>> leases = new HashMap<>();
        private final Random random;

        Worker(String name) {
            super(name);
            random = new Random(name.hashCode());
            setDaemon(true);
        }

        @Override
        public void run() {
            for (;;) {
                try {
                    say(getName() + " " + obey(orders.take()));
                } catch (Exception e) {
                    say(getName() + " error " + e);
                }
            }
        }

        private String obey(String[] words) throws Exception {
            switch (words[1]) {
                case "new" -> make(words[2], words[3], words[4], options(words));
                case "drop" -> handles.keySet().removeIf(
                    name -> name.equals(words[2]) || name.startsWith(words[2] + "."));
                case "lock" -> {
                    return handle(words[2]).lock(this, Long.parseLong(words[3])) ? "ok" : "no";
                }
                case "unlock" -> handle(words[2]).unlock(this);
                case "run" ->
                    visit(words[2], Integer.parseInt(words[3]), Integer.parseInt(words[4]));
                case "list" -> {
                    return list(words[2]);
                }
                case "version" -> {
                    return "ok " + version();
                }
                case "revoke" -> Revoker.attemptRevoke(client, words[2]);
                case "revoked" -> {
                    return handle(words[2]).revoked(Long.parseLong(words[3])) ? "ok" : "no";
                }
                default -> throw new IllegalArgumentException("no verb " + words[1]);
            }
            return "ok";
        }

        /** Of the jar, as its build has noted it. */
        private static String version() throws IOException {
            String notes = "/META-INF/maven/org.apache.curator/curator-recipes/pom.properties";
            Properties properties = new Properties();
            try (InputStream input = InterProcessMutex.class.getResourceAsStream(notes)) {
                properties.load(input);
            }
            return properties.getProperty("version");
        }

        private static Map<String, String> options(String[] words) {
            Map<String, String> options = new HashMap<>();
            for (int i = 5; i < words.length; i++) {
                String[] pair = words[i].split("=", 2);
                options.put(pair[0], pair.length > 1 ? pair[1] : "");
            }
            return options;
        }

        private void visit(String name, int rounds, int writers) throws Exception {
            for (int i = 0; i < rounds; i++) {
                String half = random.nextInt(100) < writers ? ".write" : ".read";
                Handle handle = handles.containsKey(name) ? handle(name) : handle(name + half);
                record("? ", "acquire" + places(handle));
                boolean locked = handle.lock(this, RUN_MS);
                record("! ", locked ? "0" + " 0:1".repeat(handle.paths.size()) : "-12");
                if (!locked) {
                    throw new IllegalStateException("not acquired in round " + i);
                }
                note('+', handle);
                LockSupport.parkNanos(handle.access == 'p' ? PERMIT_NAP_NS : NAP_NS);
                note('-', handle);
                record("? ", "release" + places(handle));
                handle.unlock(this);
                record("! ", "0" + " 0".repeat(handle.paths.size() - 1));
            }
        }

        private static String places(Handle handle) {
            StringBuilder text = new StringBuilder();
            for (String path : handle.paths) {
                text.append(' ').append(handle.half()).append('=').append(path);
            }
            return text.toString();
        }

        // nanoTime is CLOCK_MONOTONIC, as that of the other languages.
        private void record(String way, String words) throws IOException {
            if (calls != null) {
                String line = way + System.nanoTime() + " " + PID + "." + getName().substring(1) + " " + words + "\n";
                calls.write(ByteBuffer.wrap(line.getBytes(StandardCharsets.UTF_8)));
            }
        }

        private void note(char way, Handle handle) throws IOException {
            for (String path : handle.paths) {
                String line = "" + way + handle.access + " " + getName() + " " + path + "\n";
                journal.write(ByteBuffer.wrap(line.getBytes(StandardCharsets.UTF_8)));
            }
        }
    }

    // --- the program -----------------------------------------------------------------------------

    private static synchronized void say(String line) {
        System.out.println(line.replace('\n', ' '));
        System.out.flush();
    }

    private static void serve(BufferedReader input) throws IOException {
        Map<String, Worker> workers = new HashMap<>();
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            Worker worker = workers.get(words[0]);
            if (worker == null) {
                worker = new Worker(words[0]);
                workers.put(words[0], worker);
                worker.start();
            }
            worker.orders.add(words);
        }
    }

    public static void main(String[] args) throws Exception {
        client = CuratorFrameworkFactory.newClient(
            args[0], SESSION_MS, SESSION_MS, new RetryNTimes(10, 100));
        client.start();
        journal = FileChannel.open(
            Path.of(args[1]), StandardOpenOption.WRITE, StandardOpenOption.APPEND);
        String record = System.getenv("ZKL_CALLS");
        if (record != null) {
            calls = FileChannel.open(Path.of(record), StandardOpenOption.WRITE, StandardOpenOption.APPEND,
                StandardOpenOption.CREATE);
        }
        if (!client.blockUntilConnected(SESSION_MS, TimeUnit.MILLISECONDS)) {
            throw new IOException("no connection to " + args[0]);
        }
        say("ready");
        serve(new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)));
        client.close();
        System.exit(0);
    }
}
