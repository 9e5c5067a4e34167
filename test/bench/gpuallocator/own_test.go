package gpuallocator_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/NVIDIA/go-gpuallocator/gpuallocator"
)

// ends is a link's direction.
type ends struct{ from, to int }

// librarysNodes reads the nodes that the library's tests build, from its
// source: by function name, the links of each in the order they are added. A
// function without GPUs is left out.
func librarysNodes(t *testing.T) map[string]map[ends][]string {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-gpuallocator").Output()
	if err != nil {
		t.Fatalf("where go-gpuallocator's source is: %v", err)
	}
	path := filepath.Join(strings.TrimSpace(string(dir)), "gpuallocator", "common_test.go")
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	nodes := map[string]map[ends][]string{}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "New") || !strings.HasSuffix(f.Name.Name, "Node") {
			continue
		}
		links := map[ends][]string{}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 3 {
				return true
			}
			at := ends{number(t, call.Args[0]), number(t, call.Args[1])}
			links[at] = append(links[at], call.Args[2].(*ast.SelectorExpr).Sel.Name)
			return true
		})
		if len(links) > 0 {
			nodes[f.Name.Name] = links
		}
	}
	return nodes
}

func number(t *testing.T, e ast.Expr) int {
	t.Helper()
	n, err := strconv.Atoi(e.(*ast.BasicLit).Value)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTopologiesAreTheLibrarysOwn(t *testing.T) {
	theirs := librarysNodes(t)
	for _, p := range own() {
		want, ok := theirs["New"+p.name+"Node"]
		if !ok {
			t.Errorf("the library's tests have no New%sNode", p.name)
			continue
		}
		delete(theirs, "New"+p.name+"Node")
		for i, d := range p.library(t) {
			for j := range p.nodes {
				names := strings.Join(typeNames(d.Links[j]), " ")
				if wanted := strings.Join(want[ends{i, j}], " "); names != wanted {
					t.Errorf("%s, from GPU %d to %d: %q, the library has %q", p.name, i, j, names, wanted)
				}
			}
		}
	}
	for name := range theirs {
		t.Errorf("the library's %s is not compared", name)
	}
}

func typeNames(links []gpuallocator.P2PLink) []string {
	var names []string
	for _, l := range links {
		names = append(names, l.Type.String())
	}
	return names
}

// outscores asks the library itself whether the links b of one pair outscore
// the links a of another: of two disjoint pairs it returns the later one only
// where its score is strictly greater.
func outscores(a, b []uint) bool {
	list := unconnected(4)
	for _, number := range a {
		connect(list[0], list[1], number)
	}
	for _, number := range b {
		connect(list[2], list[3], number)
	}
	chosen := gpuallocator.NewBestEffortPolicy().Allocate(list, nil, 2)
	return chosen[0] == list[2] && chosen[1] == list[3]
}

func TestPairScoresAreTheLibrarys(t *testing.T) {
	// In units of crossCPU, which scores 10.
	wants := map[string]struct {
		links []uint
		units int
	}{
		"two NVLinks and a PCIe switch add up": {[]uint{singleNVLink + 1, singleSwitch}, 25},
		"one NVLink across CPUs":               {[]uint{singleNVLink, crossCPU}, 11},
	}
	type want = struct {
		links []uint
		units int
	}
	for number := uint(crossCPU); number <= sameBoard; number++ {
		wants["PCIe relation "+strconv.Itoa(int(number))] = want{[]uint{number}, int(number)}
	}
	for number := uint(singleNVLink); number <= mostNVLinks; number++ {
		n := int(number-singleNVLink) + 1
		wants[strconv.Itoa(n)+" NVLinks"] = want{[]uint{number}, 10 * n}
	}
	for name, c := range wants {
		t.Run(name, func(t *testing.T) {
			var equal []uint
			for range c.units {
				equal = append(equal, crossCPU)
			}
			if outscores(c.links, equal) || outscores(equal, c.links) {
				t.Errorf("not worth %d times crossCPU", c.units)
			}
			if !outscores(c.links, append(equal, crossCPU)) {
				t.Errorf("worth more than %d times crossCPU", c.units)
			}
		})
	}
}
