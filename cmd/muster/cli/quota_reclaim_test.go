package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal opens a pair of a pseudoterminal: what is written to one side is
// typed on the other.
func terminal(t *testing.T) (keyboard, stdin *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("not permitted here: a pseudoterminal: %v", err)
	}
	t.Cleanup(func() { _ = keyboard.Close() })
	number, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	stdin, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("not permitted here: a pseudoterminal: %v", err)
	}
	t.Cleanup(func() { _ = stdin.Close() })
	return keyboard, stdin
}

func TestReclaimAsksOnATerminal(t *testing.T) {
	s := newShell(t, newServer(t))
	tree := func(gpus int) string {
		return fmt.Sprintf(`{"kind":"QuotaTree","metadata":{"name":"T"},"spec":{"nodes":{"all":{"quota":{"cpu":64,"memory":"1Ti","nvidia.com/gpu":%d}}}}}`, gpus)
	}
	for _, step := range [][]string{
		{tree(8), "quota", "apply", "-f", "-"},
		{`{"kind":"QuotaBinding","metadata":{"name":"default"},"spec":{"groups":{"T":"all"}}}`, "quota", "apply", "-f", "-"},
		{`{"metadata":{"name":"x"},"spec":{"resources":{"requests":{"nvidia.com/gpu":2}}}}`, "submit", "-f", "-", "--wait"},
		{tree(1), "quota", "apply", "-f", "-"},
	} {
		if code, _, stderr := s.run(t.Context(), step[0], step[1:]...); code != ExitDone {
			t.Fatal(stderr)
		}
	}
	const plan = "quota tree T: node all is over quota; 1 allocation would end\n  all: nvidia.com/gpu 1 beyond its quota\n" +
		"Would end:\n  allocation default/x: nvidia.com/gpu 2, priority 0, for all\nEnd them? [y/N] "
	for _, c := range []struct {
		typed, stdout, stderr string
		code                  int
	}{
		{"n\n", "", plan + "muster: nothing was ended\n", ExitFailed},
		{"\n", "", plan + "muster: nothing was ended\n", ExitFailed},
		{"\x04", "", plan + "muster: nothing was ended\n", ExitFailed}, // the end of the input
		{"Yes\n", "allocation/default/x\n", plan, ExitDone},
		{"", "", "", ExitDone}, // nothing is over quota any more: it does not ask
	} {
		keyboard, stdin := terminal(t)
		if _, err := keyboard.WriteString(c.typed); err != nil {
			t.Fatal(err)
		}
		var stdout, stderr strings.Builder
		code := Program{
			Stdin: stdin, Stdout: &stdout, Stderr: &stderr, Env: func(k string) string { return s.env[k] }, Args: []string{"quota", "reclaim", "T", "-o", "name"},
		}.Run(t.Context())
		if code != c.code || stdout.String() != c.stdout || stderr.String() != c.stderr {
			t.Errorf("%q typed: exit %d, %q, %q; want %d, %q, %q", c.typed, code, stdout.String(), stderr.String(), c.code, c.stdout, c.stderr)
		}
	}
}

func TestAnInterruptedQuestionIsANo(t *testing.T) {
	_, stdin := terminal(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := &app{Program: Program{Stdin: stdin, Stderr: &strings.Builder{}}}
	if a.confirmed(ctx, "End them?") {
		t.Error("confirmed")
	}
}
