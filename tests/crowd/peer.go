// SPDX-License-Identifier: Apache-2.0

// The go-zookeeper peer. What it is told and what it answers is in peers.h. Its Lock has no try and no bound, so a
// worker that is told to lock waits as long as it takes; and nothing lists who takes part. Each worker has a Lock of its own,
// as one is one contender.
package main

import (
	"bufio"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/go-zookeeper/zk"
)

const (
	session = 30 * time.Second
	nap     = 100 * time.Microsecond
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

func fail(what string, err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
	os.Exit(1)
}

func connect(servers string) *zk.Conn {
	conn, events, err := zk.Connect(strings.Split(servers, ","), session, zk.WithLogInfo(false),
		zk.WithLogger(log.New(os.Stderr, "", 0)))
	if err != nil {
		fail("connect", err)
	}
	for event := range events {
		if event.State == zk.StateHasSession {
			break
		}
	}
	return conn
}

func openEnd(path string, flags int) *os.File {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|flags, 0600)
	if err != nil {
		fail("open", err)
	}
	return file
}

func main() {
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
