package systemd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTheHelperOfSystemdPassesItsVerifier also checks that the helper is off, serves the
// agent's group alone, and has no capability.
func TestTheHelperOfSystemdPassesItsVerifier(t *testing.T) {
	verifier, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is missing (apt-get install systemd; make test fetches it)")
	}
	dir := t.TempDir()
	var files []string
	for _, unit := range []string{"muster-launch.service", "muster-launch.socket"} {
		text := strings.ReplaceAll(read(t, unit), "/usr/local/bin/muster-launch", "/bin/true")
		files = append(files, filepath.Join(dir, unit))
		if err := os.WriteFile(filepath.Join(dir, unit), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command(verifier, append([]string{"verify", "--man=no", "--recursive-errors=no"}, files...)...).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
	service, socket := settings(t, "muster-launch.service"), settings(t, "muster-launch.socket")
	for key, want := range map[string]string{
		"CapabilityBoundingSet": "CAP_KILL", "NoNewPrivileges": "yes", "ProtectSystem": "strict", "ReadWritePaths": "/sys/fs/cgroup", "Slice": "muster.slice",
	} {
		if !slices.Equal(service[key], []string{want}) {
			t.Errorf("the helper has %s=%v, want %q", key, service[key], want)
		}
	}
	if service["WantedBy"] != nil || service["User"] != nil {
		t.Errorf("the helper starts by itself, or is not root: %v", service)
	}
	for key, want := range map[string]string{"SocketGroup": "muster", "SocketMode": "0660", "ListenSequentialPacket": "/run/muster-launch.sock"} {
		if !slices.Equal(socket[key], []string{want}) {
			t.Errorf("the socket has %s=%v, want %q", key, socket[key], want)
		}
	}
}
