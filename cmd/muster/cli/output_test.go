package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// fullWriter is a standard output that takes some bytes.
type fullWriter struct {
	room int
	err  error
}

func (f *fullWriter) Write(b []byte) (int, error) {
	if len(b) > f.room {
		n := f.room
		f.room = 0
		return n, f.err
	}
	f.room -= len(b)
	return len(b), nil
}

// FAULTS U16: get nodes > /dev/full ended with 0.
func TestAnOutputThatIsNotTakenIsAFailure(t *testing.T) {
	server := newServer(t)
	for name, c := range map[string]struct {
		args []string
		err  error
		room int
		want string
	}{
		"a table on a full disk":     {[]string{"get", "nodes"}, syscall.ENOSPC, 0, "muster: write standard output: no space left on device\n"},
		"the end of a table":         {[]string{"get", "nodes"}, syscall.ENOSPC, 60, "muster: write standard output: no space left on device\n"},
		"JSON":                       {[]string{"get", "nodes", "-o", "json"}, syscall.ENOSPC, 10, "muster: write standard output: no space left on device\n"},
		"names":                      {[]string{"get", "nodes", "-o", "name"}, syscall.EIO, 11, "muster: write standard output: input/output error\n"},
		"a template":                 {[]string{"get", "nodes", "-o", "jsonpath={.kind}"}, syscall.ENOSPC, 1, "muster: write standard output: no space left on device\n"},
		"columns":                    {[]string{"get", "nodes", "-o", "custom-columns=A:.kind"}, syscall.ENOSPC, 1, "muster: write standard output: no space left on device\n"},
		"a description":              {[]string{"describe", "node", "small"}, syscall.ENOSPC, 1, "muster: write standard output: no space left on device\n"},
		"the version":                {[]string{"version"}, syscall.ENOSPC, 1, "muster: write standard output: no space left on device\n"},
		"help":                       {[]string{"--help"}, syscall.ENOSPC, 1, "muster: write standard output: no space left on device\n"},
		"a reader that went away":    {[]string{"get", "nodes"}, syscall.EPIPE, 60, ""},
		"contexts":                   {[]string{"config", "get-contexts"}, syscall.ENOSPC, 1, "muster: write standard output: no space left on device\n"},
		"everything fits":            {[]string{"get", "nodes", "-o", "name"}, nil, 1 << 20, ""},
		"an error of the verb first": {[]string{"get", "node", "none"}, syscall.ENOSPC, 0, "muster: node none not found\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, server)
			var stderr bytes.Buffer
			code := Program{
				Stdin: strings.NewReader(""), Stdout: &fullWriter{c.room, c.err}, Stderr: &stderr, Env: func(k string) string { return s.env[k] }, Args: c.args,
			}.Run(context.Background())
			want := ExitFailed
			if c.err == nil {
				want = ExitDone
			}
			if code != want || stderr.String() != c.want {
				t.Errorf("exit %d, %q; want %d, %q", code, stderr.String(), want, c.want)
			}
		})
	}
}

func TestTheRealFullDevice(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("no /dev/full here")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = full.Close() }()
	s := newShell(t, newServer(t))
	var stderr bytes.Buffer
	code := Program{Stdout: full, Stderr: &stderr, Env: func(k string) string { return s.env[k] }, Args: []string{"get", "nodes"}}.Run(t.Context())
	if code != ExitFailed || !strings.Contains(stderr.String(), "no space left on device") {
		t.Errorf("exit %d, %q", code, stderr.String())
	}
}

