package run_test

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterd/muster/agent/run"
	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/grant"
)

// running attaches a member that runs until it is ended.
func (h *host) running(change func(*shim.Spec)) {
	h.t.Helper()
	h.start()
	m := h.shell(0, "exec sleep 3600")
	if change != nil {
		change(&m.Spec)
	}
	h.runner.Attach("a", []run.Member{m})
	h.until(grant.WorkRunning)
}

// exec opens a session; the shim may not listen yet.
func (h *host) exec(e grant.Exec) grant.ExecSession {
	h.t.Helper()
	e.Tx = "a"
	s, err := h.runner.Exec(e)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(s.Close)
	return s
}

// result is everything that a session has sent.
type result struct {
	out, err string
	taken    int
	exit     *grant.ExecExit
}

// await receives until the end, or until the output contains a text.
func await(t *testing.T, s grant.ExecSession, text string) result {
	t.Helper()
	var r result
	for {
		m, err := s.Receive()
		if err != nil {
			t.Fatalf("after %d bytes %.80q, %q: %v", len(r.out), r.out, r.err, err)
		}
		switch {
		case m.Exit != nil:
			r.exit = m.Exit
			return r
		case m.Error:
			r.err += string(m.Data)
		default:
			r.out += string(m.Data)
		}
		r.taken += m.Taken
		if text != "" && strings.Contains(r.out, text) {
			return r
		}
	}
}

func send(t *testing.T, s grant.ExecSession, all ...grant.ExecInput) {
	t.Helper()
	for _, in := range all {
		if err := s.Send(in); err != nil {
			t.Fatal(err)
		}
	}
}

func shell(script string) []string { return []string{"sh", "-c", script} }

func TestAFurtherCommandRunsAsTheMemberDoes(t *testing.T) {
	h := newHost(t)
	h.running(func(s *shim.Spec) { s.CPUs = []int{0} })
	big := strings.Repeat("0123456789abcdef", 1<<16) // a MiB
	for name, c := range map[string]struct {
		exec grant.Exec
		in   []grant.ExecInput
		want result
	}{
		"success":              {exec: grant.Exec{Args: shell("echo out; echo err >&2")}, want: result{out: "out\n", err: "err\n", exit: &grant.ExecExit{Reason: "Completed"}}},
		"a code":               {exec: grant.Exec{Args: shell("exit 7")}, want: result{exit: &grant.ExecExit{Code: 7, Reason: "Completed"}}},
		"a signal":             {exec: grant.Exec{Args: shell("kill -KILL $$")}, want: result{exit: &grant.ExecExit{Code: 137, Signal: 9, Reason: "Completed"}}},
		"its environment":      {exec: grant.Exec{Args: shell("echo $T; pwd; echo ${TERM-none}")}, want: result{out: h.root + "\n/tmp\nnone\n", exit: &grant.ExecExit{Reason: "Completed"}}},
		"its CPUs":             {exec: grant.Exec{Args: shell("grep Cpus_allowed_list /proc/self/status")}, want: result{out: "Cpus_allowed_list:\t0\n", exit: &grant.ExecExit{Reason: "Completed"}}},
		"no input":             {exec: grant.Exec{Args: shell("read line; echo $?")}, want: result{out: "1\n", exit: &grant.ExecExit{Reason: "Completed"}}},
		"input to its end":     {exec: grant.Exec{Args: []string{"cat"}, Input: true}, in: []grant.ExecInput{{Data: []byte("one\n")}, {Data: []byte("two\n")}, {End: true}}, want: result{out: "one\ntwo\n", taken: 8, exit: &grant.ExecExit{Reason: "Completed"}}},
		"a signal of a person": {exec: grant.Exec{Args: shell("trap 'echo got; exit 3' USR1; read line; kill -USR1 $$; sleep 3600"), Input: true}, in: []grant.ExecInput{{Data: []byte("x\n")}}, want: result{out: "got\n", taken: 2, exit: &grant.ExecExit{Code: 3, Reason: "Completed"}}},
		"a long output beside a process that keeps it open": {
			exec: grant.Exec{Args: shell("sleep 3600 & for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do head -c 65536 $0; done; exit 5"), Input: false},
			want: result{out: big, exit: &grant.ExecExit{Code: 5, Reason: "Completed"}},
		},
		"a terminal": {
			exec: grant.Exec{Args: shell("test -t 0 && test -t 1 && test -t 2 && stty size && echo $TERM && tty >&2"), TTY: true, Window: grant.Window{Rows: 24, Columns: 80}, Term: "vt100"},
			want: result{out: "24 80\r\nvt100\r\n", exit: &grant.ExecExit{Reason: "Completed"}},
		},
		"no such command": {exec: grant.Exec{Args: []string{"no-such-command"}}, want: result{exit: &grant.ExecExit{Code: 127, Reason: "NotStarted", Message: `command "no-such-command" is in no folder of PATH /usr/bin:/bin`}}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.want.out == big {
				file := h.t.TempDir() + "/big"
				if err := os.WriteFile(file, []byte(big[:65536]), 0o600); err != nil {
					t.Fatal(err)
				}
				c.exec.Args = append(c.exec.Args, file)
			}
			s := h.exec(c.exec)
			send(t, s, c.in...)
			got := await(t, s, "")
			if c.exec.TTY { // the name of the terminal
				got.out, _, _ = strings.Cut(got.out, "/dev/pts")
			}
			if *got.exit != *c.want.exit || got.out != c.want.out || got.err != c.want.err || got.taken != c.want.taken {
				t.Errorf("%d bytes %.80q, %q, taken %d, %+v; want %d bytes %.80q, %q, taken %d, %+v",
					len(got.out), got.out, got.err, got.taken, got.exit, len(c.want.out), c.want.out, c.want.err, c.want.taken, c.want.exit)
			}
		})
	}
	if out := h.output(0); out != "" {
		t.Errorf("the log of the member has %q", out)
	}
}

