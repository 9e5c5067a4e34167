package docs_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/musterd/muster/test/fresh"
)

// series is one metric as the source declares it.
type series struct {
	name, help, kind string
	labels           []string
	program          string
}

// unit is the unit that a name promises.
func (s series) unit() string {
	base := strings.TrimSuffix(s.name, "_total")
	switch {
	case strings.HasSuffix(base, "_seconds"):
		return "seconds"
	case strings.HasSuffix(base, "_bytes"):
		return "bytes"
	case strings.HasSuffix(base, "_ratio"):
		return "0 to 1"
	case strings.HasSuffix(base, "_revision"):
		return "revision"
	case s.name == "muster_agent_allocatable", s.name == "muster_agent_free":
		return "base unit of the resource"
	case strings.HasPrefix(s.help, "1 "):
		return "0 or 1"
	}
	return "count"
}

// metrics reads the metrics that a tree declares: calls and literals whose first
// text is a name that begins with muster_, or that adds a name to a prefix.
func metrics(t *testing.T) []series {
	t.Helper()
	var found []series
	for _, tree := range []string{"agent", "coordinator", "gossip", "netlimit"} {
		err := filepath.WalkDir(filepath.Join(root, tree), func(name string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					found = append(found, declared(call, tree)...)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.SortFunc(found, func(a, b series) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.program, b.program)) })
	return found
}

// declared returns the metrics that one call declares.
func declared(call *ast.CallExpr, tree string) []series {
	s := series{program: tree}
	names := []string{""}
	for i, arg := range call.Args {
		switch a := arg.(type) {
		case *ast.BasicLit:
			text, _ := strconv.Unquote(a.Value)
			switch {
			case i == 0:
				names = []string{text}
			case i == 1:
				s.help = text
			default:
				s.labels = append(s.labels, text)
			}
		case *ast.BinaryExpr: // prefix + "_connections"
			if text, ok := a.Y.(*ast.BasicLit); ok && i == 0 {
				suffix, _ := strconv.Unquote(text.Value)
				names = []string{"muster_agent" + suffix, "muster" + suffix} // as agent and daemon call Collector
				s.labels = append(s.labels, "listener")
			}
		case *ast.CompositeLit:
			for _, e := range a.Elts {
				switch e := e.(type) {
				case *ast.BasicLit:
					label, _ := strconv.Unquote(e.Value)
					s.labels = append(s.labels, label)
				case *ast.KeyValueExpr:
					value, ok := e.Value.(*ast.BasicLit)
					if !ok {
						continue
					}
					text, _ := strconv.Unquote(value.Value)
					switch fmt.Sprint(e.Key) {
					case "Name":
						names = []string{text}
					case "Help":
						s.help = text
					}
				}
			}
		}
	}
	var all []series
	for _, name := range names {
		if prefixes[name] || !metricName.MatchString(name) || len(names) > 1 && tree != "netlimit" {
			continue
		}
		s.name, s.kind = name, kindOf(call, name)
		switch {
		case strings.HasPrefix(name, "muster_agent"):
			s.program = "agent"
		case tree != "agent" && tree != "gossip":
			s.program = "coordinator"
		}
		one := s
		if one.program == "agent" {
			one.labels = append([]string{"node"}, s.labels...)
		}
		all = append(all, one)
	}
	return all
}

var metricName = regexp.MustCompile(`^muster_[a-z_]+$`)

// kindOf is the type of a metric by its constructor and its name.
func kindOf(call *ast.CallExpr, name string) string {
	constructor := ""
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		constructor = f.Sel.Name
	case *ast.Ident:
		constructor = f.Name
	}
	switch {
	case strings.Contains(constructor, "Histogram"), constructor == "stage":
		return "histogram"
	case strings.HasSuffix(name, "_total"):
		return "counter"
	}
	return "gauge"
}

func TestEveryMetricHasAText(t *testing.T) {
	all := metrics(t)
	if len(all) < 40 {
		t.Errorf("only %d metrics are found", len(all))
	}
	for i, s := range all {
		if !strings.HasSuffix(s.help, ".") && !strings.Contains(s.help, ". ") {
			t.Errorf("%s has no sentence as its help: %q", s.name, s.help)
		}
		if i > 0 && all[i-1].name == s.name && all[i-1].program == s.program {
			t.Errorf("%s is declared twice", s.name)
		}
	}
	// A name in the source that was not recognised would be missing from the page.
	named := regexp.MustCompile(`"(muster_[a-z_]+)"`)
	for _, tree := range []string{"agent", "coordinator", "gossip", "netlimit"} {
		err := filepath.WalkDir(filepath.Join(root, tree), func(name string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			for _, m := range named.FindAllStringSubmatch(read(t, name), -1) {
				if !prefixes[m[1]] && !slices.ContainsFunc(all, func(s series) bool { return s.name == m[1] }) {
					t.Errorf("%s names %s, which is not recognised as a metric", name, m[1])
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// prefixes begin the names of a listener's metrics.
var prefixes = map[string]bool{"muster_agent": true}

func TestTheReferenceOfMetricsIsFresh(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Metrics\n\n<!-- Generated by make reference from the source. Do not edit. -->\n\n" +
		"Prometheus reads the coordinator's at `/metrics` of `restListen`, the agent's at `/metrics` of `metricsListen`. Both also have the series of the Go runtime and of\n" +
		"the process (`go_…`, `process_…`). A histogram has the series `…_bucket`, `…_sum` and `…_count`. Counters begin at 0 with the process.\n")
	all := metrics(t)
	for _, p := range []struct{ program, head string }{
		{"coordinator", "Coordinator"}, {"agent", "Agent"}, {"gossip", "Both: the gossip rings. Of an agent they have the label node as well"},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n| series | type | labels | unit | meaning |\n|---|---|---|---|---|\n", p.head)
		for _, s := range all {
			if s.program == p.program {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", s.name, s.kind, strings.Join(s.labels, ", "), s.unit(), strings.ReplaceAll(s.help, "|", `\|`))
			}
		}
	}
	fresh.File(t, filepath.Join(root, "docs", "reference", "metrics.md"), b.String())
}
