/* SPDX-License-Identifier: Apache-2.0 */
import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.management.ManagementFactory;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.retry.RetryNTimes;

/** The Curator peer: its words, orders and answers are those of peer.h. The variant "own" has an instance for each
 * thread; otherwise the threads share one. */
public final class Curator {
    private static final int SESSION_MS = 30000;
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
            startThread(seats[i], Curator::runCycles);
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
        CuratorFramework made = CuratorFrameworkFactory.newClient(
            settings.get("servers"), number("session_ms", SESSION_MS), SESSION_MS, new RetryNTimes(10, 100));
        made.start();
        if (!made.blockUntilConnected(SESSION_MS, TimeUnit.MILLISECONDS)) {
            throw new IOException("no connection to " + settings.get("servers"));
        }
        return made;
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

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    public static void main(String[] args) throws Exception {
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
        say("{\"ready\": 1}");
        BufferedReader input =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            say(obey(line.split(" ")));
        }
        client.close();
        System.exit(0);
    }
}
