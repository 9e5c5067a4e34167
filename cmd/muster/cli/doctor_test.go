package cli

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterd/muster/cmd/muster/doctor"
)

// runDoctor runs the program with the given arguments and environment.
func runDoctor(t *testing.T, env map[string]string, args ...string) (code int, out, problems string) {
	t.Helper()
	var stdout, stderr strings.Builder
	p := Program{
		Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Args: append([]string{"doctor"}, args...), Version: "v1",
		Env: func(name string) string { return env[name] },
	}
	code = p.Run(t.Context())
	return code, stdout.String(), stderr.String()
}

func TestDoctorsExitCodes(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	l.Close()
	dir := t.TempDir()
	good := filepath.Join(dir, "agent.yaml")
	if err := os.WriteFile(good, []byte("nodeID: a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	contexts := filepath.Join(dir, "contexts.json")
	nothing := map[string]string{"MUSTER_CONTEXT": contexts}
	for name, test := range map[string]struct {
		args []string
		want int
		text string
	}{
		"a cluster that is down":               {[]string{"--addr", closed}, ExitFailed, "the port is closed: connection refused"},
		"no address at all":                    {nil, ExitMisused, "no server is known"},
		"a file that is not there":             {[]string{"--config", "/nowhere/x.yaml"}, ExitMisused, "--config: stat /nowhere/x.yaml"},
		"a host without a fault and a cluster": {[]string{"--config", good}, ExitDone, "nothing is wrong"},
		"too little patience":                  {[]string{"--patience", "1ms"}, ExitMisused, "--patience 1ms is outside 100ms..1m"},
		"a token file that is not there":       {[]string{"--addr", closed, "--serf-token-file", "/nowhere"}, ExitMisused, "--serf-token-file: open /nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, problems := runDoctor(t, nothing, test.args...)
			if code != test.want || !strings.Contains(out+problems, test.text) {
				t.Errorf("exit code %d, want %d; %q is to be in:\n%s\n%s", code, test.want, test.text, out, problems)
			}
		})
	}
}

func TestDoctorWritesItsReportAsJSON(t *testing.T) {
	code, out, _ := runDoctor(t, map[string]string{"MUSTER_CONTEXT": "/nowhere/contexts"}, "--addr", "127.0.0.1:1", "-o", "json")
	var r doctor.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != ExitFailed {
		t.Fatalf("exit code %d, %v in %s", code, err, out)
	}
	if len(r.Findings) != 1 || r.Findings[0].Severity != doctor.Error || r.Findings[0].Subject != "http://127.0.0.1:1" || len(r.Skipped) == 0 {
		t.Errorf("report %+v", r)
	}
}

func TestDoctorFindsContextsThatOthersCanRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "contexts.json")
	if err := os.WriteFile(path, []byte(`{"addr": "http://127.0.0.1:1", "token": "t"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	_, out, problems := runDoctor(t, map[string]string{"MUSTER_CONTEXT": path}, "--addr", "127.0.0.1:1")
	if want := path + ": its mode is 0644: others can read the tokens in it\n  mend it: chmod 0600 " + path; !strings.Contains(out, want) {
		t.Errorf("%q is not in:\n%s\n%s", want, out, problems)
	}
}
