package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// root is the module's folder, from this one.
var root = filepath.Join("..", "..")

// TestShortSearches holds the smallest configurations and the quickest mutants;
// `make model` holds all.
func TestShortSearches(t *testing.T) {
	if err := tools(); err != nil {
		t.Skip(err)
	}
	for _, s := range rows(false) {
		if !s.short {
			continue
		}
		t.Run(strings.Join(append([]string{s.model}, s.flags()...), " "), func(t *testing.T) {
			r, err := s.run(t.Context(), ".", t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if r.verdict != s.want {
				t.Errorf("%s: found %s after %d states, want %s", s.what, r.verdict, r.states, s.want)
			}
		})
	}
}

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		out  string
		want result
	}{
		"a complete search without errors holds": {
			"State-vector 52 byte, depth reached 506, errors: 0\n  1061080 states, stored\n", result{states: 1061080, verdict: holds},
		},
		"more states than spin writes out": {
			"depth reached 719, errors: 0\n1.3993532e+08 states, stored\n", result{states: 139935320, verdict: holds},
		},
		"a broken invariant is named": {
			"pan:1: assertion violated ( !((x[0]==1)))||((1000+10)==0)) (at depth 17)\nerrors: 1\n  91 states, stored\n", result{states: 91, verdict: "I10"},
		},
		"the far end": {
			"pan:1: assertion violated ( !((x[0]==1)))||((1000+99)==0)) (at depth 17)\nerrors: 1\n  91 states, stored\n", result{states: 91, verdict: reached},
		},
		"another error is not an invariant": {
			"pan:1: invalid end state (at depth 3)\nerrors: 1\n  5 states, stored\n", result{states: 5, verdict: "errors: 1"},
		},
		"a path that was too long": {
			"error: max search depth too small\nerrors: 0\n  5 states, stored\n", result{states: 5, verdict: "incomplete"},
		},
		"too many states for the memory": {
			"pan: reached -DMEMLIM bound\nWarning: Search not completed\nerrors: 0\n  5 states, stored\n", result{states: 5, verdict: "incomplete"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parse(c.out)
			if err != nil || got != c.want {
				t.Errorf("%+v, %v, want %+v", got, err, c.want)
			}
		})
	}
	if r, err := parse("Killed\n"); err == nil {
		t.Errorf("no report is %+v, want an error", r)
	}
}

// TestModelsAndRowsNameTheSameMutants: a mutant that no row runs proves
// nothing, and a row whose mutant the model does not know would run without.
func TestModelsAndRowsNameTheSameMutants(t *testing.T) {
	if diff := cmp.Diff(defined(t), inRows()); diff != "" {
		t.Errorf("mutants in the models (-) and in rows.go (+):\n%s", diff)
	}
}

// TestCodeAndModelsNameTheSameMutants: each rule of the models is at a place in
// the code that names the mutant without it.
func TestCodeAndModelsNameTheSameMutants(t *testing.T) {
	written := inCode(t)
	for _, name := range inRows() {
		places, why := written[name], unwritten[name]
		switch {
		case len(places) == 0 && why == "":
			t.Errorf("no code says \"model: mutant %s\": where is its rule?", name)
		case len(places) > 0 && why != "":
			t.Errorf("%s names %s: take it from the list of unwritten ones", places[0], name)
		}
	}
	known := inRows()
	for name, places := range written {
		if !slices.Contains(known, name) {
			t.Errorf("%v names the mutant %s, which no model has", places, name)
		}
	}
	for name := range unwritten {
		if !slices.Contains(known, name) {
			t.Errorf("the unwritten mutant %s is in no model", name)
		}
	}
}

// defined lists the mutants that the models define, per model.
func defined(t *testing.T) []string {
	t.Helper()
	define := regexp.MustCompile(`(?m)^#define ([A-Z_]+) +([0-9]+)$`)
	var names, numbers []string
	for _, model := range []string{"muster", "creation", "restore"} {
		data, err := os.ReadFile(model + ".pml")
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		_, list, _ := strings.Cut(text, "#define IS(n) ")
		list, _, _ = strings.Cut(list, "\n\n")
		for _, m := range define.FindAllStringSubmatch(list, -1) {
			names, numbers = append(names, m[1]), append(numbers, m[2])
			if n := strings.Count(text, "IS("+m[1]+")"); n == 0 {
				t.Errorf("%s.pml defines %s and drops no rule for it", model, m[1])
			}
		}
	}
	slices.Sort(numbers)
	if len(slices.Compact(numbers)) != len(names) {
		t.Error("two mutants have one number")
	}
	slices.Sort(names)
	return names
}

// inRows lists the mutants that are run.
func inRows() []string {
	var names []string
	for _, s := range mutants {
		names = append(names, s.mutant)
	}
	slices.Sort(names)
	return names
}

// inCode finds the marks "model: mutant NAME" and "model: mutants NAME, NAME"
// of production code, by name.
func inCode(t *testing.T) map[string][]string {
	t.Helper()
	mark := regexp.MustCompile(`//.*\bmodel: mutants? ([A-Z_]+(?:, [A-Z_]+)*)`)
	found := map[string][]string{}
	for _, part := range []string{"agent", "coordinator"} {
		err := filepath.WalkDir(filepath.Join(root, part), func(name string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			for _, m := range mark.FindAllStringSubmatch(string(data), -1) {
				for mutant := range strings.SplitSeq(m[1], ", ") {
					found[mutant] = append(found[mutant], name)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}
