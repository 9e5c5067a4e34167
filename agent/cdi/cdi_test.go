package cdi_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/agent/cdi"
	"github.com/musterd/muster/agent/shim"
)

const nvidia = `cdiVersion: 0.6.0
kind: nvidia.com/gpu
devices:
- name: GPU-0
  containerEdits:
    deviceNodes: [{path: /dev/nvidia0}]
- name: GPU-1
  containerEdits:
    deviceNodes: [{path: /dev/nvidia1, hostPath: /run/driver/dev/nvidia1}]
containerEdits:
  env: [NVIDIA_VISIBLE_DEVICES=void]
  deviceNodes: [{path: /dev/nvidiactl}]
  hooks: [{hookName: createContainer, path: /usr/bin/nvidia-cdi-hook, args: [nvidia-cdi-hook, update-ldcache]}]
  mounts: [{hostPath: /usr/lib/libcuda.so, containerPath: /usr/lib/libcuda.so, options: [ro, nosuid, bind]}]
`

// folder is a folder with files.
func folder(t *testing.T, files map[string]string) []string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return []string{dir}
}

func TestDevicesAreFoundByTheirUUIDs(t *testing.T) {
	bind := []string{"bind"}
	got, missing, err := cdi.Resolve(folder(t, map[string]string{"nvidia.yaml": nvidia}), []string{"GPU-1", "GPU-0"})
	want := cdi.Edits{
		Env: []string{"NVIDIA_VISIBLE_DEVICES=void"},
		Mounts: []shim.Mount{
			{Source: "/dev/nvidiactl", Destination: "/dev/nvidiactl", Options: bind},
			{Source: "/usr/lib/libcuda.so", Destination: "/usr/lib/libcuda.so", Options: []string{"ro", "nosuid", "bind"}},
			{Source: "/run/driver/dev/nvidia1", Destination: "/dev/nvidia1", Options: bind},
			{Source: "/dev/nvidia0", Destination: "/dev/nvidia0", Options: bind},
		},
		Hooks: map[string][]shim.Hook{"createContainer": {{Path: "/usr/bin/nvidia-cdi-hook", Args: []string{"nvidia-cdi-hook", "update-ldcache"}}}},
	}
	if diff := cmp.Diff(want, got); diff != "" || len(missing) > 0 || err != nil {
		t.Errorf("missing %q, %v, -want +got:\n%s", missing, err, diff)
	}
}

func TestADeviceWithoutASpecification(t *testing.T) {
	for name, folders := range map[string][]string{
		"another device": folder(t, map[string]string{"nvidia.yaml": nvidia}),
		"no file":        folder(t, nil),
		"no folder":      {"/nowhere/cdi"},
	} {
		t.Run(name, func(t *testing.T) {
			_, missing, err := cdi.Resolve(folders, []string{"GPU-7"})
			if err != nil || !cmp.Equal(missing, []string{"GPU-7"}) {
				t.Errorf("missing %q, %v; want GPU-7", missing, err)
			}
		})
	}
}

func TestSpecificationsThatAreRefused(t *testing.T) {
	device := func(edits string) string {
		return "cdiVersion: 1.1.0\nkind: nvidia.com/gpu\ndevices: [{name: GPU-0, containerEdits: {" + edits + "}}]\n"
	}
	for name, c := range map[string]struct{ text, want string }{
		"no YAML":           {"{", "nvidia.yaml"},
		"a new file system": {device("mounts: [{hostPath: tmpfs, containerPath: /x, type: tmpfs}]"), `type "tmpfs": want bind`},
		"a network device":  {device("netDevices: [{hostInterfaceName: a, name: b}]"), "network devices"},
		"too large":         {strings.Repeat("#", 4<<20+1), "want at most 4194304"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := cdi.Resolve(folder(t, map[string]string{"nvidia.yaml": c.text}), []string{"GPU-0"}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func FuzzResolve(f *testing.F) {
	f.Add([]byte(nvidia))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "a.yaml"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		e, missing, err := cdi.Resolve([]string{dir}, []string{"GPU-0"})
		if err == nil && len(missing) == 0 && len(data) == 0 {
			t.Errorf("edits %+v from nothing", e)
		}
	})
}
