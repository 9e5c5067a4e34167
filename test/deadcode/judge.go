// Package deadcode fails where no program calls a function of the product. The tool deadcode
// (golang.org/x/tools, pinned in tools/go.mod) finds the functions out of reach of each main;
// kept_test.go lists the functions to keep, each with a reason. The package does not judge
// the use of a reached function, nor packages outside of all programs: test/layers marks
// such packages testOnly.
package deadcode

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const module = "github.com/musterd/muster/"

// build is a run of deadcode: the unreached functions of the programs of a build, with their
// positions, and the compiled files.
type build struct {
	dead  map[string]string // by name: "coordinator/store.CurrentLeader"
	files map[string]bool   // below the module's folder
}

// read takes the JSON of deadcode. The positions are below root, the module's folder.
func read(text []byte, root string) (map[string]string, error) {
	var packages []struct {
		Path  string
		Funcs []struct {
			Name     string
			Position struct {
				File string
				Line int
			}
		}
	}
	if err := json.Unmarshal(text, &packages); err != nil {
		return nil, fmt.Errorf("deadcode's JSON: %w", err)
	}
	dead := map[string]string{}
	for _, p := range packages {
		for _, f := range p.Funcs {
			file := strings.TrimPrefix(strings.TrimPrefix(f.Position.File, root), "/")
			dead[strings.TrimPrefix(p.Path, module)+"."+f.Name] = fmt.Sprintf("%s:%d", file, f.Position.Line)
		}
	}
	return dead, nil
}

// deadIn returns the functions unreached by all builds, with their positions. A build counts
// for the functions of the compiled files alone. The exported functions of the SDK are there
// for programs outside of this module.
func deadIn(builds ...build) map[string]string {
	dead := map[string]string{}
	for _, b := range builds {
		for name, at := range b.dead {
			file, _, _ := strings.Cut(at, ":")
			reached := slices.ContainsFunc(builds, func(o build) bool { return o.files[file] && o.dead[name] == "" })
			if !reached && !strings.HasPrefix(name, "sdk.") && !strings.HasPrefix(name, "sdk/") {
				dead[name] = at
			}
		}
	}
	return dead
}

// judge compares the unreached functions with the list of the functions to keep.
func judge(dead, kept map[string]string) (complaints []string) {
	for _, name := range slices.Sorted(maps.Keys(dead)) {
		if _, listed := kept[name]; !listed {
			complaints = append(complaints, fmt.Sprintf("no program calls %s (%s): delete it, or move it to a _test.go file or to a package that is testOnly in test/layers/table_test.go; "+
				"where it must stay, add a row with the reason to test/deadcode/kept_test.go", name, dead[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		if _, is := dead[name]; !is {
			complaints = append(complaints, fmt.Sprintf("a program calls %s, or the function is gone: delete its row from test/deadcode/kept_test.go", name))
		}
		if kept[name] == "" {
			complaints = append(complaints, fmt.Sprintf("the row of %s in test/deadcode/kept_test.go has no reason: say who calls the function", name))
		}
	}
	return complaints
}
