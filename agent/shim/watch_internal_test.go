package shim

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// TestTheGraceOfASecondStop: a later stop shortens the grace and never lengthens the grace, also
// with a notice.
func TestTheGraceOfASecondStop(t *testing.T) {
	for name, c := range map[string]struct {
		first, second request
		want          time.Duration // of the end, from the first stop
	}{
		"the same end":      {request{Stop: true, GraceMillis: 30_000}, request{Stop: true, GraceMillis: 20_000}, 30 * time.Second},
		"a longer grace":    {request{Stop: true, GraceMillis: 30_000}, request{Stop: true, GraceMillis: 60_000}, 30 * time.Second},
		"a shorter grace":   {request{Stop: true, GraceMillis: 30_000}, request{Stop: true, GraceMillis: 1000}, 11 * time.Second},
		"a millisecond":     {request{Stop: true, GraceMillis: 30_000}, request{Stop: true, GraceMillis: 19_999}, 30*time.Second - time.Millisecond},
		"no grace":          {request{Stop: true, GraceMillis: 30_000}, request{Stop: true}, 10 * time.Second},
		"an eviction first": {request{Stop: true, GraceMillis: 30_000, Notice: true}, request{Stop: true, GraceMillis: 60_000}, 30 * time.Second},
		"an eviction later": {request{Stop: true, GraceMillis: 30_000}, request{Stop: true, GraceMillis: 60_000, Notice: true}, 30 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			// No signal reaches a command that is gone.
			w := watcher{folder: Folder(t.TempDir()), notice: &Notice{Signal: 10, BeforeMillis: 1}, gone: true, alarm: stoppedTimer(), term: stoppedTimer(), hangUp: stoppedTimer()}
			w.obey(c.first)
			time.Sleep(10 * time.Second)
			w.obey(c.second)
			<-w.alarm.C
			if took := time.Since(began); took != c.want || !w.deadline.Equal(began.Add(c.want)) || !w.asked {
				t.Errorf("%s: the end comes after %s with the deadline %s, want %s", name, took, w.deadline.Sub(began), c.want)
			}
		})
	}
}

// TestACommandGetsSIGTERMOnce: however often the member is stopped.
func TestACommandGetsSIGTERMOnce(t *testing.T) {
	command := exec.Command("sh", "-c", `trap "echo term" TERM; trap "echo winch" WINCH; echo ready; while :; do sleep 100 & wait; done`)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Kill(-command.Process.Pid, unix.SIGKILL); _ = command.Wait() }()
	lines := bufio.NewScanner(out)
	next := func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("the command has got %q, want %q", lines.Text(), want)
		}
	}
	next("ready")
	w := watcher{folder: Folder(t.TempDir()), pid: command.Process.Pid, group: command.Process.Pid, alarm: stoppedTimer(), term: stoppedTimer(), hangUp: stoppedTimer()}
	w.obey(request{Stop: true, GraceMillis: time.Hour.Milliseconds()})
	next("term")
	w.obey(request{Stop: true, GraceMillis: time.Hour.Milliseconds()})
	w.terminate()
	w.obey(request{Signal: int(unix.SIGWINCH)}) // a shell runs the traps by their numbers
	next("winch")
}

