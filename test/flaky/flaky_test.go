package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestTheListOfRealTestsIsComplete: a package whose tests get a real clock, socket, file
// or process is in real.txt, and no other is.
func TestTheListOfRealTestsIsComplete(t *testing.T) {
	found, err := realTests("../..")
	if err != nil {
		t.Fatal(err)
	}
	folders, err := readReal()
	if err != nil {
		t.Fatal(err)
	}
	const way = "write the list with `go run ./test/flaky -list >test/flaky/real.txt`"
	for folder, reasons := range found {
		if !folders[folder] {
			t.Errorf("the tests of %s have %s and are not in test/flaky/real.txt: %s", folder, strings.Join(reasons, ", "), way)
		}
	}
	for folder := range folders {
		if found[folder] == nil {
			t.Errorf("the tests of %s have no real clock, socket, file or process any more: %s", folder, way)
		}
	}
	for folder, want := range map[string]bool{"test/chaos": true, "agent/journal": true, "coordinator/rest": true, "coordinator/txn": false, "resource": false} {
		if folders[folder] != want {
			t.Errorf("%s is in the list: %t, want %t", folder, folders[folder], want)
		}
	}
}

// TestEachRowNamesAPackage: the table has no row of a package that is gone.
func TestEachRowNamesAPackage(t *testing.T) {
	rows, err := readTable(tablePath("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for folder := range rows {
		if found, err := filepath.Glob(filepath.Join("../..", folder, "*_test.go")); err != nil || len(found) == 0 {
			t.Errorf("%s has no tests (%v): delete its row in test/flaky/table.tsv", folder, err)
		}
	}
}

func TestARowReplacesTheOneOfItsPackage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.tsv")
	first := row{Package: "a", Commit: "c1", Date: "2026-01-01", Files: "f1", Kind: waits, Runs: 30, Loops: 6, Failures: 2, Failed: []string{"TestX", "TestY/of it"}}
	first.Failed[1] = "TestY/of_it"
	other := row{Package: "b", Commit: "c1", Date: "2026-01-01", Files: "f2", Kind: computes, Runs: 3}
	next := row{Package: "a", Commit: "c2", Date: "2026-01-02", Files: "f1", Kind: waits, Runs: 30, Loops: 6}
	for _, r := range []*row{&first, &other} {
		if err := writeRow(path, r); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct{ write, a row }{{other, first}, {next, next}} {
		if err := writeRow(path, &step.write); err != nil {
			t.Fatal(err)
		}
		got, err := readTable(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]row{"a": step.a, "b": other}, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("rows (-want +got):\n%s", diff)
		}
	}
	if err := os.WriteFile(path, []byte(head+"\na\tb\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readTable(path); err == nil || !strings.Contains(err.Error(), "table.tsv:2") {
		t.Errorf("a row of two cells: %v", err)
	}
}

func TestARowIsGoodForTheSameFilesAndAsManyRuns(t *testing.T) {
	good := row{Files: "f", Kind: waits, Runs: 30, Loops: 6}
	for name, c := range map[string]struct {
		change func(*row)
		want   bool
	}{
		"the same":         {func(*row) {}, true},
		"a failure":        {func(r *row) { r.Failures = 1 }, false},
		"other files":      {func(r *row) { r.Files = "g" }, false},
		"another kind":     {func(r *row) { r.Kind = computes }, false},
		"fewer runs":       {func(r *row) { r.Runs = 29 }, false},
		"fewer busy loops": {func(r *row) { r.Loops = 5 }, false},
		"another commit":   {func(r *row) { r.Commit = "c9" }, true},
	} {
		old := good
		if c.change(&old); old.covers(&good) != c.want {
			t.Errorf("%s: good is %t, want %t", name, !c.want, c.want)
		}
	}
}

func TestFailedTests(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"a test":          {"x\n--- FAIL: TestA (0.01s)\nFAIL\n", []string{"TestA"}},
		"a subtest":       {"--- FAIL: TestA (0.01s)\n    --- FAIL: TestA/b_c (0.00s)\n        a_test.go:1: no\nFAIL\n", []string{"TestA/b_c"}},
		"two tests":       {"--- FAIL: TestA (0.01s)\n--- FAIL: TestAB (0.01s)\n", []string{"TestA", "TestAB"}},
		"the end of time": {"panic: test timed out after 1s\n", []string{"(panic: test timed out after 1s)"}},
	} {
		if diff := cmp.Diff(c.want, failedTests([]byte(c.text))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestABusyLoopEndsWithItsInput: loops do not outlive the program that wants them. A loop
// that does keeps this test from its end.
func TestABusyLoopEndsWithItsInput(t *testing.T) {
	loop(strings.NewReader(""), time.Hour)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	defer r.Close()
	loop(r, time.Nanosecond)
}

// TestTheHashIsOfThePackagesOwnFiles: its data count, and packages below it do not.
func TestTheHashIsOfThePackagesOwnFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		sum, err := hashOf(dir)
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	code := write("a.go", "package a")
	data := write("testdata/x/input.json", "{}")
	source := write("testdata/src/b.go", "package b")
	below := write("c/c.go", "package c")
	again := write("c/c.go", "package c // changed")
	if code == data || data == source || source != below || below != again {
		t.Errorf("code %s, data %s, source among the data %s, a package below %s, changed %s", code, data, source, below, again)
	}
}
