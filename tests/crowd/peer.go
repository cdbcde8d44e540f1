// SPDX-License-Identifier: Apache-2.0

// The go-zookeeper peer. What it is told and what it answers is in conductor.py. Its Lock has no try and no bound, so a
// worker that is told to lock waits as long as it takes; and nothing lists who takes part. Each worker has a Lock of its own,
// as one is one contender. With NAME=VALUE words it is a peer of the benchmark, which speaks as tests/bench/peer.h says:
// there each thread is a goroutine with a lock object of its own.
package main

import (
	"bufio"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/go-zookeeper/zk"
)

const (
	session     = 30 * time.Second
	nap         = 100 * time.Microsecond
	warmThreads = 8

	// The benchmark's board, as in board.py.
	lockAt     = 4096
	lockBytes  = 4096
	releasedAt = 64
	sampleAt   = lockAt + 256*lockBytes
	samplesMax = 1 << 20
	boardBytes = sampleAt + 8*samplesMax
)

// release is set by the build: go-zookeeper has no constant for it.
var release = "unknown"

type peer struct {
	conn    *zk.Conn
	journal *os.File
	calls   *os.File // for tests/linear; nil: not wanted

	mu    sync.Mutex // protects paths and output
	paths map[string]string
}

type worker struct {
	peer   *peer
	name   string
	orders chan []string
	locks  map[string]*zk.Lock // by handle and path
}

func (p *peer) say(format string, args ...interface{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Println(strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " "))
}

func (p *peer) make(name, kind, path string) error {
	if kind != "mutex" {
		return fmt.Errorf("no kind %s", kind)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paths[name] = path
	return nil
}

func (p *peer) drop(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.paths, name)
}

func (p *peer) path(name string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	path, there := p.paths[name]
	if !there {
		return "", fmt.Errorf("no handle %s", name)
	}
	return path, nil
}

func (w *worker) lock(name string) (*zk.Lock, string, error) {
	path, err := w.peer.path(name)
	if err != nil {
		return nil, "", err
	}
	key := name + " " + path
	if w.locks[key] == nil {
		w.locks[key] = zk.NewLock(w.peer.conn, path, zk.WorldACL(zk.PermAll))
	}
	return w.locks[key], path, nil
}

// CLOCK_MONOTONIC, as that of the other languages.
func now() int64 {
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano()
}

func (w *worker) record(way, words string) error {
	if w.peer.calls == nil {
		return nil
	}
	_, err := fmt.Fprintf(w.peer.calls, "%s %d %d.%s %s\n", way, now(), os.Getpid(), w.name[1:], words)
	return err
}

func (w *worker) note(way byte, path string) error {
	_, err := fmt.Fprintf(w.peer.journal, "%cx %s %s\n", way, w.name, path)
	return err
}

func (w *worker) enter(lock *zk.Lock, path string) error {
	if err := w.record("?", "acquire alone="+path); err != nil {
		return err
	}
	if err := lock.Lock(); err != nil {
		return err
	}
	if err := w.record("!", "0 0:1"); err != nil {
		return err
	}
	return w.note('+', path)
}

func (w *worker) leave(lock *zk.Lock, path string) error {
	if err := w.note('-', path); err != nil {
		return err
	}
	if err := w.record("?", "release alone="+path); err != nil {
		return err
	}
	if err := lock.Unlock(); err != nil {
		return err
	}
	return w.record("!", "0")
}

func (w *worker) visit(name string, rounds int) error {
	lock, path, err := w.lock(name)
	for i := 0; err == nil && i < rounds; i++ {
		if err = w.enter(lock, path); err == nil {
			time.Sleep(nap)
			err = w.leave(lock, path)
		}
	}
	return err
}

