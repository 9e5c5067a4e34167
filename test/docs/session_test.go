package docs_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterd/muster/test/canary"
)

// session is one reader at a terminal: a bash in a folder that looks like the
// repository after `make build`, on a network of its own, so that the ports that
// a document names are free. A second terminal runs the cluster.
//
// A session belongs to one goroutine.
type session struct {
	t       *testing.T
	dir     string // the folder of the repository, as the reader sees it
	bash    *exec.Cmd
	input   io.WriteCloser
	status  *bufio.Reader // lines with exit codes
	output  string        // file with the output of the step under way
	steps   int
	cluster bool
}

// patience bounds one step; a busy machine is slow.
const patience = 3 * time.Minute

// newSession starts a session. programs is the folder of the built programs.
func newSession(t *testing.T, programs string) *session {
	t.Helper()
	s := &session{t: t, dir: filepath.Join(t.TempDir(), "muster")}
	repository, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"bin": programs, "examples": filepath.Join(repository, "examples"), "systemd": filepath.Join(repository, "systemd")} {
		if err := os.Symlink(to, filepath.Join(s.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	// A reader has built the programs already: make build has nothing to do.
	if err := os.WriteFile(filepath.Join(s.dir, "Makefile"), []byte("build:\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	s.output = filepath.Join(home, "output")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s.status = bufio.NewReader(read)
	s.bash = exec.Command("bash", "--norc", "--noprofile")
	s.bash.Dir, s.bash.ExtraFiles = s.dir, []*os.File{write} // descriptor 3
	s.bash.Env = []string{
		"HOME=" + home, "TMPDIR=" + home, "LANG=C.UTF-8", "NO_COLOR=1", "PATH=" + programs + ":" + filepath.Join(repository, ".build", "bin") + ":" + os.Getenv("PATH"),
	}
	s.bash.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		s.bash.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		s.bash.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		s.bash.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	if s.input, err = s.bash.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	err = s.bash.Start()
	write.Close()
	if errors.Is(err, syscall.EPERM) {
		read.Close()
		t.Skip("this user may not make a network of its own (CLONE_NEWNET): the documents' commands are not run")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		syscall.Kill(-s.bash.Process.Pid, syscall.SIGKILL)
		s.bash.Wait()
		read.Close()
	})
	s.run(step{command: "ip link set lo up"})
	return s
}

// run carries one step out. The step of a document has to succeed; where the
// document shows output, the output has to be the same, and a failure that the
// output shows is allowed.
func (s *session) run(p step) {
	s.t.Helper()
	if beginsCluster(p.command) {
		s.begin(p)
		return
	}
	code, output := s.bashRuns(p.command)
	switch {
	case p.checked && !matches(p.want, output):
		s.t.Fatalf("line %d: %s\nprints\n%s\nthe document shows\n%s", p.line, p.command, output, p.want)
	case !p.checked && code != 0:
		s.t.Fatalf("line %d: exit code %d of\n%s\n%s", p.line, code, p.command, output)
	}
}

// begin ends the cluster that runs, and starts another in the background.
func (s *session) begin(p step) {
	s.t.Helper()
	s.end()
	s.cluster = true
	command, _, _ := strings.Cut(strings.TrimSpace(p.command), "#")
	if rest, isMake := strings.CutPrefix(command, "make run"); isMake {
		command = "bin/muster dev " + rest // after a build; the programs are built
	}
	// bash starts background commands with SIGINT ignored; env puts it back.
	code, output := s.bashRuns(`rm -f "$HOME/cluster"; env --default-signal=INT ` + command + ` >"$HOME/cluster" 2>&1 & cluster=$!
until grep -qs Ctrl-C "$HOME/cluster"; do kill -0 $cluster || { cat "$HOME/cluster"; false; break; }; sleep 0.1; done`)
	if code != 0 {
		s.t.Fatalf("line %d: %s\n%s", p.line, command, output)
	}
}

// end stops the cluster that runs, if one does, as Ctrl-C would.
func (s *session) end() {
	s.t.Helper()
	if !s.cluster {
		return
	}
	if code, output := s.bashRuns("kill -INT $cluster; wait $cluster"); code != 0 {
		s.t.Fatalf("the cluster ends with exit code %d\n%s", code, output)
	}
	s.cluster = false
	s.judge()
}

// judge looks for secrets in the output of the cluster that has ended: the token that
// its output names the file of, and each secret of a known form.
func (s *session) judge() {
	s.t.Helper()
	log, err := os.ReadFile(filepath.Join(filepath.Dir(s.output), "cluster"))
	if err != nil {
		s.t.Fatal(err)
	}
	var known []string
	for line := range strings.Lines(string(log)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "token" {
			token, err := os.ReadFile(words[1])
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // a folder that the cluster has removed
				s.t.Fatal(err)
			}
			known = append(known, strings.TrimSpace(string(token)))
		}
	}
	canary.Judge(s.t, "the output of the cluster", string(log), known...)
}

// bashRuns has bash run a text in its own environment, so that variables and the
// folder stay, and returns the exit code and the output of both kinds.
func (s *session) bashRuns(text string) (code int, output string) {
	s.t.Helper()
	s.steps++
	script := fmt.Sprintf("%s-%d", s.output, s.steps)
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	// -e ends a text at its first failure. It may not end the session: the text is
	// run in a function, whose failures trap notes, as `set -e` would end bash.
	fmt.Fprintf(s.input, "failed=0; trap 'failed=$?; return $failed' ERR; set -o pipefail; . %s >%s 2>&1; code=$?; trap - ERR; set +o pipefail; echo $((failed ? failed : code)) >&3\n", script, s.output)
	answer := make(chan string, 1)
	go func() { line, _ := s.status.ReadString('\n'); answer <- line }()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	select {
	case line := <-answer:
		if _, err := fmt.Sscan(line, &code); err != nil {
			code = -1 // the session is over: the text has ended bash
		}
	case <-ctx.Done():
		code = -2
	}
	data, err := os.ReadFile(s.output)
	if err != nil {
		s.t.Fatal(err)
	}
	output = string(bytes.TrimSpace(data))
	if code == -2 {
		s.t.Fatalf("after %s there is no end of\n%s\n%s", patience, text, output)
	}
	return code, output
}

func TestASessionStopsAtTheFirstFailure(t *testing.T) {
	s := newSession(t, t.TempDir())
	for text, want := range map[string]int{"true": 0, "false\ntrue": 1, "(exit 7)\necho on": 7, "false | true": 1, "if false; then true; fi": 0, "! false": 0} {
		if code, output := s.bashRuns(text); code != want || strings.Contains(output, "on") {
			t.Errorf("%q ends with %d, %q; want %d", text, code, output, want)
		}
	}
	s.bashRuns("export word=kept")
	if code, output := s.bashRuns(`cd / && echo $word $PWD`); code != 0 || output != "kept /" {
		t.Errorf("variables and the folder are lost: %d, %q", code, output)
	}
}
