package systemd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestTheDropInForTheKubeletPassesSystemdsVerifier has systemd read the unit with the
// drop-in, and checks that the agent gets no capability by it.
func TestTheDropInForTheKubeletPassesSystemdsVerifier(t *testing.T) {
	verifier, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is missing (apt-get install systemd; make test fetches it)")
	}
	const unit = "muster-agent.service"
	verify(t, verifier, unit, unit+".d/kubelet.conf")
	got := settings(t, unit+".d/kubelet.conf")
	if !slices.Equal(got["User"], []string{"root"}) || got["CapabilityBoundingSet"] != nil || got["AmbientCapabilities"] != nil {
		t.Errorf("the drop-in changes more than the user: %v", got)
	}
}

// verify has systemd read a unit with drop-ins.
func verify(t *testing.T, verifier, unit string, dropIns ...string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, unit+".d"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, file := range append(dropIns, unit) {
		text := strings.ReplaceAll(read(t, file), "/usr/local/bin/muster-agent", "/bin/true")
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command(verifier, "verify", "--man=no", "--recursive-errors=no", filepath.Join(dir, unit)).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestTheDropInForWorkPassesSystemdsVerifier also checks that commands have no way back to
// root, and that the agent has the rights for their users alone.
func TestTheDropInForWorkPassesSystemdsVerifier(t *testing.T) {
	verifier, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is missing (apt-get install systemd; make test fetches it)")
	}
	const unit = "muster-agent.service"
	verify(t, verifier, unit, unit+".d/work.conf")
	got := settings(t, unit+".d/work.conf")
	rights := "CAP_SETUID CAP_SETGID CAP_KILL CAP_SYS_PTRACE CAP_DAC_READ_SEARCH CAP_SETPCAP"
	if !slices.Equal(got["User"], []string{"root"}) || !slices.Equal(got["CapabilityBoundingSet"], []string{rights}) || got["AmbientCapabilities"] != nil || got["NoNewPrivileges"] != nil {
		t.Errorf("the drop-in gives other rights: %v", got)
	}
	if base := settings(t, unit); !slices.Equal(base["NoNewPrivileges"], []string{"yes"}) || !slices.Equal(base["KillMode"], []string{"process"}) {
		t.Errorf("commands get rights, or end with the agent: %v", base)
	}
}

// pod is the part of the DaemonSet that decides which rights the agent has.
type pod struct {
	Kind string
	Spec struct {
		Template struct {
			Spec struct {
				AutomountServiceAccountToken *bool
				ServiceAccountName           string
				Containers                   []struct {
					SecurityContext struct {
						Privileged, AllowPrivilegeEscalation, ReadOnlyRootFilesystem *bool
						Capabilities                                                 struct{ Add, Drop []string }
						SeccompProfile                                               struct{ Type string }
					}
					VolumeMounts []struct {
						Name, MountPath string
						ReadOnly        bool
					}
				}
				Volumes []struct {
					Name     string
					HostPath *struct{ Path string }
				}
			}
		}
	}
}

func TestTheDaemonSetHasLeastRights(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "kubernetes", "muster-agent.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var set pod
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		var p pod
		if err := yaml.Unmarshal([]byte(doc), &p); err != nil {
			t.Fatal(err)
		}
		if p.Kind == "DaemonSet" {
			set = p
		}
	}
	spec := set.Spec.Template.Spec
	if len(spec.Containers) != 1 || spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken || spec.ServiceAccountName != "" {
		t.Fatalf("want one container without a token of a service account: %+v", spec)
	}
	c := spec.Containers[0]
	security := c.SecurityContext
	for name, v := range map[string]struct {
		got  *bool
		want bool
	}{
		"privileged": {security.Privileged, false}, "allowPrivilegeEscalation": {security.AllowPrivilegeEscalation, false}, "readOnlyRootFilesystem": {security.ReadOnlyRootFilesystem, true},
	} {
		if v.got == nil || *v.got != v.want {
			t.Errorf("%s is %v, want %t", name, v.got, v.want)
		}
	}
	if !slices.Equal(security.Capabilities.Drop, []string{"ALL"}) || security.Capabilities.Add != nil || security.SeccompProfile.Type != "RuntimeDefault" {
		t.Errorf("capabilities %v, seccomp %q", security.Capabilities, security.SeccompProfile.Type)
	}
	writable := map[string]bool{"/var/lib/muster-agent": true, "/var/lib/kubelet/device-plugins": true}
	host := map[string]string{}
	for _, v := range spec.Volumes {
		if v.HostPath != nil {
			host[v.Name] = v.HostPath.Path
		}
	}
	for _, m := range c.VolumeMounts {
		if path := host[m.Name]; !m.ReadOnly && !writable[path] {
			t.Errorf("volume %s is writable: %s", m.Name, path)
		}
	}
}
