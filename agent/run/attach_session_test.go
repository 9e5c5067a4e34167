package run_test

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterd/muster/agent/run"
	"github.com/musterd/muster/grant"
)

// own attaches a member with a standard input, and waits until it runs.
func (h *host) own(tty bool, script string) {
	h.t.Helper()
	h.start()
	m := h.shell(0, script)
	m.Spec.Stdin, m.Spec.TTY = true, tty
	h.runner.Attach("a", []run.Member{m})
	h.until(grant.WorkRunning)
}

// all is a session from the first byte of the output on.
func all(input bool) grant.Exec { return grant.Exec{Attach: true, From: new(int64), Input: input} }

// TestASessionHasTheInputOfTheMember: the input of two sessions one after the other is one
// input, and its end is the end of the command; the output is in the log, too.
func TestASessionHasTheInputOfTheMember(t *testing.T) {
	h := newHost(t)
	h.own(false, "echo begins; cat; echo end >&2; exit 3")
	first := h.exec(all(true))
	await(t, first, "begins\n")
	send(t, first, grant.ExecInput{Data: []byte("one\n")})
	await(t, first, "one\n")
	first.Close()

	second := h.attachAgain(all(true))
	await(t, second, "begins\none\n")
	late := h.exec(grant.Exec{Attach: true}) // from the end of the present output on
	send(t, second, grant.ExecInput{Data: []byte("two\n")}, grant.ExecInput{End: true})
	want := grant.ExecExit{Code: 3, Reason: "Completed"}
	if r := await(t, second, ""); r.out != "two\nend\n" || r.err != "" || r.taken != 4 || *r.exit != want {
		t.Errorf("the second session has %+v, %+v", r, r.exit)
	}
	if r := await(t, late, ""); r.out != "two\nend\n" || *r.exit != want {
		t.Errorf("a session that looks on has %+v, %+v", r, r.exit)
	}
	h.until(grant.WorkEnded)
	if out := h.output(0); out != "begins\none\ntwo\nend\n" {
		t.Errorf("the log has %q", out)
	}
}

