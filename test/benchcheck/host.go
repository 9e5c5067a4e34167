package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// host is where and of which commit this sitting measures.
type host struct {
	machine string  // hardware and software, as the table of machines has it
	load    float64 // of the last minute before the sitting
	head    string  // commit; "" without a git history
	dirty   bool    // files differ from the commit
}

// fileSystems are the names of the magic numbers of statfs(2).
var fileSystems = map[int64]string{0xef53: "ext4", 0x58465342: "xfs", 0x9123683e: "btrfs", 0x01021994: "tmpfs", 0x794c7630: "overlayfs"}

var (
	model  = regexp.MustCompile(`(?m)^model name\s*:\s*(.+)$`)
	memory = regexp.MustCompile(`(?m)^MemTotal:\s*([0-9]+) kB$`)
)

// look reads the host's files and asks git.
func look(root string) (h host, err error) {
	read := func(name string) string {
		text, failed := os.ReadFile(name)
		err = errors.Join(err, failed)
		return string(text)
	}
	first := func(form *regexp.Regexp, text string) string {
		if m := form.FindStringSubmatch(text); m != nil {
			return strings.TrimSpace(m[1])
		}
		return "?"
	}
	kib, _ := strconv.ParseFloat(first(memory, read("/proc/meminfo")), 64) // 0 GiB says that it is unknown
	kernel, _, _ := strings.Cut(read("/proc/sys/kernel/osrelease"), "-")
	var disk syscall.Statfs_t
	err = errors.Join(err, syscall.Statfs(os.TempDir(), &disk))
	kind, known := fileSystems[int64(disk.Type)]
	if !known {
		kind = fmt.Sprintf("file system %#x", disk.Type)
	}
	h.machine = fmt.Sprintf("%d cores of %s, %.0f GiB, %s, Linux %s, %s", runtime.NumCPU(), first(model, read("/proc/cpuinfo")), kib/(1<<20), kind, strings.TrimSpace(kernel), runtime.Version())
	h.load, _ = strconv.ParseFloat(strings.Fields(read("/proc/loadavg") + " 0")[0], 64)
	if err != nil {
		return h, err
	}
	if hash, failed := git(root, "rev-parse", "--short=8", "HEAD"); failed == nil {
		changed, failed := git(root, "status", "--porcelain", "--", ":!docs/benchmarks.md")
		h.head, h.dirty = hash, failed != nil || changed != ""
	}
	return h, nil
}

// column is the cell of a row's machine.
func (h host) column(letter string) string {
	if h.load < 1 {
		return letter
	}
	return fmt.Sprintf("%s, load %.0f", letter, h.load)
}

func git(root string, arguments ...string) (string, error) {
	output, err := exec.Command("git", append([]string{"-C", root}, arguments...)...).Output()
	return strings.TrimSpace(string(output)), err
}
