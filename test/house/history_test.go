package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/test/ratchet/history"
)

const firstList = `# A list.
package	*	6000
package	a	9000
package	b	7000
file	*	500
file	a/a.go	600
what	*	5
what	a	30
`

// step is a commit of a test: its files, and the list after replacements.
type step struct {
	files   []string
	replace [][2]string
}

func TestRisesAreCommitsThatDoNothingElse(t *testing.T) {
	const alone = "a rise is a commit that changes test/house/limits and docs/adr alone, with the number of a decision in the row."
	raise := [][2]string{{"package\ta\t9000", "package\ta\t9100"}}
	raiseWithDecision := [][2]string{{"package\ta\t9000", "package\ta\t9100\t0129"}}
	for name, c := range map[string]struct {
		steps []step
		want  []string // parts of the sentences
	}{
		"a figure falls beside other work": {steps: []step{{[]string{"a/a.go"}, [][2]string{{"package\ta\t9000", "package\ta\t8000"}}}}},
		"a row goes beside other work":     {steps: []step{{[]string{"a/a.go"}, [][2]string{{"package\tb\t7000\n", ""}}}}},
		"a figure rises beside other work": {
			steps: []step{{[]string{"a/a.go"}, raise}},
			want:  []string{"step 1 raised package of a from 9000 to 9100: " + alone},
		},
		"a figure rises beside other work, with a decision": {
			steps: []step{{[]string{"a/a.go"}, raiseWithDecision}},
			want:  []string{"step 1 raised package of a from 9000 to 9100: "},
		},
		"a figure rises alone, without a decision": {
			steps: []step{{nil, raise}},
			want:  []string{"step 1 raised package of a from 9000 to 9100: "},
		},
		"a figure rises alone, with a decision":   {steps: []step{{nil, raiseWithDecision}}},
		"a figure rises with the decision's file": {steps: []step{{[]string{"docs/adr/0129-rise.md"}, raiseWithDecision}}},
		"a rise is taken back":                    {steps: []step{{[]string{"a/a.go"}, raise}, {[]string{"a/a.go"}, [][2]string{{"package\ta\t9100", "package\ta\t9000"}}}}},
		"a rise is followed by a small fall alone": {
			steps: []step{{[]string{"a/a.go"}, raise}, {[]string{"a/a.go"}, [][2]string{{"package\ta\t9100", "package\ta\t9050"}}}},
			want:  []string{"step 1 raised package of a"},
		},
		"a new offender": {
			steps: []step{{[]string{"c/c.go"}, [][2]string{{"package\tb\t7000\n", "package\tb\t7000\npackage\tc\t6001\n"}}}},
			want:  []string{"step 1 raised package of c from the limit to 6001: "},
		},
		"a package is renamed": {steps: []step{{[]string{"c/c.go"}, [][2]string{{"package\tb\t7000", "package\tc\t7000"}}}}},
		"a package is split":   {steps: []step{{[]string{"c/c.go"}, [][2]string{{"package\ta\t9000", "package\ta\t2000"}, {"package\tb", "package\tc\t7000\npackage\tb"}}}}},
		"a package grows while another falls": {
			steps: []step{{[]string{"c/c.go"}, [][2]string{{"package\ta\t9000", "package\ta\t8000"}, {"package\tb\t7000", "package\tb\t7500"}}}},
			want:  []string{"step 1 raised package of b from 7000 to 7500: "},
		},
		"words move with their file": {steps: []step{{[]string{"c/c.go"}, [][2]string{{"what\ta\t30", "what\ta\t20\nwhat\tc\t10"}}}}},
		"words grow while fewer move": {
			steps: []step{{[]string{"c/c.go"}, [][2]string{{"what\ta\t30", "what\ta\t20\nwhat\tc\t11"}}}},
			want:  []string{"step 1 raised what of c from the limit to 11: "},
		},
		"a limit rises beside other work": {
			steps: []step{{[]string{"a/a.go"}, [][2]string{{"file\t*\t500", "file\t*\t600"}}}},
			want:  []string{"step 1 raised file of * from 500 to 600: "},
		},
		"a kind begins": {steps: []step{{[]string{"a/a.go"}, [][2]string{{"file\t*", "circle\t*\t12\ncircle\ta\t40\nfile\t*"}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := judgeHistory(commitsOf(t, c.steps))
			if len(got) != len(c.want) {
				t.Fatalf("got %d sentences %q, want %d", len(got), got, len(c.want))
			}
			for i, want := range c.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("got %s\nwant … %s", got[i], want)
				}
			}
		})
	}
}

