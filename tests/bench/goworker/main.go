// SPDX-License-Identifier: Apache-2.0

// The go-zookeeper peer: its words, orders and answers are those of peer.h. Each thread is a goroutine with a lock
// object of its own.
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

	"github.com/samuel/go-zookeeper/zk"
)

const (
	session     = 30 * time.Second
	warmThreads = 8

	// The board, as in board.py.
	lockAt     = 4096
	lockBytes  = 4096
	releasedAt = 64
	sampleAt   = lockAt + 256*lockBytes
	samplesMax = 1 << 20
	boardBytes = sampleAt + 8*samplesMax
)

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

func fail(format string, args ...interface{}) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}

func must(what string, err error) {
	if err != nil {
		fail("%s: %v", what, err)
	}
}

func number(name string, otherwise int) int {
	text, there := settings[name]
	if !there {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	must(name, err)
	return n
}

// CLOCK_MONOTONIC, as all peers stamp by.
func now() int64 {
	var t syscall.Timespec
	_, _, e := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(&t)), 0)
	if e != 0 {
		fail("no clock: %v", e)
	}
	return t.Nano()
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

// --- the program

func obey(words []string) string {
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

func connect() *zk.Conn {
	conn, events, err := zk.Connect(strings.Split(settings["servers"], ","), session, zk.WithLogInfo(false),
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

func mapBoard() {
	file, err := os.OpenFile(settings["board"], os.O_RDWR, 0)
	must("board", err)
	board, err = syscall.Mmap(int(file.Fd()), 0, boardBytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	must("board", err)
	must("board", file.Close())
}

func main() {
	for _, arg := range os.Args[1:] {
		pair := strings.SplitN(arg, "=", 2)
		settings[pair[0]] = pair[1]
	}
	handOffs, whole = settings["sample"] == "handoff", settings["sample"] == "cycle"
	mapBoard()
	for i := 0; i < number("clients", 1); i++ {
		conns = append(conns, connect())
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
		fmt.Println(obey(strings.Fields(input.Text())))
	}
	for _, conn := range conns {
		conn.Close()
	}
}