// TestTheBoundsOfARequest: of the grace and of the signal.
func TestTheBoundsOfARequest(t *testing.T) {
	for text, good := range map[string]bool{
		`{"stop":true}`: true, `{"stop":true,"graceMillis":31536000000}`: true, `{"stop":true,"graceMillis":31536000001}`: false, `{"stop":true,"graceMillis":-1}`: false,
		`{"signal":1}`: true, `{"signal":64}`: true, `{"signal":65}`: false, `{"signal":-1}`: false, `{"stop":true,"notice":true}`: true, `{}`: false,
	} {
		if _, err := parseRequest([]byte(text)); (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestWhichProcessIsAlive: the process with the number and the start, of the present boot, before
// the end.
func TestWhichProcessIsAlive(t *testing.T) {
	boot, err := BootID()
	if err != nil {
		t.Fatal(err)
	}
	self, err := Identify(os.Getpid(), boot)
	if err != nil {
		t.Fatal(err)
	}
	later := self
	later.Start++
	command := exec.Command("true")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	// The process stays a zombie until Wait.
	if err := unix.Waitid(unix.P_PID, command.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	zombie, err := Identify(command.Process.Pid, boot)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		p    Process
		boot string
		want bool
	}{
		"this process": {self, boot, true}, "of another boot": {self, "another", false}, "of another start": {later, boot, false}, "a zombie": {zombie, boot, false},
	} {
		if got := c.p.IsAlive(c.boot); got != c.want {
			t.Errorf("%s: alive %t, want %t", name, got, c.want)
		}
	}
	if err := command.Wait(); err != nil {
		t.Fatal(err)
	}
	if zombie.IsAlive(boot) {
		t.Error("a process after its end is alive")
	}
}

// TestProcessesWithTheNameOfTheFolder: remain of a supervisor of the present boot.
func TestProcessesWithTheNameOfTheFolder(t *testing.T) {
	f := made(t)
	command := exec.Command("sleep", "100")
	command.Env = []string{"A=b", Marker + "=" + string(f)}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = command.Process.Kill(); _ = command.Wait() }()
	gone := Process{PID: 1 << 22, Start: 1, BootID: "b"} // no process has the number
	if got := f.remains(gone, "b"); !slices.Equal(got, []int{command.Process.Pid}) {
		t.Errorf("of the folder remain %v, want %d", got, command.Process.Pid)
	}
	if got := f.remains(gone, "c"); len(got) != 0 {
		t.Errorf("of another boot remain %v", got)
	}
	if got := Folder(string(f)+"x").remains(gone, "b"); len(got) != 0 {
		t.Errorf("of another folder remain %v", got)
	}
}

// TestWhereAProgramIsFound: in the first folder of the last PATH with a file of the name to run.
func TestWhereAProgramIsFound(t *testing.T) {
	root := t.TempDir()
	for path, mode := range map[string]os.FileMode{"a/data": 0o600, "b/data": 0o700, "c/data": 0o700, "b/only": 0o700} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(root, "a", "only"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Join(root, "b"))
	all := "PATH=" + strings.Join([]string{root + "/a", root + "/b", root + "/c"}, ":")
	for name, c := range map[string]struct {
		program string
		env     []string
		want    string
	}{
		"a file without the right to run": {"data", []string{all}, root + "/b/data"},
		"a folder of the name":            {"only", []string{all}, root + "/b/only"},
		"the last PATH":                   {"data", []string{all, "X=y", "PATH=" + root + "/c"}, root + "/c/data"},
		"a relative folder":               {"data", []string{"PATH=."}, ""},
		"an empty PATH":                   {"data", []string{"PATH="}, ""},
		"a path":                          {"./data", []string{"PATH="}, "./data"},
		"no file":                         {"none", []string{all}, ""},
	} {
		got, err := lookUp(c.program, c.env)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
	if got, err := lookUp("sh", nil); err != nil || !filepath.IsAbs(got) {
		t.Errorf("without PATH: %q, %v", got, err)
	}
}

// TestOutputIsReadFromTheOldestByte: and over a gap from the next file.
func TestOutputIsReadFromTheOldestByte(t *testing.T) {
	f := made(t)
	for begin, text := range map[int64]string{10: "abc", 20: "defg"} {
		if err := os.WriteFile(f.path(logName(begin)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for from, c := range map[int64]struct {
		at   int64
		text string
	}{0: {10, "abc"}, 10: {10, "abc"}, 12: {12, "c"}, 13: {20, "defg"}, 19: {20, "defg"}, 20: {20, "defg"}, 23: {23, "g"}, 24: {24, ""}, 99: {99, ""}} {
		p := make([]byte, 9)
		at, n, err := f.ReadLog(from, p)
		if err != nil || at != c.at || string(p[:n]) != c.text {
			t.Errorf("from %d: %q at %d, %v; want %q at %d", from, p[:n], at, err, c.text, c.at)
		}
	}
}

// TestTheWindowOfAnInput: is filled to the last byte, and free again with each taken byte.
func TestTheWindowOfAnInput(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	in := &input{to: write}
	in.more = sync.NewCond(&in.mu)
	take := func(n int, want bool) {
		t.Helper()
		if got := in.take(bytes.Repeat([]byte("x"), n)); got != want {
			t.Errorf("%d bytes beside %d: taken %t, want %t", n, in.unacked, got, want)
		}
	}
	take(InputWindow+1, false)
	take(InputWindow-1, true)
	take(2, false)
	take(1, true)
	take(1, false)
	in.unacked--
	take(1, true)
	in.unacked = 0
	in.finish()
	take(1, false)
	if in = (&input{}); in.take([]byte("x")) {
		t.Error("a command without an input takes a byte")
	}
}
