/* SPDX-License-Identifier: Apache-2.0 */
import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
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

/** The Curator peer. What it is told and what it answers is in conductor.py. With NAME=VALUE words it is one of the benchmark. */
public final class Peer {
    static final int SESSION_MS = 30000;
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

    static synchronized void say(String line) {
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

    static CuratorFramework connect(String servers, int sessionMs) throws Exception {
        CuratorFramework made = CuratorFrameworkFactory.newClient(servers, sessionMs, SESSION_MS, new RetryNTimes(10, 100));
        made.start();
        if (!made.blockUntilConnected(SESSION_MS, TimeUnit.MILLISECONDS)) {
            throw new IOException("no connection to " + servers);
        }
        return made;
    }

    public static void main(String[] args) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        if (args[0].contains("=")) {
            Bench.run(args, input);
        } else {
            run(args, input);
        }
        System.exit(0);
    }

    private static void run(String[] args, BufferedReader input) throws Exception {
        client = connect(args[0], SESSION_MS);
        journal = FileChannel.open(
            Path.of(args[1]), StandardOpenOption.WRITE, StandardOpenOption.APPEND);
        String record = System.getenv("ZKL_CALLS");
        if (record != null) {
            calls = FileChannel.open(Path.of(record), StandardOpenOption.WRITE, StandardOpenOption.APPEND,
                StandardOpenOption.CREATE);
        }
        say("ready");
        serve(input);
        client.close();
    }
}

/** The peer of the benchmark: its words, orders and answers are those of tests/bench/peer.h. The variant "own" has an instance for each
 * thread; otherwise the threads share one. */
final class Bench {
    private static final int MEMBERS = 4;
    private static final int STACK_BYTES = 256 * 1024;
    private static final int WARM_THREADS = 8;