func (w *worker) obey(words []string) (string, error) {
	verb := words[0]
	if verb == "version" {
		return "ok " + release, nil
	}
	if len(words) < 2 || (verb == "new" && len(words) < 4) || (verb == "run" && len(words) < 3) {
		return "", fmt.Errorf("too few words: %s", strings.Join(words, " "))
	}
	name := words[1]
	switch verb {
	case "new":
		return "ok", w.peer.make(name, words[2], words[3])
	case "drop":
		w.peer.drop(name)
		return "ok", nil
	case "run":
		rounds, err := strconv.Atoi(words[2])
		if err != nil {
			return "", err
		}
		return "ok", w.visit(name, rounds)
	case "lock", "unlock":
		lock, _, err := w.lock(name)
		if err != nil {
			return "", err
		}
		if verb == "lock" {
			return "ok", lock.Lock()
		}
		return "ok", lock.Unlock()
	}
	return "", fmt.Errorf("no verb %s", verb)
}

func (w *worker) work() {
	for words := range w.orders {
		answer, err := w.obey(words)
		if err != nil {
			answer = "error " + err.Error()
		}
		w.peer.say("%s %s", w.name, answer)
	}
}

func fail(format string, args ...interface{}) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}

func must(what string, err error) {
	if err != nil {
		fail("%s: %v", what, err)
	}
}

func connect(servers string) *zk.Conn {
	conn, events, err := zk.Connect(strings.Split(servers, ","), session, zk.WithLogInfo(false),
		zk.WithLogger(log.New(os.Stderr, "", 0)))
	must("connect", err)
	for event := range events {
		if event.State == zk.StateHasSession {
			return conn
		}
	}
	fail("no session")
	return nil
}

func openEnd(path string, flags int) *os.File {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|flags, 0600)
	must("open", err)
	return file
}

func main() {
	if strings.Contains(os.Args[1], "=") {
		measureAll()
		return
	}
	p := &peer{conn: connect(os.Args[1]), journal: openEnd(os.Args[2], 0), paths: map[string]string{}}
	if path := os.Getenv("ZKL_CALLS"); path != "" {
		p.calls = openEnd(path, os.O_CREATE)
	}
	workers := map[string]*worker{}
	p.say("ready")
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		words := strings.Fields(input.Text())
		w := workers[words[0]]
		if w == nil {
			w = &worker{peer: p, name: words[0], orders: make(chan []string, 16), locks: map[string]*zk.Lock{}}
			workers[w.name] = w
			go w.work()
		}
		w.orders <- words[1:]
	}
	p.conn.Close()
}

// --- the benchmark

type seat struct {
	number, lock int
	recipe       *zk.Lock
	cycles       int64
	ended        int64
}

var (
	settings   = map[string]string{}
	board      []byte
	seats      []*seat
	conns      []*zk.Conn
	handOffs   bool
	whole      bool
	end        int64 // no cycle begins after this
	cyclesLeft int64
	waiting    int            // mode drain: so many were started
	waiters    sync.WaitGroup // of them
)

