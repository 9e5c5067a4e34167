package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/simulate"
)

func TestSimulate(t *testing.T) {
	folder := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	nodes := file("nodes.csv", "sn,cpu_milli,memory_mib,gpu,model\na,32000,65536,4,T4\nb,32000,65536,4,T4\n")
	pods := file("small.csv", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,4000,1024,1,1000\nq,4000,1024,2,1000\nr,1000,1024,1,500\n")
	odd := file("odd.csv", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,4000,1024,2,500\n")
	page := filepath.Join(folder, "page.html")
	lists := []string{"simulate", "--nodes", nodes, "--pods", pods}
	s := newShell(t, nil)

	code, stdout, stderr := s.run(t.Context(), "", append(lists, "--policy", "packed,spread", "--seeds", "1-3", "--html", page)...)
	want := `LIST    POLICY   AT 100%   SD     AT 130%   SD     PLACED
small   packed   91.67%    9.55   95.83%    3.61   22 of 29
small   spread   75.00%    6.25   91.67%    9.55   24 of 29

2 nodes with 8 GPUs; the percentages are of GPUs, means of 3 orders of arrival
`
	if diff := cmp.Diff(want, stdout); diff != "" || code != ExitDone || stderr != "" {
		t.Errorf("exit %d, %s (-want +got):\n%s", code, stderr, diff)
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "<td>spread</td>") {
		t.Errorf("the page: %v", err)
	}
	code, stdout, _ = s.run(t.Context(), "", append(lists, "--seeds", "7", "-o", "json")...)
	var r simulate.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != ExitDone || r.GPUs != 8 || len(r.Lists) != 1 || len(r.Lists[0].Policies) != 4 || len(r.Lists[0].Policies[0].Curve) != 131 {
		t.Errorf("exit %d, %v: %+v", code, err, r)
	}
	for name, c := range map[string]struct {
		args     []string
		wantCode int
		want     string
	}{
		"no nodes":                      {[]string{"simulate", "--pods", pods}, ExitMisused, "--nodes: not set"},
		"no pods":                       {[]string{"simulate", "--nodes", nodes}, ExitMisused, "--pods: not set"},
		"a list that is not there":      {[]string{"simulate", "--nodes", nodes, "--pods", "/nowhere.csv"}, ExitFailed, "/nowhere.csv: no such file"},
		"a list with a fault":           {[]string{"simulate", "--nodes", nodes, "--pods", odd}, ExitFailed, "odd.csv: line 2: gpu_milli: 500 of each of 2 GPUs"},
		"a list of nodes as pods":       {[]string{"simulate", "--nodes", nodes, "--pods", nodes}, ExitFailed, "nodes.csv: line 1: column name is missing"},
		"a page where there is no room": {append(lists, "--seeds", "1", "--html", "/nowhere/p.html"), ExitFailed, "--html: open /nowhere/p.html"},
	} {
		if code, _, stderr := s.run(t.Context(), "", c.args...); code != c.wantCode || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit %d, %s, want %d, %s", name, code, stderr, c.wantCode, c.want)
		}
	}
}
