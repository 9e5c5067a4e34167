package work

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/cmd/muster/cli"
)

// given is a run of the program with a standard input and a kind of terminal.
func (w *world) given(stdin io.Reader, stdout io.Writer, args ...string) *muster {
	w.t.Helper()
	return w.start(func(p *cli.Program) {
		p.Stdin = stdin
		if stdout != nil {
			p.Stdout = stdout
		}
	}, args...)
}

// terminal is a pseudoterminal: a person types at keys and reads from shown.
type terminal struct {
	t     testing.TB
	keys  *os.File
	own   *os.File // the end of the program
	shown *screen
	ended chan struct{}
}

func newTerminal(t testing.TB, rows, columns uint16) *terminal {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Skip("no pseudoterminals here: ", err)
	}
	keys := os.NewFile(uintptr(fd), "keys")
	t.Cleanup(func() { _ = keys.Close() })
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	peer, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		t.Fatal(errno)
	}
	own := os.NewFile(peer, "terminal")
	t.Cleanup(func() { _ = own.Close() })
	s := &terminal{t: t, keys: keys, own: own, shown: newScreen(), ended: make(chan struct{})}
	s.resize(rows, columns)
	go func() {
		defer close(s.ended)
		_, _ = io.Copy(s.shown, keys)
	}()
	return s
}

