package ratchet_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterd/muster/test/ratchet"
)

// repository is a git repository with a commit for each of some contents of its list, and
// then uncommitted content. A second line of a content is written to another file.
func repository(t *testing.T, contents ...string) string {
	t.Helper()
	dir := t.TempDir()
	git := func(args ...string) {
		command := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
		command.Dir = dir
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q")
	decision := filepath.Join(dir, "docs", "adr", "0131-counts.md")
	if err := errors.Join(os.MkdirAll(filepath.Dir(decision), 0o700), os.WriteFile(decision, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for i, text := range contents {
		row, other, _ := strings.Cut(text, "\n")
		for name, text := range map[string]string{"list.txt": row + "\n", "code.go": other} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if i < len(contents)-1 {
			git("add", "-A")
			git("commit", "-q", "--allow-empty", "-m", "a change")
		}
	}
	return dir
}

// noted takes the errors of a test.
type noted struct {
	testing.TB
	errors []string
}

func (n *noted) Helper()           {}
func (n *noted) Error(args ...any) { n.errors = append(n.errors, args[0].(string)) }

func TestRisesStandAlone(t *testing.T) {
	const five, six, seven = "a/x  5  keys  exact  of a life", "a/x  6  keys  exact  of a life", "a/x  7  keys  exact  of a life"
	const why = "  ADR 131"
	for name, c := range map[string]struct {
		contents []string
		want     string // of the sentence, or empty
	}{
		"a fall":                               {[]string{six, five, five}, ""},
		"a rise without an ADR":                {[]string{five, six, six}, "raised a/x from 5 to 6: a rise is a commit"},
		"a rise with an ADR":                   {[]string{five, six + why, six + why}, ""},
		"a rise with an ADR and with code":     {[]string{five, six + why + "\ncode", six + why}, "raised a/x from 5 to 6"},
		"a rise with an ADR that is absent":    {[]string{five, six + "  ADR 132", six + "  ADR 132"}, `names the decision "ADR 132"`},
		"a rise and a fall":                    {[]string{five, six, five, five}, ""},
		"a rise and a smaller fall":            {[]string{five, seven, six, six}, "raised a/x from 5 to 7"},
		"a row that goes and comes back":       {[]string{five, "", six, six}, "raised a/x from 5 to 6"},
		"an uncommitted rise":                  {[]string{five, five, six}, "the work that is not committed raised a/x from 5 to 6"},
		"another distance between the columns": {[]string{five, strings.Replace(five, "  5", "     5", 1), five}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := &noted{TB: t}
			ratchet.HoldHistory(n, repository(t, c.contents...), "list.txt")
			if all := strings.Join(n.errors, "\n"); c.want == "" && all != "" || !strings.Contains(all, c.want) {
				t.Errorf("%q, want %q", all, c.want)
			}
		})
	}
}
