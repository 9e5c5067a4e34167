// Package crun finds the program crun of this host, and why crun runs no container here. The
// package decides nothing about jobs, and starts no container of a job: package shim does.
package crun

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Find returns the path of crun, or why crun runs no container on this host. Find may block for
// a few seconds.
func Find() (tool string, err error) {
	if tool, err = exec.LookPath("crun"); err != nil {
		return "", errors.New("no program crun in PATH: install the package crun")
	}
	if data, err := os.ReadFile("/proc/sys/user/max_user_namespaces"); err == nil {
		if most, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && most == 0 {
			return "", errors.New("the kernel permits no user namespaces: sysctl user.max_user_namespaces is 0")
		}
	}
	if err := cgroupRefusal(cgroups); err != nil {
		return "", err
	}
	return tool, probe(tool)
}

// cgroups is the folder of the hierarchies of cgroups.
const cgroups = "/sys/fs/cgroup"

// cgroupRefusal is why crun runs no container under the hierarchies of cgroups at a folder, nil where
// crun does.
func cgroupRefusal(folder string) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(folder, &stat); err != nil {
		return fmt.Errorf("crun needs the hierarchies of cgroups at %s: %w", folder, err)
	}
	switch stat.Type {
	case unix.CGROUP2_SUPER_MAGIC:
		return nil
	case unix.TMPFS_MAGIC:
	default:
		return fmt.Errorf("crun needs cgroup2 or a tmpfs of hierarchies at %s: the folder has a file system of the type %#x", folder, stat.Type)
	}
	second := filepath.Join(folder, "unified")
	if err := unix.Statfs(second, &stat); err == nil && stat.Type == unix.CGROUP2_SUPER_MAGIC {
		return fmt.Errorf("crun refuses hosts with two hierarchies of cgroups: boot with systemd.unified_cgroup_hierarchy=1, or unmount %s", second)
	}
	return nil
}

// probeMost bounds the time of a probe.
const probeMost = 10 * time.Second

// probe has crun start a command, and returns the error of crun about cgroups. Other errors are
// no reason: an agent without rights may start no container, and a supervisor may.
func probe(tool string) error {
	dir, err := os.MkdirTemp("", "muster-crun-")
	if err != nil {
		return nil // crun speaks at the first start
	}
	defer os.RemoveAll(dir)
	config, err := json.Marshal(map[string]any{
		"ociVersion": "1.0.0", "root": map[string]any{"path": "/", "readonly": true},
		"process": map[string]any{"user": map[string]int{"uid": os.Geteuid(), "gid": os.Getegid()}, "args": []string{"/bin/true"}, "cwd": "/", "noNewPrivileges": true},
		"linux": map[string]any{
			"namespaces":  []map[string]string{{"type": "mount"}, {"type": "user"}},
			"uidMappings": []map[string]int{{"containerID": os.Geteuid(), "hostID": os.Geteuid(), "size": 1}},
			"gidMappings": []map[string]int{{"containerID": os.Getegid(), "hostID": os.Getegid(), "size": 1}},
		},
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "config.json"), config, 0o600)
	}
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeMost)
	defer cancel()
	command := exec.CommandContext(ctx, tool, "--root="+filepath.Join(dir, "state"), "--cgroup-manager=disabled", "run", "--bundle="+dir, "muster-probe")
	var said bytes.Buffer
	command.Stderr, command.WaitDelay = &said, time.Second
	if err := command.Run(); err != nil && strings.Contains(said.String(), "cgroup") {
		return fmt.Errorf("crun runs no container here: %.300s", strings.TrimSpace(said.String()))
	}
	return nil
}

// InitOf returns the program of supervisors where the program serves as the first process of a
// container: a program without libraries, for all users. "" is any other program.
func InitOf(program string) string {
	info, err := os.Stat(program)
	if err != nil || !info.Mode().IsRegular() || info.Mode()&0o005 != 0o005 {
		return ""
	}
	for dir := filepath.Dir(program); ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode()&0o001 == 0 {
			return ""
		}
		if dir == "/" {
			break
		}
	}
	file, err := elf.Open(program)
	if err != nil {
		return ""
	}
	defer file.Close()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			return ""
		}
	}
	return program
}

// NotEnforced names the parts of a container's isolation that this host lacks.
func NotEnforced(sharesProcesses bool) []string {
	if sharesProcesses {
		return []string{"processes of containers"}
	}
	return nil
}
