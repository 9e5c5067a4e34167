package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// node is a device of which a program may open every file.
type node struct {
	block        bool
	major, minor int32 // minor -1: all of the major
}

// standard are the devices that every program needs, as those that systemd's
// DevicePolicy=closed allows: null, zero, full, random, urandom, tty, ptmx, and
// pseudoterminals.
var standard = []node{
	{major: 1, minor: 3}, {major: 1, minor: 5}, {major: 1, minor: 7}, {major: 1, minor: 8}, {major: 1, minor: 9},
	{major: 5, minor: 0}, {major: 5, minor: 2},
	{major: 136, minor: -1}, {major: 137, minor: -1}, {major: 138, minor: -1}, {major: 139, minor: -1},
	{major: 140, minor: -1}, {major: 141, minor: -1}, {major: 142, minor: -1}, {major: 143, minor: -1},
}

// nodeOf reads the numbers of a device file.
func nodeOf(path string) (node, error) {
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		return node{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	kind := stat.Mode & unix.S_IFMT
	if kind != unix.S_IFCHR && kind != unix.S_IFBLK {
		return node{}, fmt.Errorf("%s is no device", path)
	}
	return node{kind == unix.S_IFBLK, int32(unix.Major(stat.Rdev)), int32(unix.Minor(stat.Rdev))}, nil
}

// allowDevices closes all devices to the processes of a cgroup but the standard ones and
// those of the files at paths. A file that is missing is left out. The rules go with the
// cgroup. A repeated call changes the rules.
func allowDevices(cgroup string, paths []string) error {
	allowed := append([]node(nil), standard...)
	for _, path := range paths {
		n, err := nodeOf(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		default:
			allowed = append(allowed, n)
		}
	}
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.CGroupDevice, License: "Apache-2.0", Instructions: deviceRules(allowed)})
	if err != nil {
		return err
	}
	defer program.Close()
	dir, err := os.Open(cgroup)
	if err != nil {
		return err
	}
	defer dir.Close()
	return link.RawAttachProgram(link.RawAttachProgramOptions{Target: int(dir.Fd()), Program: program, Attach: ebpf.AttachCGroupDevice})
}

// deviceRules is the program that the kernel asks at each open and mknod of a device:
// struct bpf_cgroup_dev_ctx of linux/bpf.h in, 1 (allowed) or 0 out.
func deviceRules(allowed []node) asm.Instructions {
	const kindMask = 0xffff // the lower half of access_type is the kind, the upper half the access
	rules := asm.Instructions{
		asm.LoadMem(asm.R2, asm.R1, 0, asm.Word),
		asm.And.Imm32(asm.R2, kindMask),
		asm.LoadMem(asm.R3, asm.R1, 4, asm.Word), // major
		asm.LoadMem(asm.R4, asm.R1, 8, asm.Word), // minor
		asm.Mov.Imm(asm.R0, 1),
	}
	for i, n := range allowed {
		kind := int32(2) // BPF_DEVCG_DEV_CHAR
		if n.block {
			kind = 1
		}
		next := fmt.Sprintf("rule_%d", i+1)
		rules = append(rules, asm.JNE.Imm(asm.R2, kind, next), asm.JNE.Imm(asm.R3, n.major, next))
		if n.minor >= 0 {
			rules = append(rules, asm.JNE.Imm(asm.R4, n.minor, next))
		}
		rules = append(rules, asm.Return(), asm.Mov.Imm(asm.R0, 1).WithSymbol(next))
	}
	return append(rules, asm.Mov.Imm(asm.R0, 0), asm.Return())
}