func TestNaturalOrder(t *testing.T) {
	names := []string{"node-10", "node-2", "node", "node-02", "a100-1", "node-2b", "a9", "node-1", "10", "9", "node-99999999999999999999999", "node-2-1"}
	want := []string{"9", "10", "a9", "a100-1", "node", "node-1", "node-02", "node-2", "node-2-1", "node-2b", "node-10", "node-99999999999999999999999"}
	slices.SortFunc(names, compareNatural)
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

// TestOrdersAreTotal finds that both orders are antisymmetric and transitive,
// without which sorting would depend on the order of before.
func TestOrdersAreTotal(t *testing.T) {
	for name, compare := range map[string]func(a, b string) int{
		"names":  compareNatural,
		"values": func(a, b string) int { return compareValues(a, b) },
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				text := rapid.StringMatching(`(-?[0-9]{0,3}|[a-c]{0,2}-?[0-9]{0,3})(m|Gi|k|b)?`)
				a, b, c := text.Draw(t, "a"), text.Draw(t, "b"), text.Draw(t, "c")
				if compare(a, b) != -compare(b, a) || (compare(a, b) == 0) != (a == b) {
					t.Fatalf("%q and %q: %d and %d", a, b, compare(a, b), compare(b, a))
				}
				if compare(a, b) <= 0 && compare(b, c) <= 0 && compare(a, c) > 0 {
					t.Fatalf("%q <= %q <= %q, and not %q <= %q", a, b, c, a, c)
				}
			})
		})
	}
}

func TestValuesAreOrderedBySize(t *testing.T) {
	values := []string{"1Ti", "zone-10", "64Gi", "zone-9", "500m", "2", "128Gi", "-3", "10"}
	want := []string{"-3", "500m", "2", "10", "64Gi", "128Gi", "1Ti", "zone-9", "zone-10"}
	slices.SortFunc(values, func(a, b string) int { return compareValues(a, b) })
	if diff := cmp.Diff(want, values); diff != "" {
		t.Error(diff)
	}
}

func TestBadPhasesAreColoured(t *testing.T) {
	on := style{on: true}.phases(1)
	for cell, want := range map[string]string{
		"Ready": "Ready", "NotReady": "\x1b[31mNotReady\x1b[0m", "Pending": "\x1b[33mPending\x1b[0m", "Ready,SchedulingDisabled": "Ready,\x1b[33mSchedulingDisabled\x1b[0m",
		"Fenced,SchedulingDisabled": "\x1b[31mFenced,SchedulingDisabled\x1b[0m",
	} {
		if got := on(3, 1, cell); got != want {
			t.Errorf("%s: got %q, want %q", cell, got, want)
		}
		if got := on(3, 0, cell); got != cell {
			t.Errorf("another column: got %q", got)
		}
	}
	if (style{}).phases(1) != nil || (style{on: true}).phases(-1) != nil {
		t.Error("colours without a terminal, or without phases")
	}
}

// FuzzTemplates finds that no expression panics, neither when it is read nor on
// a document.
func FuzzTemplates(f *testing.F) {
	for _, seed := range []string{
		"{.items[*].metadata.name}", "{range .items[*]}{.metadata.name}{\"\\n\"}{end}", "{.items[?(@.spec.n>1)].metadata.name}", "{..name}", "{.items[0:2:1]}",
		"{.items[-1:]}", "{.metadata.labels.a\\.b/c}", "{['a','b']}", "NAME:.metadata.name,N:{.spec.n}", "{end}", "{range}", "{.items[?(@.a==@.b)]}",
	} {
		f.Add(seed)
	}
	document := map[string]any{
		"kind": "List", "items": []any{
			map[string]any{"metadata": map[string]any{"name": "a", "labels": map[string]any{"a.b/c": "x"}}, "spec": map[string]any{"n": 1, "f": 1.5, "b": true}},
			map[string]any{"metadata": map[string]any{"name": "b"}, "spec": nil},
		},
	}
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := parsePath(text); err == nil {
			var out bytes.Buffer
			_ = p.write(&out, document) // an error is an answer
		}
		if p, err := parseField(text); err == nil {
			_, _ = p.find(document)
		}
		if columns, err := parseColumns(text); err == nil {
			if row, err := cells(columns, document); err == nil && len(row) != len(columns) {
				t.Errorf("%q: %d cells of %d columns", text, len(row), len(columns))
			}
		}
	})
}
