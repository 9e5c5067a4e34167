package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/test/report"
)

// TestPlan uses the lanes of two packages whose kind does not change.
func TestPlan(t *testing.T) {
	costs, err := report.ReadCosts()
	if err != nil {
		t.Fatal(err)
	}
	const waits, computes = report.Module + "/test/chaos", report.Module + "/test/failpoints"
	lanes := plan([]string{"a", waits, computes, "b"}, costs, 2)
	type shape struct {
		Parallel int
		Packages []string
	}
	var got []shape
	for _, l := range lanes {
		got = append(got, shape{l.parallel, l.packages})
	}
	want := []shape{{3, []string{waits}}, {2, []string{computes, "a", "b"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lanes on two cores (-want +got):\n%s", diff)
	}
}

func TestAProbeGetsAPartOfTheCores(t *testing.T) {
	m := probe()
	if m.share <= 0 || m.share > 1.1 || m.speed < 1 {
		t.Errorf("the probe got %.2f of the cores and the machine is %.2f times as slow as the reference", m.share, m.speed)
	}
}

// sample is a repository with a package that passes, one that fails and one that
// does not compile.
var sample = map[string]string{
	"go.mod":                "module example.org/sample\n\ngo 1.26\n",
	"test/prerequisites.sh": "#!/bin/sh\necho fetched into $1\n",
	"good/good_test.go":     "package good\n\nimport \"testing\"\n\nfunc TestGood(t *testing.T) {}\n\nfunc TestRights(t *testing.T) { t.Skip(\"not permitted here: mount\") }\n",
	"bad/bad_test.go":       "package bad\n\nimport \"testing\"\n\nfunc TestBad(t *testing.T) { t.Fatal(\"one is not two\") }\n",
	"broken/broken_test.go": "package broken\n\nimport \"testing\"\n\nfunc TestBroken(t *testing.T) { undefined() }\n",
	"ugly/ugly.go":          "package ugly\n\n\n\nfunc F() {}\n",
	"below/go.mod":          "module example.org/below\n\ngo 1.26\n",
	"below/below_test.go":   "package below\n\nimport \"testing\"\n\nfunc TestBelow(t *testing.T) {}\n",
}

// TestARunCountsEveryFailure builds the command and runs it over the sample.
func TestARunCountsEveryFailure(t *testing.T) {
	dir := t.TempDir()
	for name, text := range sample {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(t.TempDir(), "muster-test")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build the command: %v\n%s", err, out)
	}
	text := func(name string, args ...string) string {
		c := exec.Command(name, args...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		if c.ProcessState == nil {
			t.Fatalf("%s: %v", name, err)
		}
		return string(out)
	}
	text("git", "init", "--quiet")
	text("git", "add", ".")

	got := text(program, "-nested", "below")
	lines := strings.Split(strings.TrimSpace(got), "\n")
	// TestBad, its package, TestBroken's build and package, vet of broken, gofmt of ugly.
	if want := "2 passed, 6 failed, 1 skipped"; lines[len(lines)-1] != want {
		t.Errorf("the last line is %q, want %q", lines[len(lines)-1], want)
	}
	for _, want := range []string{
		"fetched into .build", "bad_test.go:5: one is not two", "undefined: undefined", "not gofmt-ed (run gofmt -w on them): ugly/ugly.go",
		"pass  example.org/sample/good", "pass  example.org/below", "skipped example.org/sample/good TestRights: good_test.go:7: not permitted here: mount", "all phases: ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the output lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}