func number(name string, otherwise int) int {
	text, there := settings[name]
	if !there {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	must(name, err)
	return n
}

func cpu() int64 {
	var u syscall.Rusage
	must("getrusage", syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return u.Utime.Nano() + u.Stime.Nano()
}

func word(at int) *int64 {
	return (*int64)(unsafe.Pointer(&board[at]))
}

// --- cycles

func (s *seat) name() int64 {
	return int64(number("index", 0))*100000 + int64(s.number) + 1
}

func (s *seat) check(found, expected int64) {
	if found != expected {
		fail("VIOLATION: process %d, thread %d is not alone in lock %d: %d is inside", number("index", 0), s.number,
			s.lock, found)
	}
}

func (s *seat) enter() {
	s.check(atomic.SwapInt64(word(lockAt+s.lock*lockBytes), s.name()), 0)
}

func (s *seat) leave() {
	s.check(atomic.SwapInt64(word(lockAt+s.lock*lockBytes), 0), s.name())
}

func sample(ns int64) {
	at := atomic.AddInt64(word(0), 1) - 1
	if at < samplesMax {
		*word(sampleAt + int(at)*8) = ns
	}
}

func (s *seat) cycle() {
	asked := now()
	must("lock", s.recipe.Lock())
	got := now()
	s.enter()
	released := word(lockAt + s.lock*lockBytes + releasedAt)
	if handOffs && *released > asked {
		sample(got - *released)
	}
	s.cycles++
	s.leave()
	*released = now()
	must("unlock", s.recipe.Unlock())
	if whole {
		sample(now() - asked)
	}
}

func figures(some []*seat, began, cpuBefore int64) string {
	var done, ended int64
	for _, s := range some {
		done += s.cycles
		if s.ended > ended {
			ended = s.ended
		}
	}
	return fmt.Sprintf(`{"cycles": %d, "writes": 0, "elapsed_ns": %d, "cpu_ns": %d, "ended_ns": %d}`, done, ended-began,
		cpu()-cpuBefore, ended)
}

func runCycles(threads int, cycles int64, seconds float64) string {
	var all sync.WaitGroup
	atomic.StoreInt64(&cyclesLeft, cycles)
	used, began := cpu(), now()
	end = began + int64(seconds*1e9)
	for _, s := range seats[:threads] {
		s.cycles = 0
		all.Add(1)
		go func(s *seat) {
			defer all.Done()
			for now() < end && atomic.AddInt64(&cyclesLeft, -1) >= 0 {
				s.cycle()
			}
			s.ended = now()
		}(s)
	}
	all.Wait()
	return figures(seats[:threads], began, used)
}

// --- a queue that is let go

func fill(count int) string {
	threads := number("threads", 1)
	holder := seats[threads]
	if waiting == 0 && number("index", 0) == 0 {
		must("lock", holder.recipe.Lock())
		holder.enter()
	}
	for ; count > 0 && waiting < threads; count-- {
		waiters.Add(1)
		go func(s *seat) {
			defer waiters.Done()
			s.cycles = 0
			s.cycle()
			s.ended = now()
		}(seats[waiting])
		waiting++
	}
	return fmt.Sprintf(`{"filled": %d}`, waiting)
}

func drain() string {
	threads := number("threads", 1)
	holder := seats[threads]
	used, began := cpu(), now()
	if number("index", 0) == 0 {
		holder.leave()
		must("unlock", holder.recipe.Unlock())
	}
	waiters.Wait()
	return figures(seats[:threads], began, used)
}

func measure(words []string) string {
	threads, isDrain := number("threads", 1), settings["mode"] == "drain"
	value := 0.0
	if len(words) > 1 {
		v, err := strconv.ParseFloat(words[1], 64)
		must(words[0], err)
		value = v
	}
	switch {
	case words[0] == "warm" && isDrain && threads > warmThreads:
		return runCycles(warmThreads, int64(value), 3600)
	case words[0] == "warm":
		return runCycles(threads, int64(value), 3600)
	case words[0] == "fill" && isDrain && value > 0:
		return fill(int(value))
	case words[0] == "fill" && isDrain:
		return fill(threads)
	case words[0] == "go" && isDrain:
		return drain()
	case words[0] == "go":
		return runCycles(threads, 1<<62, value)
	}
	fail("no order %s in mode %s", words[0], settings["mode"])
	return ""
}

func mapBoard() {
	file, err := os.OpenFile(settings["board"], os.O_RDWR, 0)
	must("board", err)
	board, err = syscall.Mmap(int(file.Fd()), 0, boardBytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	must("board", err)
	must("board", file.Close())
}

func measureAll() {
	for _, arg := range os.Args[1:] {
		pair := strings.SplitN(arg, "=", 2)
		settings[pair[0]] = pair[1]
	}
	handOffs, whole = settings["sample"] == "handoff", settings["sample"] == "cycle"
	mapBoard()
	for i := 0; i < number("clients", 1); i++ {
		conns = append(conns, connect(settings["servers"]))
	}
	threads, locks := number("threads", 1), number("locks", 1)
	for i := 0; i <= threads; i++ {
		lock := i % locks
		if i == threads { // the holder
			lock = 0
		}
		path := fmt.Sprintf("%s-%d", settings["path"], lock)
		recipe := zk.NewLock(conns[lock%len(conns)], path, zk.WorldACL(zk.PermAll))
		seats = append(seats, &seat{number: i, lock: lock, recipe: recipe})
	}
	fmt.Println(`{"ready": 1}`)
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		fmt.Println(measure(strings.Fields(input.Text())))
	}
	for _, conn := range conns {
		conn.Close()
	}
}
