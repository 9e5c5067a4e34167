package container

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/grant"
)

// session opens a session in the member.
func (h *host) session(e grant.Exec) grant.ExecSession {
	h.t.Helper()
	e.Tx = tx
	s, err := h.runner.Exec(e)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(s.Close)
	return s
}

// hears receives until the end of a session, or until its output contains a text.
func hears(t *testing.T, s grant.ExecSession, text string) (out string, exit grant.ExecExit) {
	t.Helper()
	for {
		m, err := s.Receive()
		if err != nil {
			t.Fatalf("after %q: %v", out, err)
		}
		if m.Exit != nil {
			return out, *m.Exit
		}
		out += string(m.Data)
		if text != "" && strings.Contains(out, text) {
			return out, grant.ExecExit{}
		}
	}
}

func send(t *testing.T, s grant.ExecSession, in grant.ExecInput) {
	t.Helper()
	if err := s.Send(in); err != nil {
		t.Fatal(err)
	}
}

func shell(script string) []string { return []string{"sh", "-c", script} }

func TestAFurtherCommandRunsInTheContainer(t *testing.T) {
	h := newHost(t)
	s := h.spec("echo kept > /tmp/file; echo ready; exec sleep 1000")
	s.Env = append(s.Env, "A=set")
	h.attach(s)
	h.prints("ready")
	completed := string(shim.Completed)
	for name, c := range map[string]struct {
		exec grant.Exec
		in   string
		out  string
		exit grant.ExecExit
	}{
		"it sees the container": {exec: grant.Exec{Args: shell("cat /etc/inside /tmp/file; id -u; echo $A; grep CapEff /proc/self/status")}, out: "the image\nkept\n" + memberID + "\nset\nCapEff:\t0000000000000000\n", exit: grant.ExecExit{Reason: completed}},
		"a code":                {exec: grant.Exec{Args: shell("exit 7")}, exit: grant.ExecExit{Code: 7, Reason: completed}},
		"a signal":              {exec: grant.Exec{Args: shell("kill -KILL $$")}, exit: grant.ExecExit{Code: 137, Signal: 9, Reason: completed}},
		"its input":             {exec: grant.Exec{Args: []string{"cat"}, Input: true}, in: "one\n", out: "one\n", exit: grant.ExecExit{Reason: completed}},
		"a terminal":            {exec: grant.Exec{Args: shell("stty size; echo $TERM; echo own > /dev/tty; exit 4"), TTY: true, Window: grant.Window{Rows: 33, Columns: 44}, Term: "vt100"}, out: "33 44\r\nvt100\r\nown\r\n", exit: grant.ExecExit{Code: 4, Reason: completed}},
		"no such command":       {exec: grant.Exec{Args: []string{"no-such-command"}}, exit: grant.ExecExit{Code: 127, Reason: string(shim.NotStarted)}},
	} {
		t.Run(name, func(t *testing.T) {
			session := h.session(c.exec)
			if c.in != "" {
				send(t, session, grant.ExecInput{Data: []byte(c.in)})
				send(t, session, grant.ExecInput{End: true})
			}
			out, exit := hears(t, session, "")
			if exit.Code == 127 && strings.Contains(exit.Message, "no-such-command") {
				exit.Message = ""
			}
			if out != c.out || exit != c.exit {
				t.Errorf("output %q, end %+v; want %q, %+v", out, exit, c.out, c.exit)
			}
		})
	}
}

func TestASessionEndsWithItsPersonAndWithItsMember(t *testing.T) {
	h := newHost(t)
	h.attach(h.spec("trap 'exit 5' TERM; echo ready; while :; do sleep 0.1; done"))
	h.prints("ready")
	left := h.session(grant.Exec{Args: shell("exec 2>/dev/null; trap 'echo hung up > /tmp/left; exit 0' HUP; echo here; while :; do sleep 0.1; done")})
	hears(t, left, "here")
	stays := h.session(grant.Exec{Args: shell("echo here; while ! cat /tmp/left; do sleep 0.1; done 2>/dev/null; exec sleep 1000")})
	hears(t, stays, "here")
	left.Close()
	hears(t, stays, "hung up")
	h.runner.Stop(tx, time.Now().Add(patience))
	if _, exit := hears(t, stays, ""); exit.Signal != int(unix.SIGKILL) {
		t.Errorf("the session has ended with %+v, want SIGKILL", exit)
	}
	if e := h.ends(); e.Code != 5 {
		t.Errorf("end %+v, want code 5", e)
	}
}

func TestTheTerminalOfACommandInAContainer(t *testing.T) {
	h := newHost(t)
	s := h.spec("stty size; echo own > /dev/tty; while read line; do echo got $line; done; exit 6")
	s.TTY, s.Stdin = true, true
	h.attach(s)
	h.prints("own")
	session := h.session(grant.Exec{Attach: true, From: new(int64), Input: true, Window: grant.Window{Rows: 30, Columns: 90}})
	hears(t, session, "24 80\r\nown\r\n")
	h.restart()
	session.Close()
	var again grant.ExecSession
	h.await("the input of the session before", func() bool {
		var err error
		again, err = h.runner.Exec(grant.Exec{Tx: tx, Attach: true, From: new(int64), Input: true})
		return err == nil
	})
	defer again.Close()
	send(t, again, grant.ExecInput{Data: []byte("one\n")})
	hears(t, again, "got one\r\n")
	send(t, again, grant.ExecInput{Data: []byte{4}}) // the end of the input
	if _, exit := hears(t, again, ""); exit.Code != 6 {
		t.Errorf("end %+v, want code 6", exit)
	}
	if e := h.ends(); e.Code != 6 {
		t.Errorf("end %+v, want code 6", e)
	}
}

func TestTheInputOfACommandInAContainer(t *testing.T) {
	h := newHost(t)
	s := h.spec("echo ready; cat; exit 3")
	s.Stdin = true
	h.attach(s)
	h.prints("ready")
	session := h.session(grant.Exec{Attach: true, From: new(int64), Input: true})
	send(t, session, grant.ExecInput{Data: []byte("one\n")})
	send(t, session, grant.ExecInput{End: true})
	if out, exit := hears(t, session, ""); out != "ready\none\n" || exit.Code != 3 {
		t.Errorf("output %q, end %+v; want code 3", out, exit)
	}
	if e := h.ends(); e.Code != 3 {
		t.Errorf("end %+v, want code 3", e)
	}
}