// commitsOf are the commits of steps after a commit of firstList.
func commitsOf(t *testing.T, steps []step) []commit {
	t.Helper()
	texts := listsOf(t, steps)
	var all []commit
	for i, s := range steps {
		all = append(all, commit{name: name(i + 1), files: append(slices.Clone(s.files), listFile), changes: changesBetween(t, texts[i], texts[i+1])})
	}
	return all
}

func name(i int) string { return "step " + strconv.Itoa(i) }

// listsOf returns firstList, and the list after each step.
func listsOf(t *testing.T, steps []step) []string {
	t.Helper()
	texts := []string{firstList}
	for i, s := range steps {
		text := texts[i]
		for _, r := range s.replace {
			if !strings.Contains(text, r[0]) {
				t.Fatalf("step %d replaces %q, which is not in the list", i+1, r[0])
			}
			text = strings.Replace(text, r[0], r[1], 1)
		}
		texts = append(texts, text)
	}
	return texts
}

func changesBetween(t *testing.T, before, after string) []change {
	t.Helper()
	var c history.Commit
	for _, side := range []struct {
		rows        *[]string
		text, other string
	}{{&c.Removed, before, after}, {&c.Added, after, before}} {
		for line := range strings.Lines(side.text) {
			if !strings.HasPrefix(line, "#") && !strings.Contains("\n"+side.other, "\n"+line) {
				*side.rows = append(*side.rows, strings.TrimSuffix(line, "\n"))
			}
		}
	}
	changes, err := changesIn(c)
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

func TestTheHistoryIsReadFromGit(t *testing.T) {
	steps := []step{
		{[]string{"a/a.go"}, [][2]string{{"package\ta\t9000", "package\ta\t8000"}, {"package\tb\t7000\n", ""}}},
		{[]string{"docs/adr/0129-rise.md"}, [][2]string{{"package\ta\t8000", "package\ta\t8100\t0129"}}},
		{[]string{"b/b.go"}, [][2]string{{"what\ta\t30", "what\ta\t31"}}}, // not committed
	}
	root := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		git := exec.Command("git", append([]string{"-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false"}, args...)...)
		git.Dir = root
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run("init", "-q")
	for i, text := range listsOf(t, steps) {
		write(listFile, text)
		if i > 0 {
			write(steps[i-1].files[0], text)
		}
		run("add", ".")
		if i < len(steps) {
			run("commit", "-q", "-m", name(i))
		}
	}
	got, err := readHistory(history.Of(t, root, listFile))
	if err != nil {
		t.Fatal(err)
	}
	want := commitsOf(t, steps)
	if len(got) != 4 || len(got[0].changes) != 7 {
		t.Fatalf("got %d commits, want the first one with 7 rows, and %d after it: %+v", len(got), len(want), got)
	}
	want[2].name = "the work that is not committed"
	for i, c := range got[1:] {
		slices.Sort(c.files)
		slices.Sort(want[i].files)
		if d := cmp.Diff(want[i].files, c.files); d != "" {
			t.Errorf("files of %s (-want +got)\n%s", c.name, d)
		}
		if d := cmp.Diff(want[i].changes, c.changes, cmp.AllowUnexported(change{}, key{})); d != "" {
			t.Errorf("changes of %s (-want +got)\n%s", c.name, d)
		}
		if !strings.HasSuffix(c.name, want[i].name) {
			t.Errorf("the commit is named %q, want … %s", c.name, want[i].name)
		}
	}
}

func TestAMoveIsWrittenOnlyAsFarAsFallsCoverIt(t *testing.T) {
	l, err := parseList(firstList)
	if err != nil {
		t.Fatal(err)
	}
	verdicts, err := judge(l, []figure{
		{kind: "package", of: "a", value: 8000},
		{kind: "package", of: "b", value: 7500},
		{kind: "file", of: "b/a.go", value: 600},
		{kind: "what", of: "a", value: 25, words: 1000},
		{kind: "what", of: "c", value: 5, words: 1000},
	})
	if err != nil {
		t.Fatal(err)
	}
	moved, remain := move(l, verdicts)
	want := strings.NewReplacer("a\t9000", "a\t8000", "a/a.go", "b/a.go", "a\t30\n", "a\t25\nwhat\tc\t5\n").Replace(firstList)
	if d := cmp.Diff(want, moved.String()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if len(remain) != 1 || remain[0].figure.of != "b" {
		t.Errorf("%d verdicts remain, want that of package b, which grew", len(remain))
	}
}