func TestATerminalIsThatOfAPerson(t *testing.T) {
	h := newHost(t)
	h.running(nil)
	script := `echo ready; read a; stty size; trap 'c=caught' INT; echo waits
		while [ -z "$c" ]; do sleep 0.01; done
		echo $c; read e || exit 4`
	s := h.exec(grant.Exec{Args: shell(script), TTY: true, Input: true, Term: "dumb"})
	await(t, s, "ready\r\n")
	send(t, s, grant.ExecInput{Window: grant.Window{Rows: 5, Columns: 7}}, grant.ExecInput{Data: []byte("x\n")})
	await(t, s, "x\r\n5 7\r\nwaits\r\n")         // the echo of the terminal comes first
	send(t, s, grant.ExecInput{Data: []byte{3}}) // Ctrl-C
	await(t, s, "caught\r\n")
	send(t, s, grant.ExecInput{End: true})
	if got := await(t, s, ""); got.exit.Code != 4 {
		t.Errorf("the command has ended as %+v", got.exit)
	}
}

// TestASessionEndsWithItsPerson: nothing of it is left, also of what ignores a hang-up, and
// the member goes on.
func TestASessionEndsWithItsPerson(t *testing.T) {
	for name, e := range map[string]grant.Exec{
		"streams":                               {Args: shell("trap '' HUP; sleep 3601 & echo ready; sleep 3601; sleep 3601")},
		"a terminal":                            {Args: shell("trap '' HUP; sleep 3601 & echo ready; sleep 3601; sleep 3601"), TTY: true},
		"a person who sends more than is taken": {Args: shell("echo ready; sleep 3601"), Input: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.running(nil)
			s := h.exec(e)
			await(t, s, "ready")
			member, err := h.folder(0).Started()
			if err != nil {
				t.Fatal(err)
			}
			if e.Input {
				piece := bytes.Repeat([]byte("x"), grant.MaxExecPiece)
				for range 8 { // more than the window and what a pipe takes
					_ = s.Send(grant.ExecInput{Data: piece}) // the session may have ended
				}
				await(t, s, "")
			} else {
				s.Close()
			}
			for !slices.Equal(withVariable(t, "T="+h.root), []int{member.PID}) {
				time.Sleep(time.Millisecond)
			}
			if states := h.runner.States("a"); states[0].Phase != grant.WorkRunning {
				t.Errorf("the member is %+v", states)
			}
		})
	}
}

// withVariable lists the processes that have a variable in their environment.
func withVariable(t *testing.T, text string) (list []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		env, _ := os.ReadFile("/proc/" + e.Name() + "/environ")
		if bytes.Contains(env, []byte(text+"\x00")) {
			list = append(list, pid)
		}
	}
	return list
}

