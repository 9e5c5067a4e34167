//go:build unix

package sysfs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNoLinkLeadsOutOfAnOpenedTree(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "isolated")
	if err := os.WriteFile(outside, []byte("1-3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	dir := twoNodes().with(tree{
		cpuDir + "/isolated":              "-> " + outside,
		cpuPath(2, "/topology/core_id"):   "-> ../../../../../../../../../../../../../../etc/hostname",
		"proc/sys/kernel/random/boot_id":  "-> /proc/sys/kernel/random/boot_id",
		nodePath(1, "/distance"):          "-> ../node0/twin",
		nodePath(0, "/twin"):              "21 10\n",
		"sys/devices/system/cpu/cpu3/sub": "-> /",
	}).write(t)
	fsys, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	topology, warnings, err := Read(fsys)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range topology.CPUs {
		if c.Isolated {
			t.Errorf("cpu %d is isolated by a file outside the tree", c.ID)
		}
	}
	if len(warnings) != 2 || topology.Distances == nil {
		t.Errorf("distances %v, warnings %v, want a warning for each of the two links that lead out", topology.Distances, warnings)
	}
	if host, _ := ReadHost(fsys); host.BootID != "" || host.Hostname != "node-7" {
		t.Errorf("host %+v, want no boot id from outside", host)
	}
}

func TestOpenRefusesWhatIsNoTree(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sys")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ root, want string }{
		"an empty folder":              {t.TempDir(), "holds no folder sys"},
		"a folder with a file sys":     {filepath.Dir(file), "holds no folder sys"},
		"a file":                       {file, "the tree to read"},
		"a folder that does not exist": {filepath.Join(t.TempDir(), "none"), "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			if fsys, err := Open(test.root); err == nil || fsys != nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Open = %v, %v, want an error with %q", fsys, err, test.want)
			}
		})
	}
}

func TestOpensTheRunningHost(t *testing.T) {
	fsys, err := Open("/")
	if err != nil {
		t.Fatal(err)
	}
	topology, _, err := Read(fsys)
	if err != nil {
		t.Skipf("the running host shows no CPUs: %v", err)
	}
	if err := topology.Validate(); err != nil {
		t.Error(err)
	}
}
