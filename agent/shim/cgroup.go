package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// This file divides the cgroup of a member (cgroups(7), the unified hierarchy). The
// folder of Spec.Cgroup is the member's alone. Below it the shim makes two folders:
// one for the command, with the limits, and one for itself where it was started in the
// member's folder: the kernel allows no process beside a folder with limits.

const (
	workGroup = "work"
	ownGroup  = "supervisor"
)

// controllers are those that limit or count a member, as far as the host has them.
var controllers = []string{"cpu", "cpuset", "hugetlb", "memory", "pids"}

// maxLimits bounds Spec.Limits: hosts have a few sizes of huge pages.
const maxLimits = 64

// checkLimits judges the limits of a spec.
func checkLimits(cgroup string, limits map[string]string) error {
	switch {
	case len(limits) > maxLimits:
		return fmt.Errorf("spec: limits: %d, want at most %d", len(limits), maxLimits)
	case len(limits) > 0 && cgroup == "":
		return errors.New("spec: limits without a cgroup")
	}
	for name, value := range limits {
		controller, rest, ok := strings.Cut(name, ".")
		if !ok || rest == "" || strings.Contains(name, "/") || !slices.Contains(controllers, controller) {
			return fmt.Errorf("spec: limits: %q is no file of a controller, want one of %s", name, strings.Join(controllers, ", "))
		}
		if value == "" || strings.ContainsAny(value, "\n\x00") {
			return fmt.Errorf("spec: limits: %s: %q is no value", name, value)
		}
	}
	return nil
}

// workFolder is the folder of the command in the cgroup of a member; "" without one.
func workFolder(cgroup string) string {
	if cgroup == "" {
		return ""
	}
	return filepath.Join(cgroup, workGroup)
}

// divideCgroup makes the folder of the command, with its limits, and returns it.
func divideCgroup(cgroup string, limits map[string]string) (work string, err error) {
	if cgroup == "" {
		return "", nil
	}
	if err := leaveCgroup(cgroup); err != nil {
		return "", fmt.Errorf("cgroup %s: %w", cgroup, err)
	}
	has, err := os.ReadFile(filepath.Join(cgroup, "cgroup.controllers"))
	if err != nil {
		return "", err
	}
	for _, name := range controllers {
		if !slices.Contains(strings.Fields(string(has)), name) {
			continue
		}
		if err := writeGroup(filepath.Join(cgroup, "cgroup.subtree_control"), "+"+name); err != nil {
			return "", err
		}
	}
	work = workFolder(cgroup)
	if err := os.Mkdir(work, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if err := writeGroup(filepath.Join(work, name), limits[name]); err != nil {
			return "", err
		}
	}
	return work, nil
}

// leaveCgroup moves this process out of the member's folder into one of its own, where
// the process is in the former.
func leaveCgroup(cgroup string) error {
	procs, err := os.ReadFile(filepath.Join(cgroup, "cgroup.procs"))
	if err != nil {
		return err
	}
	self := strconv.Itoa(os.Getpid())
	if !slices.Contains(strings.Fields(string(procs)), self) {
		return nil
	}
	own := filepath.Join(cgroup, ownGroup)
	if err := os.Mkdir(own, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return writeGroup(filepath.Join(own, "cgroup.procs"), self)
}

// writeGroup writes a file of the hierarchy, which is always there.
func writeGroup(path, value string) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(value)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write %q: %w", value, err)
	}
	return nil
}

// killCgroup kills all processes of a folder and of the folders below it. A kernel
// before Linux 5.14 cannot: then the other ways of finding them are left.
func killCgroup(path string) {
	if path != "" {
		_ = writeGroup(filepath.Join(path, "cgroup.kill"), "1")
	}
}

// isPopulated reports whether a process is in a folder or below it.
func isPopulated(path string) bool {
	if path == "" {
		return false
	}
	n, ok := readNumber(filepath.Join(path, "cgroup.events"), "populated")
	return ok && n > 0
}

// processesIn are the processes of a folder, as far as this process may see them.
func processesIn(path string) []int {
	if path == "" {
		return nil
	}
	data, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
	if err != nil {
		return nil
	}
	var list []int
	for _, text := range strings.Fields(string(data)) {
		if pid, err := strconv.Atoi(text); err == nil {
			list = append(list, pid)
		}
	}
	return list
}

// emptyCgroup kills the processes of a folder until there are none. Those that descend
// from the shim have ended before; others were moved into the folder by somebody.
func emptyCgroup(path string) {
	for isPopulated(path) {
		killCgroup(path)
		time.Sleep(killWait)
	}
}

// removeCgroup removes the cgroup of a member once nothing runs in it. A folder that the
// shim itself is in stays: its maker removes it after the shim.
func removeCgroup(cgroup string) {
	if cgroup == "" {
		return
	}
	for _, path := range []string{workFolder(cgroup), filepath.Join(cgroup, ownGroup), cgroup} {
		_ = os.Remove(path)
	}
}
