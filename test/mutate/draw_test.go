package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// drawn is a package with a place for each kind of mistake.
const drawn = `package p

func F(list []int, a, b int) bool {
	for _, x := range list {
		if x < a && !g(a, b) {
			continue
		}
		log.Info("seen")
		touch(x)
		state.sum = max(x-1, a)
		if x == b {
			return true
		}
	}
	return false
}
`

func TestADrawHasEachKindOfMistakeOnce(t *testing.T) {
	dir := writeFiles(t, map[string]string{"p/p.go": drawn, "p/p_test.go": "package p\n\nfunc test() { touch(2) }\n"})
	all, err := draw(dir, "p", 100, 1)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range all {
		text, err := m.apply(drawn)
		if err != nil || m.file != "p/p.go" || !slices.Equal(m.tests, []string{"./p"}) {
			t.Errorf("%s of %s for %v: %v", m.name, m.file, m.tests, err)
		}
		before, after := strings.Split(drawn, "\n"), strings.Split(text, "\n")
		for i := range before {
			if before[i] != after[i] {
				got = append(got, strings.TrimSpace(after[i]))
			}
		}
	}
	slices.Sort(got)
	want := []string{
		"", "_ = max(x-1, a)", "break",
		"if !(x < a && !g(a, b)) {", "if !(x == b) {", "if !g(a, b) {", "if (x < a && !g(a, b)) && false {", "if (x == b) && false {",
		"if x != b {", "if x < a && !g(b, a) {", "if x < a {", "if x <= a && !g(a, b) {",
		"return false", "return true", "state.sum = max(x + 1, a)", "state.sum = min(x-1, a)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the mistakes (-want +got):\n%s", diff)
	}
	for seed, same := range map[uint64]bool{1: true, 2: false} {
		again, err := draw(dir, "p", 100, seed)
		if err != nil || slices.EqualFunc(all, again, func(a, b mutation) bool { return a.name == b.name }) != same {
			t.Errorf("seed %d: the same draw %t, want %t; %v", seed, !same, same, err)
		}
	}
	if few, err := draw(dir, "p", 3, 1); err != nil || len(few) != 3 {
		t.Errorf("%d mistakes, %v; want 3", len(few), err)
	}
	if _, err := draw(dir, "p", 0, 1); err == nil || !strings.Contains(err.Error(), "-n is 0") {
		t.Errorf("no mistakes: %v", err)
	}
	if _, err := draw(dir, "q", 3, 1); err == nil || !strings.Contains(err.Error(), "-draw q: the folder has no Go code") {
		t.Errorf("a folder without code: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "p", "bad.go"), []byte("package"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := draw(dir, "p", 3, 1); err == nil || !strings.Contains(err.Error(), "bad.go") {
		t.Errorf("a file without sense: %v", err)
	}
}
