// Package systemd_test checks the units in systemd/: with systemd's own
// verifier, and for the settings without which agents lose their GPUs or
// workloads their lives. It starts the real programs under a fake
// NOTIFY_SOCKET; no systemd has to run.
package systemd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is the module's folder, from this one.
var root = filepath.Join("..", "..")

var units = []string{"muster-agent.service", "muster-coordinator.service"}

func TestUnitsPassSystemdsVerifier(t *testing.T) {
	verifier, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is missing (apt-get install systemd; make test fetches it)")
	}
	for _, unit := range units {
		t.Run(unit, func(t *testing.T) {
			copied := filepath.Join(t.TempDir(), unit)
			// The verifier wants the program to exist; it does not start it.
			text := strings.ReplaceAll(read(t, unit), "/usr/local/bin/"+strings.TrimSuffix(unit, ".service"), "/bin/true")
			if err := os.WriteFile(copied, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command(verifier, "verify", "--man=no", "--recursive-errors=no", copied).CombinedOutput()
			if err != nil || len(out) > 0 {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestTheServiceOnAGrantPassesSystemdsVerifier: the example is a template, which wants an
// instance.
func TestTheServiceOnAGrantPassesSystemdsVerifier(t *testing.T) {
	verifier, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is missing (apt-get install systemd; make test fetches it)")
	}
	text, err := os.ReadFile("../../examples/launchers/muster-grant@.service")
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "muster-grant@u-3.7.1.0123.service")
	programs := strings.NewReplacer("/usr/local/bin/muster-agent", "/bin/true", "/usr/bin/nvidia-smi", "/bin/true")
	if err := os.WriteFile(copied, []byte(programs.Replace(string(text))), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(verifier, "verify", "--man=no", "--recursive-errors=no", copied).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestUnitsKeepWhatTheDaemonsDependOn(t *testing.T) {
	both := map[string]string{
		"Type": "notify", "NotifyAccess": "main", "WatchdogSec": "30", "Restart": "on-failure", "User": "muster",
		"StateDirectoryMode": "0700", "ProtectSystem": "strict", "RestrictAddressFamilies": "AF_UNIX AF_INET AF_INET6 AF_NETLINK",
	}
	for _, unit := range units {
		got := settings(t, unit)
		for key, want := range both {
			if !slices.Equal(got[key], []string{want}) {
				t.Errorf("%s: %s=%q, want %q", unit, key, got[key], want)
			}
		}
		name := strings.TrimSuffix(unit, ".service")
		if want := "/usr/local/bin/" + name + " --config /etc/muster/" + name + ".yaml"; !slices.Equal(got["ExecStart"], []string{want}) {
			t.Errorf("%s: ExecStart=%q, want %q", unit, got["ExecStart"], want)
		}
		if !slices.Equal(got["StateDirectory"], []string{name}) {
			t.Errorf("%s: StateDirectory=%q, want the data folder's name %q", unit, got["StateDirectory"], name)
		}
	}
}

func TestTheAgentsUnitTakesNothingItNeeds(t *testing.T) {
	got := settings(t, "muster-agent.service")
	if !slices.Equal(got["KillMode"], []string{"process"}) {
		t.Errorf("KillMode=%q: a restart of the agent would kill what was started from it, want process", got["KillMode"])
	}
	for key, why := range map[string]string{
		"PrivateDevices":         "hides /dev/nvidia*",
		"DevicePolicy":           "hides /dev/nvidia*",
		"DeviceAllow":            "hides every device that it does not name",
		"ProtectClock":           "implies a DeviceAllow, which hides /dev/nvidia*",
		"MemoryDenyWriteExecute": "may break the driver's library",
		"SystemCallFilter":       "may break the driver's library",
		"PrivateUsers":           "takes the group video away",
		"PrivateNetwork":         "cuts the agent off",
		"ProcSubset":             "hides /proc/stat and /proc/meminfo",
		"DynamicUser":            "changes the owner of the token file",
		"AllowedCPUs":            "would be discovered as the host's CPUs",
		"Environment":            "could set LD_BIND_NOW; the configuration is a file",
		"EnvironmentFile":        "could set LD_BIND_NOW; the configuration is a file",
		"PassEnvironment":        "could set LD_BIND_NOW; the configuration is a file",
		"ExecReload":             "does not exist: the configuration is read at start",
		"ProtectProc":            "hides the processes on a device",
	} {
		if values, set := got[key]; set {
			t.Errorf("%s=%q: %s", key, values, why)
		}
	}
}

// read returns a unit file.
func read(t *testing.T, unit string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "systemd", unit))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// settings returns a unit's assignments in order, by key.
func settings(t *testing.T, unit string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for line := range strings.Lines(read(t, unit)) {
		line = strings.TrimSpace(line)
		if key, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			all[key] = append(all[key], value)
		}
	}
	return all
}
