package shim

import (
	_ "embed" // the lists of system calls
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// This file has the system calls of commands in containers: those that the default profile of
// Docker and of containers/common permits to a container without capabilities, and in addition
// the calls about memory nodes. io_uring, keys, mounts, namespaces, tracing of the kernel and
// calls of administrators are not among these.

type ociSeccomp struct {
	Default       string       `json:"defaultAction"`
	Errno         uint         `json:"defaultErrnoRet"`
	Architectures []string     `json:"architectures"`
	Calls         []ociSyscall `json:"syscalls"`
}

type ociSyscall struct {
	Names  []string        `json:"names"`
	Action string          `json:"action"`
	Errno  *uint           `json:"errnoRet,omitempty"`
	Args   []ociSyscallArg `json:"args,omitempty"`
}

type ociSyscallArg struct {
	Index uint   `json:"index"`
	Value uint64 `json:"value"`
	Two   uint64 `json:"valueTwo,omitempty"`
	Op    string `json:"op"`
}

// permitted are the system calls without a condition. The tool skips calls of other
// architectures and of later kernels.
//
//go:embed calls_permitted.txt
var permitted string

// refused are calls with the answer EPERM, as without the rights. All others have ENOSYS, as of a
// kernel without the call: programs have another way then.
//
//go:embed calls_refused.txt
var refused string

// newNamespaces are the flags of clone for namespaces.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// architectures are the programs of a processor, in the words of libseccomp.
var architectures = map[string][]string{
	"amd64": {"SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"},
	"arm64": {"SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM"},
}

const (
	allow = "SCMP_ACT_ALLOW"
	fail  = "SCMP_ACT_ERRNO"
)

// seccomp is the filter of a container; nil on other processors.
func seccomp() *ociSeccomp {
	known := architectures[runtime.GOARCH]
	if known == nil {
		return nil
	}
	eperm, enosys := uint(unix.EPERM), uint(unix.ENOSYS)
	s := &ociSeccomp{Default: fail, Errno: enosys, Architectures: known, Calls: []ociSyscall{
		{Names: strings.Fields(permitted), Action: allow},
		{Names: strings.Fields(refused), Action: fail, Errno: &eperm},
		{Names: []string{"clone"}, Action: allow, Args: []ociSyscallArg{{Index: 0, Value: newNamespaces, Two: 0, Op: "SCMP_CMP_MASKED_EQ"}}},
		{Names: []string{"clone3"}, Action: fail, Errno: &enosys}, // the flags are in memory: glibc goes back to clone
		{Names: []string{"socket"}, Action: allow, Args: []ociSyscallArg{{Index: 0, Value: unix.AF_VSOCK, Op: "SCMP_CMP_NE"}}},
	}}
	for _, p := range []uint64{0, 0x8, 0x20000, 0x20008, 0xffffffff} { // Linux, 32 bits, and the question
		s.Calls = append(s.Calls, ociSyscall{Names: []string{"personality"}, Action: allow, Args: []ociSyscallArg{{Index: 0, Value: p, Op: "SCMP_CMP_EQ"}}})
	}
	return s
}