// attachAgain opens a session once the input of another one that has just ended is free.
func (h *host) attachAgain(e grant.Exec) grant.ExecSession {
	h.t.Helper()
	e.Tx = "a"
	for deadline := time.Now().Add(time.Minute); ; {
		s, err := h.runner.Exec(e)
		if err == nil {
			h.t.Cleanup(s.Close)
			return s
		}
		if !errors.Is(err, grant.ErrInputHeld) || time.Now().After(deadline) {
			h.t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestOneSessionHasTheInput: a second one is refused, and one without input is not; after
// the end of the input there is none.
func TestOneSessionHasTheInput(t *testing.T) {
	h := newHost(t)
	h.own(false, "cat; exec sleep 3600")
	first := h.exec(all(true))
	if _, err := h.runner.Exec(grant.Exec{Tx: "a", Attach: true, Input: true}); !errors.Is(err, grant.ErrInputHeld) {
		t.Errorf("a second session with input: %v", err)
	}
	look := h.exec(all(false))
	send(t, look, grant.ExecInput{Signal: int(syscall.SIGKILL)}) // changes nothing
	send(t, first, grant.ExecInput{Data: []byte("x\n")})
	await(t, look, "x\n")
	send(t, look, grant.ExecInput{Data: []byte("y\n")}) // that ends the session alone
	if m, err := look.Receive(); err == nil {
		t.Errorf("a session that sends input without having it goes on: %+v", m)
	}
	send(t, first, grant.ExecInput{End: true})
	first.Close()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		s, err := h.runner.Exec(grant.Exec{Tx: "a", Attach: true, Input: true})
		if errors.Is(err, grant.ErrNoInput) {
			break
		}
		if err == nil { // the command had not got the end yet
			s.Close()
		}
		if time.Now().After(deadline) {
			t.Fatalf("after the end of the input: %v", err)
		}
	}
}

// TestInputThatNobodyTakesIsLostWithItsSession: the command does not read; the session ends
// all the same, and the next one has the input.
func TestInputThatNobodyTakesIsLostWithItsSession(t *testing.T) {
	h := newHost(t)
	go1 := t.TempDir() + "/go"
	h.own(false, "until [ -e "+go1+" ]; do sleep 0.01; done; exec wc -c")
	first := h.exec(all(true))
	piece := []byte(strings.Repeat("x", grant.MaxExecPiece))
	sent := 0
	for range 4 { // the pipe takes 64 KiB, and the window 64 KiB more
		send(t, first, grant.ExecInput{Data: piece})
		sent += len(piece)
		if sent <= 64<<10 {
			if m, err := first.Receive(); err != nil || m.Taken != len(piece) {
				t.Fatalf("%+v, %v", m, err)
			}
		}
	}
	first.Close()
	second := h.attachAgain(all(true))
	if err := os.WriteFile(go1, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	send(t, second, grant.ExecInput{Data: []byte("123")}, grant.ExecInput{End: true})
	if r := await(t, second, ""); strings.TrimSpace(r.out) != "65539" || r.exit.Code != 0 {
		t.Errorf("the command has counted %q, %+v, want the 64 KiB of the pipe and 3 bytes", r.out, r.exit)
	}
}

// TestTheTerminalOfTheMember: the command has a terminal of the size of its person, Ctrl-C
// and Ctrl-D reach it, and it outlives the person and the runner.
func TestTheTerminalOfTheMember(t *testing.T) {
	h := newHost(t)
	h.own(true, `test -t 0 && test -t 1 && test -t 2 && echo ready; read a; stty size; read a; stty size
		trap 'w=resized' WINCH; echo loop; while [ -z "$w" ]; do sleep 0.01; done; echo $w
		trap 'c=caught' INT; echo waits; while [ -z "$c" ]; do sleep 0.01; done
		echo $c; read e; exit 4`)
	enter := grant.ExecInput{Data: []byte("\r")}
	first := h.exec(grant.Exec{Attach: true, From: new(int64), Input: true, Window: grant.Window{Rows: 5, Columns: 7}})
	await(t, first, "ready\r\n")
	send(t, first, enter)
	await(t, first, "5 7\r\n")
	send(t, first, grant.ExecInput{Window: grant.Window{Rows: 6, Columns: 8}}, enter)
	await(t, first, "6 8\r\nloop\r\n")
	first.Close()
	h.leave()
	h.start()

	// The same size: programs draw their screen again all the same.
	second := h.attachAgain(grant.Exec{Attach: true, Input: true, Window: grant.Window{Rows: 6, Columns: 8}})
	await(t, second, "resized\r\nwaits\r\n")
	send(t, second, grant.ExecInput{Data: []byte{3}})
	await(t, second, "caught\r\n")
	send(t, second, grant.ExecInput{Data: []byte{26}}) // Ctrl-Z stops no command without a shell
	send(t, second, grant.ExecInput{Data: []byte{4}})
	if r := await(t, second, ""); r.exit.Code != 4 {
		t.Errorf("%+v, %+v", r, r.exit)
	}
	h.until(grant.WorkEnded)
}

// TestAShellAtATerminalEndsWithAStop: such a shell ignores SIGTERM.
func TestAShellAtATerminalEndsWithAStop(t *testing.T) {
	h := newHost(t)
	h.own(true, "exec bash --norc -i")
	s := h.exec(all(true))
	send(t, s, grant.ExecInput{Data: []byte("echo a$((1+1))b; sleep 3600 &\n")})
	await(t, s, "a2b")
	h.runner.Stop("a", time.Now().Add(time.Hour))
	if r := await(t, s, ""); r.exit.Reason != "Stopped" {
		t.Errorf("%+v, %+v", r, r.exit)
	}
	h.until(grant.WorkEnded)
}

// TestALongOutputReachesASessionThatBeganLate: from the first byte on, and the session is
// no brake for the command.
func TestALongOutputReachesASessionThatBeganLate(t *testing.T) {
	h := newHost(t)
	h.own(false, "head -c 3000000 /dev/zero | tr '\\0' x; echo done; read line")
	s := h.exec(all(true))
	slow := h.exec(all(false)) // it reads nothing
	r := await(t, s, "done\n")
	if want := strings.Repeat("x", 3000000) + "done\n"; r.out != want {
		t.Errorf("%d bytes, want %d", len(r.out), len(want))
	}
	slow.Close()
	send(t, s, grant.ExecInput{Data: []byte("\n")})
	if r := await(t, s, ""); r.exit.Code != 0 {
		t.Errorf("%+v", r.exit)
	}
}

// A member without an input has none for a session, and shows its output.
func TestASessionOfAMemberWithoutInput(t *testing.T) {
	h := newHost(t)
	h.start()
	h.runner.Attach("a", []run.Member{h.shell(0, "echo one; read line || echo two; exec sleep 3600")})
	h.until(grant.WorkRunning)
	await(t, h.exec(all(false)), "one\ntwo\n")
	if _, err := h.runner.Exec(grant.Exec{Tx: "a", Attach: true, Input: true}); !errors.Is(err, grant.ErrNoInput) {
		t.Errorf("a session with input: %v", err)
	}
}
