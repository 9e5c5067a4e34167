package hostile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterd/muster/test/hostile/evil"
)

func TestEveryRowHasACase(t *testing.T) {
	have, short := map[string]bool{}, map[string]bool{}
	modes := evil.Modes()
	used := map[string]bool{}
	for name, a := range all {
		_, waits := pending[name]
		used[a.mode] = true
		for _, row := range append([]string{a.row}, alsoCovers[name]...) {
			have[row] = true
			short[row] = short[row] || a.short && !waits
		}
		if !slices.Contains(modes, a.mode) {
			t.Errorf("%s: no attack has the mode %q", name, a.mode)
		}
		if len(a.coordinators) == 0 || len(a.want)+len(a.never) == 0 && a.during == nil && a.after == nil && a.row != "S9" && a.row != "S11" {
			t.Errorf("%s: it runs nowhere or expects nothing", name)
		}
		for _, text := range slices.Concat(a.want, a.may, a.never, a.said) {
			if strings.Contains(text, "|") {
				t.Errorf("%s: %q is looked for as it is: write one answer each", name, text)
			}
		}
	}
	for _, row := range rows {
		if !have[row] {
			t.Errorf("row %s has no case", row)
		}
		if !short[row] {
			t.Errorf("row %s has no case in the round of `make test`", row)
		}
	}
	for _, mode := range modes {
		if !used[mode] {
			t.Errorf("mode %s is in no case", mode)
		}
	}
	for _, names := range []iter.Seq[string]{maps.Keys(pending), maps.Keys(alsoCovers)} {
		for name := range names {
			if _, ok := all[name]; !ok {
				t.Errorf("there is no case %q", name)
			}
		}
	}
}

// TestAttacks runs the cases of the round against clusters of one and of three
// coordinators.
func TestAttacks(t *testing.T) {
	if _, err := exec.LookPath("etcd"); err != nil { // clusters of one run belong to many tests, which must not skip one by one
		t.Skipf("%v (make prerequisites fetches it)", err)
	}
	var mu sync.Mutex
	var results []result
	t.Run("of", func(t *testing.T) {
		for _, coordinators := range []int{1, 3} {
			t.Run(fmt.Sprintf("coordinators=%d", coordinators), func(t *testing.T) {
				if !*long { // where latencies are compared, nothing runs beside
					t.Parallel()
				}
				list := attackCluster(t, coordinators)
				mu.Lock()
				defer mu.Unlock()
				results = append(results, list...)
			})
		}
	})
	slices.SortStableFunc(results, func(a, b result) int { return a.Coordinators - b.Coordinators })
	write(t, results)
}

// selected are the cases of this round, by row and name.
func selected(coordinators int) []string {
	names := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(all[a].row), len(all[b].row)), cmp.Compare(all[a].row, all[b].row), cmp.Compare(a, b))
	})
	return slices.DeleteFunc(names, func(name string) bool {
		a := all[name]
		if *only != "" && !slices.ContainsFunc(append([]string{a.row}, alsoCovers[name]...), func(row string) bool { return slices.Contains(strings.Split(*only, ","), row) }) {
			return true
		}
		_, waits := pending[name]
		sizes := a.coordinators
		whole := *long || *every || *proof
		if !whole && a.shortOn != nil {
			sizes = a.shortOn
		}
		return !slices.Contains(sizes, coordinators) || waits != *proof || !a.short && !whole
	})
}

func attackCluster(t *testing.T, coordinators int) []result {
	w := &world{t: t, coordinators: coordinators}
	var list []result
	for _, name := range selected(coordinators) {
		t.Run(name, func(t *testing.T) {
			s := &scene{world: w, t: t, name: name, attack: all[name]}
			s.play()
			list = append(list, s.result)
			t.Log(line(s.result))
			if len(s.problems) == 0 {
				if s.attack.spoils {
					for _, p := range w.drop() {
						t.Errorf("the cluster: %s", p)
					}
				}
				if *proof {
					t.Errorf("this case is pending and does no harm: take it out of pending")
				}
				return
			}
			for _, p := range s.problems {
				if *proof {
					t.Logf("HARM (waits for %s): %s", pending[name], p)
				} else {
					t.Error(p)
				}
			}
			if !*proof {
				for _, n := range s.report.Notes {
					t.Logf("the attacker noted: %s", n)
				}
				if w.c != nil {
					for _, p := range victims(w.c) {
						t.Logf("%s wrote:\n%s", p.Name, p.Tail())
					}
				}
			}
			for _, p := range w.drop() {
				t.Logf("the cluster: %s", p)
			}
		})
	}
	for _, p := range w.drop() {
		t.Error(p)
	}
	return list
}

// line is a result on one line.
func line(r result) string {
	more := "-"
	if len(r.Growth) > 0 {
		more = fmt.Sprintf("%s %+d MiB (%d)", r.Growth[0].Process, r.Growth[0].more()>>20, r.Growth[0].Peak>>20)
	}
	return fmt.Sprintf("| %s | %s | %s | %d | %s / %s | %s / %s (%d) | %s | %s | %d |", r.Row, r.Level, r.Case, r.Coordinators,
		ms(r.Undisturbed.P50), ms(r.Undisturbed.P99), ms(r.Disturbed.P50), ms(r.Disturbed.P99), r.Disturbed.Count, more, answers(r.Answers), len(r.Problems))
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }

func answers(counts map[string]int) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, fmt.Sprintf("%s ×%d", key, counts[key]))
	}
	return strings.Join(list, ", ")
}

// write writes results.md and results.json and logs the table.
func write(t *testing.T, all []result) {
	t.Helper()
	dir := cmp.Or(*results, t.TempDir())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| row | level | case | coordinators | undisturbed p50 / p99 | under attack p50 / p99 (allocations) | most memory more (peak) | answers | problems |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range all {
		table.WriteString(line(r) + "\n")
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"results.md": table.String(), "results.json": string(text)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Error(err)
		}
	}
	t.Logf("in %s:\n%s", dir, table.String())
}

// copyAtMost copies so many bytes and leaves the rest.
func copyAtMost(into io.Writer, from io.Reader, n int64) (int64, error) {
	return io.Copy(into, io.LimitReader(from, n))
}
