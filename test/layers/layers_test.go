// Package layers_test holds the layering of the module as data (table_test.go)
// and checks every package against it: who may import whom, what decision
// packages may touch, and what the programs are linked with.
package layers_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterd/muster/test/source"
)

// root is the module's folder, from this one.
var root = filepath.Join("..", "..")

// packages lists the packages of the module and what they need.
func packages(t *testing.T) []*source.Package {
	t.Helper()
	all, err := tree()
	if err != nil {
		t.Fatal(err)
	}
	listed, err := all.Packages()
	if err != nil {
		t.Fatal(err)
	}
	return listed
}

// local returns a package's path below the module.
func local(importPath string) (string, bool) { return strings.CutPrefix(importPath, module+"/") }

// below reports whether path is tree or in it.
func below(path, tree string) bool { return path == tree || strings.HasPrefix(path, tree+"/") }

// TestMain makes the result depend on every source file, so that a cached one
// is never shown after a change that `go list` alone would see.
func TestMain(m *testing.M) {
	if _, err := tree(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestEveryPackageKeepsToItsLayer(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range packages(t) {
		path, ok := local(p.ImportPath)
		if !ok || strings.HasPrefix(path, testTree) {
			continue
		}
		seen[path] = true
		if p.Error != nil {
			t.Errorf("%s: %s", path, p.Error.Err)
		}
		for _, imported := range p.Imports {
			if err := allowed(path, imported); err != nil {
				t.Error(err)
			}
		}
		if _, known := table[path]; !known {
			t.Errorf("%s is in no layer: add a row to table in test/layers/table_test.go, and to docs/adr/0001 where DESIGN.md does not name it", path)
		}
	}
	for path := range table {
		if !seen[path] {
			t.Errorf("%s has a row in test/layers/table_test.go and does not exist", path)
		}
	}
}

// allowed reports why path must not import imported.
func allowed(path, imported string) error {
	from, known := table[path]
	if !known {
		return nil // reported by its caller
	}
	to, isLocal := local(imported)
	if !isLocal {
		return allowedOutside(path, from, imported)
	}
	if strings.HasPrefix(to, testTree) {
		return fmt.Errorf("%s imports %s, which serves tests alone", path, to)
	}
	target, known := table[to]
	switch {
	case !known:
		return nil // reported as a package of its own
	case target.testOnly && !from.testOnly:
		return fmt.Errorf("%s imports %s, which serves tests alone", path, to)
	case target.layer > from.layer:
		return fmt.Errorf("%s (L%d) imports %s (L%d): a package imports only from layers above", path, from.layer, to, target.layer)
	case target.layer == from.layer && !slices.Contains(from.neighbours, to):
		return fmt.Errorf("%s imports %s of its own layer L%d: name it as a neighbour in test/layers/table_test.go if that is meant", path, to, from.layer)
	case below(to, generatedTree) && from.layer > adapter && !slices.Contains(generatedImporters, path):
		return fmt.Errorf("%s (L%d) imports %s: generated types stop at L%d", path, from.layer, to, adapter)
	}
	if to == "api" && slices.Contains(undocumented, path) {
		return fmt.Errorf("%s imports api: decisions know no documents, the leader translates them", path)
	}
	for _, w := range walls {
		if below(path, w[0]) && below(to, w[1]) || below(path, w[1]) && below(to, w[0]) {
			return fmt.Errorf("%s imports %s: %s and %s never import each other", path, to, w[0], w[1])
		}
	}
	return nil
}

// allowedOutside judges an import from outside the module.
func allowedOutside(path string, from row, imported string) error {
	for prefix, importers := range exclusive {
		if below(imported, prefix) && !slices.Contains(importers, path) {
			return fmt.Errorf("%s imports %s, which is %v's alone", path, imported, importers)
		}
	}
	if _, excepted := pureExceptions[path][imported]; from.layer <= decision && !pure[imported] && !excepted {
		return fmt.Errorf("%s (L%d) imports %s: L0 and L1 use only the packages listed as pure in test/layers/table_test.go", path, from.layer, imported)
	}
	return nil
}

func TestTheRulesBite(t *testing.T) {
	for name, c := range map[string]struct{ from, imported, want string }{
		"an L0 package opens files":                {"numa", "os", "L0 and L1 use only"},
		"a decision draws lots":                    {"coordinator/place", "math/rand/v2", "L0 and L1 use only"},
		"a decision logs":                          {"fit", "log/slog", "L0 and L1 use only"},
		"the exception for api is api's":           {"coordinator/place", "net/http", "L0 and L1 use only"},
		"a decision reads from an adapter":         {"agent/ledger", module + "/numa/sysfs", "only from layers above"},
		"neighbours have to be named":              {"coordinator/place", module + "/coordinator/quota", "name it as a neighbour"},
		"the agent reaches for the coordinator":    {"agent", module + "/coordinator/store", "never import each other"},
		"the coordinator reaches for the ledger":   {"coordinator", module + "/agent/ledger", "never import each other"},
		"generated types go past the adapters":     {"coordinator", module + "/proto/muster/v1", "generated types stop at L2"},
		"somebody else asks the driver":            {"agent", "github.com/NVIDIA/go-nvml/pkg/nvml", "devices/nvml"},
		"somebody else speaks to etcd":             {"coordinator", "go.etcd.io/etcd/client/v3", "coordinator/store/etcd"},
		"production leans on a contract suite":     {"coordinator", module + "/coordinator/store/storetest", "serves tests alone"},
		"production leans on the test tree":        {"agent", module + "/test/nvml", "serves tests alone"},
		"a decision reads documents":               {"coordinator/quota", module + "/api", "know no documents"},
		"the leader translates documents":          {"coordinator/lead", module + "/api", ""},
		"place uses fit, its named neighbour":      {"coordinator/place", module + "/fit", ""},
		"the ledger uses the type time.Time":       {"agent/ledger", "time", ""},
		"api names status codes":                   {"api", "net/http", ""},
		"the daemon registers generated services":  {"coordinator/daemon", module + "/proto/muster/v1", ""},
		"an adapter may use what the system gives": {"agent/journal", "os", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := allowed(c.from, c.imported)
			if c.want == "" && err != nil {
				t.Errorf("refused: %v", err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// What make build and test/programs build without cgo links no C code and no
// driver; the Makefile says which programs those are.
func TestOnlyTheDriversProgramsNeedCgo(t *testing.T) {
	var programs []string
	for _, program := range withoutCgo {
		programs = append(programs, "./"+program)
	}
	listed, err := source.List(root, []string{"CGO_ENABLED=0"}, append([]string{"-deps"}, programs...)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range listed {
		if p.ImportPath == "runtime/cgo" || len(p.CgoFiles) > 0 || below(p.ImportPath, "github.com/NVIDIA/go-nvml") {
			t.Errorf("a program of %v without cgo is linked with %s", withoutCgo, p.ImportPath)
		}
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "\tCGO_ENABLED=0 $(GO) build -trimpath $(LINK) -o bin/ " + strings.Join(programs, " ") + "\n"; !strings.Contains(string(makefile), want) {
		t.Errorf("the Makefile's target build has no line %q", want)
	}
}

func TestProgramsAreNotLinkedWithWhatTheyDoNotNeed(t *testing.T) {
	all := packages(t)
	for program, prefixes := range absent {
		t.Run(program, func(t *testing.T) {
			needs := source.Needs(all, module+"/"+program)
			if len(needs) == 0 {
				t.Fatalf("%s is no package, or imports nothing", program)
			}
			for _, needed := range needs {
				for _, prefix := range prefixes {
					own := below(needed, module) && !below(prefix, module)
					if below(needed, prefix) && !own {
						t.Errorf("%s is linked with %s", program, needed)
					}
				}
			}
		})
	}
}
