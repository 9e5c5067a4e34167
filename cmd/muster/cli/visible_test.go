package cli

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/musterd/muster/api"
)

func TestControlCharactersAreShown(t *testing.T) {
	for name, c := range map[string]struct {
		colours bool
		writes  []string
		want    string
	}{
		"plain text":                    {writes: []string{"wörds\tand\nlines"}, want: "wörds\tand\nlines"},
		"a title is set":                {writes: []string{"\x1b]0;owned\x07"}, want: `\u001b]0;owned\u0007`},
		"the line is taken back":        {writes: []string{"bad\rgood\x08"}, want: `bad\u000dgood\u0008`},
		"an escape of eight bits":       {writes: []string{"a\u009b2Jb", "c\x9b2J"}, want: `a\u009b2Jbc\x9b2J`},
		"letters run from the right":    {writes: []string{"a\u202eb\u2066"}, want: `a\u202eb\u2066`},
		"a colour without a terminal":   {writes: []string{"\x1b[31mred\x1b[0m"}, want: `\u001b[31mred\u001b[0m`},
		"own colours on a terminal":     {colours: true, writes: []string{"\x1b[31mred\x1b[0m"}, want: "\x1b[31mred\x1b[0m"},
		"others on a terminal":          {colours: true, writes: []string{"\x1b[8mhidden\x1b[31"}, want: `\u001b[8mhidden\u001b[31`},
		"a character in two writes":     {writes: []string{"w\xc3", "\xb6rds"}, want: "wörds"},
		"the half of one, then another": {writes: []string{"w\xc3", "rds"}, want: `w\xc3rds`},
	} {
		var out bytes.Buffer
		w := &visible{to: &out, colours: c.colours}
		for _, text := range c.writes {
			if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
				t.Errorf("%s: wrote %d of %d, %v", name, n, len(text), err)
			}
		}
		if out.String() != c.want {
			t.Errorf("%s: %q, want %q", name, out.String(), c.want)
		}
	}
}

// every character that a terminal may obey.
func controls() string {
	var s strings.Builder
	for r := rune(1); r < 0xa0; r++ {
		if isControl(r) {
			s.WriteRune(r)
		}
	}
	return s.String() + "\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
}

// FAULTS S13: a host's condition reached the operator's terminal raw.
func TestAHostsConditionReachesTheTerminalInEscapes(t *testing.T) {
	n := partitioned()
	n.Status.Conditions[2].Message = "x" + controls() + "\nREADY   forged row"
	n.Status.Devices[1].HealthReason = "\x1b[2J\x1b]0;owned\x07"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var document any = n
		if strings.HasSuffix(r.URL.Path, "/nodes") {
			document = api.NodeList{Items: []api.Node{*n}}
		}
		if strings.HasSuffix(r.URL.Path, "/refused") {
			w.WriteHeader(http.StatusNotFound)
			document = api.Status{Code: http.StatusNotFound, Message: "there is no \x1b[31mnode"}
		}
		if err := json.NewEncoder(w).Encode(document); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	run := func(args ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		Program{
			Stdin: os.Stdin, Stdout: &stdout, Stderr: &stderr, Env: func(string) string { return "" },
			Args: append([]string{"--addr", server.URL, "--token", "0123456789abcdef"}, args...),
		}.Run(t.Context())
		all := stdout.String() + stderr.String()
		for _, r := range all {
			if isControl(r) && r != '\n' && r != '\t' {
				t.Errorf("muster %v prints %q", args, r)
			}
		}
		return all
	}
	for _, args := range [][]string{{"describe", "node", "gpu-01"}, {"get", "nodes"}, {"get", "nodes", "-o", "wide"}, {"describe", "node", "refused"}} {
		out := run(args...)
		for line := range strings.Lines(out) {
			if strings.HasPrefix(strings.TrimSpace(line), "READY   forged") {
				t.Errorf("muster %v: a condition makes a line of its own", args)
			}
		}
	}
	if out := run("describe", "node", "gpu-01"); !strings.Contains(out, `\u001b[2J\u001b]0;owned\u0007`) || !strings.Contains(out, `\nREADY`) {
		t.Errorf("the condition is not shown:\n%s", out)
	}
	var fromJSON, fromYAML api.Node
	if err := json.Unmarshal([]byte(run("get", "node", "gpu-01", "-o", "json")), &fromJSON); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(run("get", "node", "gpu-01", "-o", "yaml")), &fromYAML); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]api.Node{"json": fromJSON, "yaml": fromYAML} {
		if diff := cmp.Diff(n.Status.Conditions, got.Status.Conditions); diff != "" {
			t.Errorf("-o %s changes the condition (-want +got):\n%s", name, diff)
		}
	}
}