func TestASessionEndsWithItsMember(t *testing.T) {
	h := newHost(t)
	h.running(nil)
	s := h.exec(grant.Exec{Args: shell("trap '' TERM; echo ready; sleep 3601; sleep 3601")})
	await(t, s, "ready")
	h.runner.Stop("a", time.Now().Add(time.Hour))
	if got := await(t, s, ""); got.exit.Signal != 9 {
		t.Errorf("the command has ended as %+v, want a kill", got.exit)
	}
	if got := h.until(grant.WorkEnded)[0]; got.Reason != "Stopped" || got.Signal != 15 {
		t.Errorf("the member has ended as %+v", got)
	}
	if _, err := h.runner.Exec(grant.Exec{Tx: "a", Args: []string{"true"}}); !errors.Is(err, grant.ErrNotRunning) {
		t.Errorf("a session in a member that has ended: %v", err)
	}
}

// TestAKilledSupervisorLeavesNoSession: the processes of sessions are found, as those of the
// member are.
func TestAKilledSupervisorLeavesNoSession(t *testing.T) {
	h := newHost(t)
	h.running(nil)
	s := h.exec(grant.Exec{Args: shell("setsid sleep 3601 & echo ready; sleep 3601")})
	await(t, s, "ready")
	p, err := h.folder(0).Begun()
	if err != nil {
		t.Fatal(err)
	}
	_ = syscall.Kill(p.PID, syscall.SIGKILL)
	if _, err := s.Receive(); err == nil {
		t.Error("the session goes on without its supervisor")
	}
	if got := h.until(grant.WorkEnded)[0]; got.Reason != string(shim.SupervisorLost) {
		t.Errorf("the member has ended as %+v", got)
	}
	if left := withVariable(t, "T="+h.root); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

func TestSessionsAreBounded(t *testing.T) {
	h := newHost(t)
	h.running(nil)
	var all []grant.ExecSession
	for range shim.MaxSessions {
		s := h.exec(grant.Exec{Args: []string{"cat"}, Input: true})
		all = append(all, s)
	}
	if _, err := h.runner.Exec(grant.Exec{Tx: "a", Args: []string{"true"}}); !errors.Is(err, grant.ErrManySessions) {
		t.Errorf("one more session: %v", err)
	}
	send(t, all[0], grant.ExecInput{End: true})
	await(t, all[0], "")
	for {
		s, err := h.runner.Exec(grant.Exec{Tx: "a", Args: []string{"true"}})
		if err == nil {
			s.Close()
			return
		}
		if !errors.Is(err, grant.ErrManySessions) { // the shim counts the first one off after its last frame
			t.Fatal(err)
		}
	}
}

func TestWhatCannotBeOpenedSaysWhy(t *testing.T) {
	h := newHost(t)
	h.running(nil)
	for name, c := range map[string]struct {
		exec grant.Exec
		is   error
		text string
	}{
		"no such transaction": {grant.Exec{Tx: "b", Args: []string{"true"}}, grant.ErrNotRunning, "b, member 0, start 0: the host has no such start"},
		"no such member":      {grant.Exec{Tx: "a", Member: 1, Args: []string{"true"}}, grant.ErrNotRunning, "a, member 1, start 0: the host has no such start"},
		"no such start":       {grant.Exec{Tx: "a", Restart: 1, Args: []string{"true"}}, grant.ErrNotRunning, "no such start"},
		"no command":          {grant.Exec{Tx: "a"}, nil, "args: no command"},
		"a zero byte":         {grant.Exec{Tx: "a", Args: []string{"a\x00"}}, nil, "args[0] has a zero byte"},
		"too long":            {grant.Exec{Tx: "a", Args: []string{strings.Repeat("x", grant.MaxExecBytes+1)}}, nil, "16385 bytes, want at most 16384"},
		"too many":            {grant.Exec{Tx: "a", Args: make([]string, grant.MaxExecArgs+1)}, nil, "args: no command"},
		"a terminal's name":   {grant.Exec{Tx: "a", Args: []string{"true"}, Term: "a b"}, nil, `term: "a b"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := h.runner.Exec(c.exec)
			if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %q", err, c.text)
			}
		})
	}
}
