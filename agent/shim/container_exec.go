package shim

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// maxStrays bounds sessions.strays.
const maxStrays = 4096

// enterContainer starts a command in the member's container.
func (s *sessions) enterContainer(e Exec, std *streams) (command started, end <-chan unix.WaitStatus, code int, err error) {
	config, err := s.inside.further(e, s.environment(e))
	if err != nil {
		return started{}, nil, codeNotStarted, err
	}
	t, over, err := s.askTool(config, e.TTY, std)
	if err != nil {
		return started{}, nil, codeNotStarted, err
	}
	defer t.close()
	alarm := time.AfterFunc(startMost, func() { s.signal(started{pid: t.pid, group: t.pid}, unix.SIGKILL) })
	status := <-over // the reaper collects the end of the tool, as of all children
	var p started
	if code = codeNotStarted; !alarm.Stop() {
		err = t.late()
	} else {
		p, code, err = t.result(status)
	}
	waits := s.expect(p.pid, err == nil)
	if err == nil && !isBelowShim(p.pid) && !endsSoon(waits) {
		s.mu.Lock()
		delete(s.ends, p.pid)
		s.mu.Unlock()
		code, err = codeNotStarted, t.stranger(p.pid)
	}
	if err != nil {
		p.close()
		return started{}, nil, code, err
	}
	if p.terminal != nil {
		std.setTerminal(p.terminal)
	}
	p.setGroup()
	return p, waits, 0, nil
}

// expect ends a setup. It returns where the end of the command comes, if one was started: the
// command may have ended already.
func (s *sessions) expect(pid int, isStarted bool) chan unix.WaitStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	waits := make(chan unix.WaitStatus, 1)
	if status, ended := s.strays[pid]; ended {
		waits <- status
	} else if isStarted {
		s.ends[pid] = waits
	}
	if s.setups--; s.setups == 0 {
		clear(s.strays)
	}
	return waits
}

// endsSoon reports whether the end of a command has come. The command is no process any more,
// or none below the shim: the reaper, which has seen the end of a child, hands it over soon.
func endsSoon(waits chan unix.WaitStatus) bool {
	for range reaperWaits {
		if len(waits) > 0 {
			return true
		}
		time.Sleep(killWait)
	}
	return false
}

// reaperWaits bounds the wait of endsSoon, in steps of killWait.
const reaperWaits = 250

// askTool starts the tool for a command, and notes that a command is on its way.
func (s *sessions) askTool(config []byte, tty bool, std *streams) (*toolRun, <-chan unix.WaitStatus, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, errors.New(answerEnded)
	}
	t, err := s.inside.ask("exec", config, std.command.files, tty)
	if err != nil {
		return nil, nil, err
	}
	over := make(chan unix.WaitStatus, 1)
	s.ends[t.pid] = over
	s.setups++
	return t, over, nil
}

// further is the configuration of a further command.
func (c *container) further(e Exec, env []string) ([]byte, error) {
	var terminal *Window
	if e.TTY {
		terminal = &e.Window
	}
	return json.Marshal(c.process(slices.Clone(e.Args), env, terminal))
}
