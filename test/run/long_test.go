package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// mostBehind is how many commits may follow the last run of a part.
const mostBehind = 300

const root = "../.."

// TestEachPartRanNotLongAgo reads docs/reliability.md and counts commits. A part
// that never ran counts from the commit that made it.
func TestEachPartRanNotLongAgo(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, record))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := readLast(string(text))
	if err != nil {
		t.Fatal(err)
	}
	all, err := readParts(parts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := git("rev-parse", "HEAD"); err != nil {
		t.Skipf("no git history here, so the age of the rows in %s is not known: %v", record, err)
	}
	for _, p := range all {
		l, ok := rows[p.name]
		delete(rows, p.name)
		if !ok {
			t.Errorf("%s has no row for the part %s of make test-long; add %q", record, p.name, last{part: p.name, commit: "HEAD's 8 hex digits", date: never})
			continue
		}
		out, err := git("rev-list", "--count", l.commit+"..HEAD")
		if err != nil {
			t.Errorf("the commit %s of part %s in %s is not in the history (a shallow clone lacks it; git fetch --unshallow): %v", l.commit, p.name, record, err)
			continue
		}
		if behind, err := strconv.Atoi(out); err != nil || behind > mostBehind {
			t.Errorf("the part %s of make test-long last ran %s commits ago, at %s; more than %d. Run `make test-long PART=%s` and commit the row that it writes", p.name, out, l.commit, mostBehind, p.name)
		}
	}
	for name := range rows {
		t.Errorf("%s has a row for %s, which is no part of test/run/parts.txt; delete the row", record, name)
	}
}

// git also reads the log of HEAD, so that a cached result of the test does not
// outlive the next commit.
func git(args ...string) (string, error) {
	command := func(args ...string) (string, error) {
		c := exec.Command("git", args...)
		c.Dir = root
		out, err := c.Output()
		return strings.TrimSpace(string(out)), err
	}
	path, err := command("rev-parse", "--git-path", "logs/HEAD")
	if err != nil {
		return "", err
	}
	_, _ = os.Stat(filepath.Join(root, path)) // a clone may keep no log
	return command(args...)
}

func TestARowIsWrittenAndRead(t *testing.T) {
	const text = "# Title\n\n| part | commit | date | duration | failures |\n|---|---|---|---|---|\n| sim | 3eb49563 | not run | not run | not run |\n| chaos | 3eb49563 | 2026-01-02 | 1h0m5s | 2 |\n\nEnd.\n"
	changed, err := last{part: "sim", commit: "1a2b3c4d", date: "2026-11-28", duration: 41*time.Minute + 12*time.Second}.writeInto(text)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(text, "| sim | 3eb49563 | not run | not run | not run |", "| sim | 1a2b3c4d | 2026-11-28 | 41m12s | 0 |", 1)
	if diff := cmp.Diff(want, changed); diff != "" {
		t.Errorf("the document (-want +got):\n%s", diff)
	}
	rows, err := readLast(changed)
	if err != nil {
		t.Fatal(err)
	}
	wantRows := map[string]last{
		"sim":   {part: "sim", commit: "1a2b3c4d", date: "2026-11-28", duration: 41*time.Minute + 12*time.Second},
		"chaos": {part: "chaos", commit: "3eb49563", date: "2026-01-02", duration: time.Hour + 5*time.Second, failures: 2},
	}
	if diff := cmp.Diff(wantRows, rows, cmp.AllowUnexported(last{})); diff != "" {
		t.Errorf("the rows (-want +got):\n%s", diff)
	}
	if _, err := (last{part: "other"}).writeInto(text); err == nil || !strings.Contains(err.Error(), "has no row for the part other") {
		t.Errorf("a part without a row: got %v", err)
	}
}

func TestPartsAreChosenByName(t *testing.T) {
	all, err := readParts("# a comment\nsim: make sim\n\nchaos: make chaos\n")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		names   []string
		want    []part
		wantErr string
	}{
		"all without a name":     {nil, all, ""},
		"one":                    {[]string{"chaos"}, all[1:], ""},
		"in the asked order":     {[]string{"chaos", "sim"}, []part{all[1], all[0]}, ""},
		"a name that is no part": {[]string{"simm"}, nil, "the parts are sim, chaos"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := choose(all, c.names)
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(part{})); diff != "" {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
			if (err != nil) != (c.wantErr != "") || err != nil && !strings.Contains(err.Error(), c.wantErr) {
				t.Errorf("got error %v, want %q", err, c.wantErr)
			}
		})
	}
	for _, text := range []string{"sim make sim", "sim: a\nsim: b"} {
		if _, err := readParts(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

func TestFailuresAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		output string
		ran    error
		want   int
	}{
		"nothing failed":                         {"ok  \tp\t1s\n", nil, 0},
		"two tests, with a subtest":              {"--- FAIL: TestA (1s)\n    --- FAIL: TestA/b (1s)\n--- FAIL: TestB (1s)\n", errors.New("exit status 1"), 2},
		"a planted mistake that no test notices": {"lists/a.txt:3 SURVIVED\n", errors.New("exit status 1"), 1},
		"a command that names none":              {"make: *** Error 2\n", errors.New("exit status 2"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := countFailures([]byte(c.output), c.ran); got != c.want {
				t.Errorf("%d failures, want %d", got, c.want)
			}
		})
	}
}

// TestAPartWritesItsRow runs commands in a repository of its own.
func TestAPartWritesItsRow(t *testing.T) {
	t.Chdir(t.TempDir())
	const table = "| sim | 3eb49563 | not run | not run | not run |\n"
	if err := os.MkdirAll(filepath.Dir(record), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(record, []byte(table), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "--quiet"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "-m", "a"}} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	build := t.TempDir()
	failures, err := runPart(t.Context(), build, part{"sim", "echo '--- FAIL: TestA'; exit 1"})
	if failures != 1 || err != nil {
		t.Errorf("%d failures, %v; want 1", failures, err)
	}
	text, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := readLast(string(text))
	if err != nil {
		t.Fatal(err)
	}
	commit, err := cleanCommit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if l := rows["sim"]; l.commit != commit || l.failures != 1 || l.date == never {
		t.Errorf("the row is %q, want commit %s and one failure", l, commit)
	}
	log, err := os.ReadFile(filepath.Join(build, "long", "sim.log"))
	if err != nil || string(log) != "--- FAIL: TestA\n" {
		t.Errorf("the log has %q, %v", log, err)
	}

	if err := os.WriteFile("changed.go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := runPart(t.Context(), build, part{"sim", "true"}); err == nil || !strings.Contains(err.Error(), "the tree has changes") {
		t.Errorf("a tree with changes: got %v", err)
	}
}