func (s *terminal) resize(rows, columns uint16) {
	s.t.Helper()
	if err := unix.IoctlSetWinsize(int(s.own.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *terminal) types(keys string) {
	s.t.Helper()
	if _, err := s.keys.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// isAsBefore holds that the program has given the terminal back as it was.
func (s *terminal) isAsBefore(want *unix.Termios) {
	s.t.Helper()
	if got := s.state(); *got != *want {
		s.t.Errorf("the terminal is %+v, want %+v as before", got, want)
	}
}

func (s *terminal) state() *unix.Termios {
	s.t.Helper()
	state, err := unix.IoctlGetTermios(int(s.own.Fd()), unix.TCGETS)
	if err != nil {
		s.t.Fatal(err)
	}
	return state
}

// TestInputOfARun: as in a pipe of a shell.
func TestInputOfARun(t *testing.T) {
	w := open(t, 1)
	big := strings.Repeat("0123456789abcdef", 1<<15) // half a MiB
	for name, c := range map[string]struct {
		in      string
		command []string
		code    int
		want    string
	}{
		"a line":                             {"x\n", []string{"cat"}, 0, "x\n"},
		"no input":                           {"", []string{"cat"}, 0, ""},
		"more than a pipe":                   {big, []string{"sh", "-c", "cat; echo end >&2"}, 0, big + "end\n"},
		"a command that does not read":       {big, []string{"sh", "-c", "echo done; exit 3"}, 3, "done\n"},
		"a command that reads a part":        {big, []string{"head", "-c", "4"}, 0, "0123"},
		"a command that closes its input":    {big, []string{"sh", "-c", "exec 0<&-; sleep 0.2; echo done"}, 0, "done\n"},
		"a command that there is not":        {"x\n", []string{"no-such-program"}, 127, ""},
		"an end before the command is there": {"x\n", []string{"sh", "-c", "sleep 0.3; wc -c"}, 0, "2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr := w.given(strings.NewReader(c.in), nil, append([]string{"run", "-i", "--cpu", "100m", "--memory", "1Mi", "--"}, c.command...)...).ends(c.code)
			if stdout != c.want {
				t.Errorf("%d bytes %.100q and %q, want %d bytes %.100q", len(stdout), stdout, stderr, len(c.want), c.want)
			}
		})
	}
}

// TestATerminalForARun: the story of a person at a terminal, whose keys all go to the
// command; the terminal is as before afterwards.
func TestATerminalForARun(t *testing.T) {
	w := open(t, 1)
	s := newTerminal(t, 33, 101)
	before := s.state()
	m := w.given(s.own, s.own, "run", "-it", "--name", "debug", "-e", "PS1=$ ", "-e", "TERM=dumb", "--", "bash", "--norc")
	s.shows(m, "$ ")
	s.types("stty size; echo $TERM $MUSTER_INDEX\r")
	s.shows(m, "33 101\r\ndumb 0\r\n")
	s.resize(20, 60)
	seen := make(chan struct{})
	go func() { // as the kernel does for the terminal of a process
		for {
			_ = unix.Kill(os.Getpid(), unix.SIGWINCH)
			select {
			case <-seen:
				return
			case <-time.After(time.Second):
			}
		}
	}()
	s.types("until [ \"$(stty size)\" = '20 60' ]; do sleep 0.05; done; echo wi''der\r")
	s.shows(m, "wider\r\n")
	close(seen)
	// It starts no program: between vfork and exec a stop would never end.
	s.types("bash -c 'trap \"echo back\" CONT; echo up; while :; do read -t 0.05 x; done'\r")
	s.shows(m, "\nup\r\n")
	s.types("\x1a") // Ctrl-Z
	s.shows(m, "Stopped")
	s.types("fg\r")
	s.shows(m, "\nback\r\n")
	s.types("\x03") // Ctrl-C
	s.shows(m, "\n$ ")
	s.types("echo ~'~'; exit 7\r")
	s.shows(m, "exit 7\r\n")
	m.ends(7)
	s.isAsBefore(before)
	if out, _ := w.muster("logs", "debug").ends(0); !strings.Contains(out, "33 101\r\n") {
		t.Errorf("the log is %q", out)
	}
}

// TestAPersonLeavesATerminalAndComesBack: the command goes on meanwhile, and one session has
// its input at a time.
func TestAPersonLeavesATerminalAndComesBack(t *testing.T) {
	w := open(t, 1)
	s := newTerminal(t, 24, 80)
	before := s.state()
	m := w.given(s.own, s.own, "run", "-it", "--name", "debug", "-e", "PS1=$ ", "-e", "TERM=dumb", "--", "bash", "--norc")
	s.shows(m, "$ ")
	s.types("a=remembered\r")
	s.shows(m, "a=remembered\r\n$ ")
	if _, stderr := w.muster("attach", "debug").ends(1); !strings.Contains(stderr, "another session sends its standard input") {
		t.Errorf("a second session: %q", stderr)
	}
	s.types("\r~.")
	if _, stderr := m.ends(0); !strings.Contains(stderr, "detached; job default/debug goes on: muster attach debug") {
		t.Errorf("leaving says %q", stderr)
	}
	s.isAsBefore(before)

	again := newTerminal(t, 24, 80)
	m = w.given(again.own, again.own, "attach", "debug")
	again.types("\r")
	again.shows(m, "$ ")
	again.types("echo $a\r")
	again.shows(m, "remembered\r\n")
	look := w.muster("attach", "--no-stdin", "debug")
	again.types("sleep 0.5; exit 9\r")
	m.ends(9)
	look.ends(9)
	again.isAsBefore(before)
	w.phase("debug", api.Failed)
	if text, _ := w.muster("audit", "-o", "json").ends(0); strings.Count(text, `"verb": "exec"`) < 3 || strings.Contains(text, "remembered") {
		t.Errorf("the audit has not each session, or more than that:\n%s", text)
	}
}

// TestAStopOfAShellAtATerminal: an interactive shell ignores SIGTERM.
func TestAStopOfAShellAtATerminal(t *testing.T) {
	w := open(t, 1)
	s := newTerminal(t, 24, 80)
	before := s.state()
	m := w.given(s.own, s.own, "run", "-it", "--name", "debug", "-e", "PS1=$ ", "--", "bash", "--norc")
	s.shows(m, "$ ")
	began := time.Now()
	w.muster("cancel", "debug").ends(0)
	m.ends(129)
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the shell has ended after %s, want far less than the grace of 30 s", took)
	}
	s.isAsBefore(before)
}

// shows waits until the terminal has a text behind what was found before.
func (s *terminal) shows(m *muster, text string) {
	s.t.Helper()
	m.await(s.shown, text)
	s.shown.mu.Lock()
	defer s.shown.mu.Unlock()
	if at := strings.Index(s.shown.text.String(), text); at >= 0 {
		s.shown.text.Next(at + len(text))
	}
}

// TestAJobWaitsForItsInput: a job of a file, whose input comes later and in parts.
func TestAJobWaitsForItsInput(t *testing.T) {
	w := open(t, 1)
	file := filepath.Join(t.TempDir(), "job.yaml")
	if err := os.WriteFile(file, []byte("kind: Job\nmetadata: {name: reads}\nspec:\n  template:\n    spec:\n      stdin: true\n      resources: {requests: {cpu: 1, memory: 1Mi}}\n      command: [sh, -c, 'echo begins; cat']\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.muster("submit", "-f", file).ends(0)
	w.phase("reads", api.Running)
	reader, writer := io.Pipe()
	var m *muster
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if out, _ := w.muster("logs", "reads").ends(0); out == "begins\n" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the command has not begun")
		}
	}
	m = w.given(reader, nil, "attach", "reads")
	if _, err := writer.Write([]byte("one\n")); err != nil {
		t.Fatal(err)
	}
	m.shows("one\n")
	m.interrupt() // the person goes
	if _, stderr := m.ends(0); !strings.Contains(stderr, "detached; job/reads goes on") {
		t.Errorf("leaving says %q", stderr)
	}
	var stdout string
	for {
		m = w.given(strings.NewReader("two\n"), nil, "attach", "reads")
		code := <-m.code
		if stdout = m.out.String(); code == 0 {
			break
		}
		if !strings.Contains(m.errors.String(), "another session") {
			t.Fatalf("code %d: %s", code, m.errors)
		}
	}
	if stdout != "two\n" {
		t.Errorf("the second session shows %q", stdout)
	}
	w.phase("reads", api.Succeeded)
	if out, _ := w.muster("logs", "reads").ends(0); out != "begins\none\ntwo\n" {
		t.Errorf("the log is %q", out)
	}
}

// TestAnInputIsForOneMember names the field, and the flags.
func TestAnInputIsForOneMember(t *testing.T) {
	w := open(t, 1)
	if _, stderr := w.muster("run", "-i", "--nodes", "2", "--", "cat").ends(2); !strings.Contains(stderr, "the job has 2 members") {
		t.Errorf("%q", stderr)
	}
	if _, stderr := w.muster("run", "-t", "--", "cat").ends(2); !strings.Contains(stderr, "standard input is not a terminal") {
		t.Errorf("%q", stderr)
	}
	file := filepath.Join(t.TempDir(), "job.yaml")
	if err := os.WriteFile(file, []byte("kind: Job\nmetadata: {name: two}\nspec:\n  parallelism: 2\n  template:\n    spec:\n      stdin: true\n      resources: {requests: {cpu: 1, memory: 1Mi}}\n      command: [cat]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr := w.muster("submit", "-f", file).ends(1); !strings.Contains(stderr, "spec.template.spec.stdin: true for 2 members") {
		t.Errorf("%q", stderr)
	}
	deaf := filepath.Join(t.TempDir(), "goes-on")
	running := w.muster("run", "--name", "deaf", "--", "sh", "-c", "echo begins; until [ -e "+deaf+" ]; do sleep 0.02; done")
	running.shows("begins")
	session := w.given(strings.NewReader("lost\n"), nil, "attach", "deaf")
	session.says("job/deaf takes no input")
	if err := os.WriteFile(deaf, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	session.ends(0)
	running.ends(0)
	w.muster("run", "--name", "plain", "--", "true").ends(0)
	if _, stderr := w.muster("attach", "plain").ends(1); !strings.Contains(stderr, "does not run") {
		t.Errorf("%q", stderr)
	}
}