    // The board, as in board.py.
    private static final int LOCK_AT = 4096;
    private static final int LOCK_BYTES = 4096;
    private static final int RELEASED_AT = 64;
    private static final int SAMPLE_AT = LOCK_AT + 256 * LOCK_BYTES;
    private static final int SAMPLES_MAX = 1 << 20;
    private static final long WRITER_INSIDE = 1L << 62;
    private static final VarHandle LONG =
        MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());

    private static final Map<String, String> settings = new HashMap<>();
    private static String mode;
    private static int threads;
    private static int locks;
    private static boolean handOffs;
    private static boolean whole;
    private static CuratorFramework client;
    private static MappedByteBuffer board;
    private static Seat[] seats;
    private static String node; // mode outage
    private static final List<String> told = new ArrayList<>();
    private static int waiting; // mode drain: so many were started
    private static List<InterProcessLock> handles;
    private static List<CuratorFramework> clients;
    private static final List<CuratorFramework> more = new ArrayList<>(); // beside client
    private static volatile long endNs; // no cycle begins after this
    private static final AtomicLong cyclesLeft = new AtomicLong();
    private static CyclicBarrier start;

    private enum Kind { MUTEX, READER, WRITER, MULTI }

    /** One thread's place: what it locks, and its figures. */
    private static final class Seat {
        final int number;
        final int lock;
        final Kind kind;
        final InterProcessLock recipe;
        Thread thread;
        long cycles;
        long endedNs;

        Seat(int number, int lock, Kind kind, InterProcessLock recipe) {
            this.number = number;
            this.lock = lock;
            this.kind = kind;
            this.recipe = recipe;
        }

        long name() {
            return number("index", 0) * 100000L + number + 1;
        }
    }

    private static int number(String name, int otherwise) {
        return Integer.parseInt(settings.getOrDefault(name, String.valueOf(otherwise)));
    }

    private static String path(int lock) {
        return settings.get("path") + "-" + lock;
    }

    private static void fail(String sentence) {
        System.err.println(sentence);
        Runtime.getRuntime().halt(1);
    }

    // --- the witness -----------------------------------------------------------------------------

    private static void check(Seat seat, int lock, long found, long expected) {
        if (found != expected) {
            fail("VIOLATION: process " + number("index", 0) + ", thread " + seat.number
                + " is not alone in lock " + lock + ": " + found + " is inside");
        }
    }

    private static void enterOne(Seat seat, int lock) {
        int at = LOCK_AT + lock * LOCK_BYTES;
        switch (seat.kind) {
            case READER -> {
                long before = (long) LONG.getAndAdd(board, at, 1L);
                check(seat, lock, before < WRITER_INSIDE ? 0 : before, 0);
            }
            case WRITER ->
                check(seat, lock, (long) LONG.compareAndExchange(board, at, 0L, WRITER_INSIDE), 0);
            default -> check(seat, lock, (long) LONG.getAndSet(board, at, seat.name()), 0);
        }
    }

    private static void leaveOne(Seat seat, int lock) {
        int at = LOCK_AT + lock * LOCK_BYTES;
        if (seat.kind == Kind.READER) {
            LONG.getAndAdd(board, at, -1L);
        } else {
            long mine = seat.kind == Kind.WRITER ? WRITER_INSIDE : seat.name();
            check(seat, lock, (long) LONG.getAndSet(board, at, 0L), mine);
        }
    }

    private static void enter(Seat seat) {
        for (int i = 0; i < (seat.kind == Kind.MULTI ? MEMBERS : 1); i++) {
            enterOne(seat, seat.lock + i);
        }
    }

    private static void leave(Seat seat) {
        for (int i = 0; i < (seat.kind == Kind.MULTI ? MEMBERS : 1); i++) {
            leaveOne(seat, seat.lock + i);
        }
    }

    private static void sample(long ns) {
        long at = (long) LONG.getAndAdd(board, 0, 1L);
        if (at < SAMPLES_MAX) {
            LONG.set(board, SAMPLE_AT + (int) at * 8, ns);
        }
    }

    // --- cycles ----------------------------------------------------------------------------------

    private static void cycle(Seat seat) throws Exception {
        int releasedAt = LOCK_AT + seat.lock * LOCK_BYTES + RELEASED_AT;
        long asked = System.nanoTime();
        seat.recipe.acquire();
        long got = System.nanoTime();
        enter(seat);
        long released = (long) LONG.get(board, releasedAt);
        if (handOffs && released > asked) {
            sample(got - released);
        }
        seat.cycles++;
        leave(seat);
        LONG.set(board, releasedAt, System.nanoTime());
        seat.recipe.release();
        if (whole) {
            sample(System.nanoTime() - asked);
        }
    }

    private static void runCycles(Seat seat) throws Exception {
        start.await();
        while (System.nanoTime() < endNs && cyclesLeft.getAndDecrement() > 0) {
            cycle(seat);
        }
        seat.endedNs = System.nanoTime();
    }

    private interface Task {
        void run(Seat seat) throws Exception;
    }

    private static void startThread(Seat seat, Task task) {
        seat.thread = new Thread(null, () -> {
            try {
                task.run(seat);
            } catch (Exception e) {
                fail("thread " + seat.number + ": " + e);
            }
        }, "seat-" + seat.number, STACK_BYTES);
        seat.thread.start();
    }

    private static long cpuNs() {
        return ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class).getProcessCpuTime();
    }

    /** The figures of all threads once they have ended. */
    private static String figures(int count, long began, long cpu) throws InterruptedException {
        long done = 0;
        long writes = 0;
        long ended = began;
        for (int i = 0; i < count; i++) {
            seats[i].thread.join();
            done += seats[i].cycles;
            writes += seats[i].kind == Kind.WRITER ? seats[i].cycles : 0;
            ended = Math.max(ended, seats[i].endedNs);
        }
        return String.format(Locale.ROOT,
            "{\"cycles\": %d, \"writes\": %d, \"elapsed_ns\": %d, \"cpu_ns\": %d, \"ended_ns\": %d}", done, writes,
            ended - began, cpuNs() - cpu, ended);
    }

    private static String cycles(int count, long cycles, double seconds)
            throws InterruptedException, BrokenBarrierException {
        cyclesLeft.set(cycles);
        start = new CyclicBarrier(count + 1);
        for (int i = 0; i < count; i++) {
            seats[i].cycles = 0;
            startThread(seats[i], Bench::runCycles);
        }
        long cpu = cpuNs();
        long began = System.nanoTime();
        endNs = began + (long) (seconds * 1e9);
        start.await();
        return figures(count, began, cpu);
    }

    // --- a queue that is let go ------------------------------------------------------------------

    private static Seat holder() {
        return seats[threads];
    }

    private static String fillQueue(int count) throws Exception {
        if (waiting == 0 && number("index", 0) == 0) {
            holder().recipe.acquire();
            enter(holder());
        }
        for (int end = Math.min(threads, waiting + count); waiting < end; waiting++) {
            startThread(seats[waiting], seat -> {
                seat.cycles = 0;
                cycle(seat);
                seat.endedNs = System.nanoTime();
            });
        }
        return "{\"filled\": " + waiting + "}";
    }

    private static String drainQueue() throws Exception {
        long cpu = cpuNs();
        long began = System.nanoTime();
        if (number("index", 0) == 0) {
            leave(holder());
            holder().recipe.release();
        }
        return figures(threads, began, cpu);
    }

    // --- entering again, idle handles, idle clients ----------------------------------------------

    private static String enterAgain(int count) throws Exception {
        InterProcessLock lock = seats[0].recipe;
        lock.acquire();
        long t0 = System.nanoTime();
        for (int i = 0; i < count; i++) {
            lock.acquire();
        }
        long t1 = System.nanoTime();
        for (int i = 0; i < count; i++) {
            lock.release();
        }
        long t2 = System.nanoTime();
        lock.release();
        return String.format(Locale.ROOT, "{\"lock_ns\": %.2f, \"unlock_ns\": %.2f}",
            (double) (t1 - t0) / count, (double) (t2 - t1) / count);
    }

    private static long heapBytes() {
        System.gc();
        return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
    }

    private static String makeHandles(int count) throws Exception {
        final long before = heapBytes();
        handles = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            handles.add(new InterProcessMutex(client, path(i)));
        }
        final long made = heapBytes();
        for (InterProcessLock lock : handles) {
            lock.acquire();
        }
        final long held = heapBytes();
        for (InterProcessLock lock : handles) {
            lock.release();
        }
        return String.format(Locale.ROOT,
            "{\"handle_bytes\": %.1f, \"held_bytes\": %.1f, \"used_handle_bytes\": %.1f}",
            (double) (made - before) / count, (double) (held - before) / count,
            (double) (heapBytes() - before) / count);
    }

    private static String makeClients(int count) throws Exception {
        clients = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            clients.add(connect());
        }
        return "{\"clients\": " + count + "}";
    }

    // --- an outage -------------------------------------------------------------------------------

    /** Take lock 0, and note from now on what is told. */
    private static String hold() throws Exception {
        InterProcessMutex mutex = (InterProcessMutex) seats[0].recipe;
        mutex.acquire();
        node = mutex.getParticipantNodes().iterator().next();
        client.getConnectionStateListenable().addListener((ignored, state) -> {
            String note = String.format(Locale.ROOT, "[\"%s\", %d]", state.name(), System.nanoTime());
            synchronized (told) {
                told.add(note);
            }
        });
        return "{\"held\": 1}";
    }

    private static String stillHolds() throws InterruptedException {
        while (true) {
            try {
                boolean held = client.checkExists().forPath(node) != null;
                synchronized (told) {
                    return "{\"held\": " + (held ? 1 : 0) + ", \"told\": [" + String.join(", ", told) + "]}";
                }
            } catch (Exception e) { // no link yet
                Thread.sleep(50);
            }
        }
    }

    // --- the program -----------------------------------------------------------------------------

    private static String fill(int waiters) throws Exception {
        return switch (mode) {
            case "drain" -> fillQueue(waiters);
            case "handles" -> makeHandles(number("count", 0));
            case "clients" -> makeClients(number("count", 0));
            case "outage" -> hold();
            default -> throw new IllegalArgumentException("nothing to fill in mode " + mode);
        };
    }

    private static String go(double seconds) throws Exception {
        return switch (mode) {
            case "drain" -> drainQueue();
            case "entry" -> enterAgain(number("count", 0));
            case "outage" -> stillHolds();
            default -> cycles(threads, Long.MAX_VALUE, seconds);
        };
    }

    private static String obey(String[] words) throws Exception {
        return switch (words[0]) {
            case "warm" -> cycles(mode.equals("drain") ? Math.min(threads, WARM_THREADS) : threads,
                Long.parseLong(words[1]), 3600);
            case "fill" -> fill(words.length > 1 ? Integer.parseInt(words[1]) : threads);
            case "go" -> go(Double.parseDouble(words[1]));
            default -> throw new IllegalArgumentException("no order " + words[0]);
        };
    }

    private static CuratorFramework connect() throws Exception {
        return Peer.connect(settings.get("servers"), number("session_ms", Peer.SESSION_MS));
    }

    private static InterProcessLock multi() {
        List<String> paths = new ArrayList<>();
        for (int i = 0; i < MEMBERS; i++) {
            paths.add(path(i));
        }
        return new InterProcessMultiLock(client, paths);
    }

    /** Where there are several clients, lock t is of client t. */
    private static CuratorFramework clientOf(int lock) throws Exception {
        int which = lock % Math.max(1, number("clients", 1));
        for (int i = more.size(); i < which; i++) {
            more.add(connect());
        }
        return which == 0 ? client : more.get(which - 1);
    }

    private static InterProcessLock make(Kind kind, int lock) {
        try {
            return make(kind, lock, clientOf(lock));
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private static InterProcessLock make(Kind kind, int lock, CuratorFramework client) {
        return switch (kind) {
            case READER -> new InterProcessReadWriteLock(client, path(lock)).readLock();
            case WRITER -> new InterProcessReadWriteLock(client, path(lock)).writeLock();
            case MULTI -> multi();
            default -> new InterProcessMutex(client, path(lock));
        };
    }

    private static Kind kindOf(int thread) {
        if (mode.equals("rw")) {
            return thread < number("writers", 0) ? Kind.WRITER : Kind.READER;
        }
        return mode.equals("multi") ? Kind.MULTI : Kind.MUTEX;
    }

    private static void makeSeats() {
        boolean own = settings.getOrDefault("variant", "").equals("own");
        Map<String, InterProcessLock> shared = new HashMap<>();
        InterProcessReadWriteLock readWrite = new InterProcessReadWriteLock(client, path(0));
        if (mode.equals("rw")) { // one instance for both halves
            shared.put(Kind.READER + " 0", readWrite.readLock());
            shared.put(Kind.WRITER + " 0", readWrite.writeLock());
        }
        seats = new Seat[threads + 1];
        for (int i = 0; i <= threads; i++) {
            int lock = i == threads ? 0 : i % locks;
            Kind kind = kindOf(i);
            seats[i] = new Seat(i, lock, kind,
                own ? make(kind, lock) : shared.computeIfAbsent(kind + " " + lock, ignored -> make(kind, lock)));
        }
    }

    static void run(String[] args, BufferedReader input) throws Exception {
        for (String word : args) {
            String[] pair = word.split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        mode = settings.get("mode");
        threads = number("threads", 1);
        locks = number("locks", 1);
        handOffs = settings.getOrDefault("sample", "").equals("handoff");
        whole = settings.getOrDefault("sample", "").equals("cycle");
        try (FileChannel file = FileChannel.open(
                Path.of(settings.get("board")), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            board = file.map(FileChannel.MapMode.READ_WRITE, 0, file.size());
        }
        client = connect();
        makeSeats();
        Peer.say("{\"ready\": 1}");
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            Peer.say(obey(line.split(" ")));
        }
        client.close();
    }
}
