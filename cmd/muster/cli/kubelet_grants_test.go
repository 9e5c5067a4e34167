package cli

import (
	"strings"
	"testing"
)

func TestOriginShowsTheGrantsOfKubelets(t *testing.T) {
	s := newShell(t, newServer(t))
	for name, c := range map[string]struct {
		args []string
		code int
		want string // in the output or in the refusal
	}{
		"a cluster without a pool":  {[]string{"get", "allocations", "--origin", "kubelet"}, ExitDone, "no kubelet has a device of Muster"},
		"as JSON":                   {[]string{"get", "alloc", "--origin", "kubelet", "-o", "json"}, ExitDone, `"items": []`},
		"another origin":            {[]string{"get", "allocations", "--origin", "slurm"}, ExitMisused, `--origin "slurm": want kubelet`},
		"of another kind":           {[]string{"get", "jobs", "--origin", "kubelet"}, ExitMisused, "--origin is for all allocations"},
		"of one allocation":         {[]string{"get", "allocation", "web", "--origin", "kubelet"}, ExitMisused, "--origin is for all allocations"},
		"with a selector":           {[]string{"get", "allocations", "--origin", "kubelet", "-l", "a=b"}, ExitMisused, "exclude each other"},
		"of a namespace":            {[]string{"get", "allocations", "--origin", "kubelet", "-n", "ml"}, ExitMisused, "exclude each other"},
		"where none may be found":   {[]string{"get", "allocations", "--origin", "kubelet", "--ignore-not-found"}, ExitMisused, "exclude each other"},
		"with labels":               {[]string{"get", "allocations", "--origin", "kubelet", "--show-labels"}, ExitMisused, "exclude each other"},
		"followed by the changes":   {[]string{"get", "allocations", "--origin", "kubelet", "-w"}, ExitMisused, "exclude each other"},
		"as names, which they lack": {[]string{"get", "allocations", "--origin", "kubelet", "-o", "name"}, ExitMisused, "exclude each other"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := s.run(t.Context(), "", c.args...)
			if code != c.code || !strings.Contains(stdout+stderr, c.want) {
				t.Errorf("code %d, %q; want %d and %q", code, stdout+stderr, c.code, c.want)
			}
		})
	}
}
