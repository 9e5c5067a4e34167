package grant

import (
	"cmp"
	"fmt"
	"time"

	"github.com/musterd/muster/resource"
)

// This file holds the work of a transaction: the processes of its members.

// Start has an agent start members of a transaction whose record is COMMITTED and
// whose agents all hold their members. The answer, and every change after it, is
// Worked. An agent starts each member at most once per Restart.
type Start struct {
	Tx    resource.TxID
	Epoch resource.Epoch
	// Args are the command and its arguments; none is the command of Bundle.
	Args []string
	// Env are NAME=VALUE, in order; a later one wins.
	Env []string
	// Dir is the working directory; "" is the agent's choice.
	Dir string
	// Rootfs is the folder of the root file system that the command runs in; "" is the host's.
	Rootfs string
	// Bundle is the folder of an OCI bundle that the command runs in, in place of Rootfs.
	Bundle string
	// Mounts are folders and files of the host that the root file system has.
	Mounts []Mount
	// First is the index in the job of the unit's member 0.
	First int
	// Rank is the rank of the unit's member 0 among Hosts: 0 but for a unit that replaces a
	// member of a gang.
	Rank int
	// Hosts are the addresses of the hosts of all members of the unit, or of the gang, by
	// rank; "" for a member that waits for a place.
	Hosts []string
	// Port is for the rendezvous of the members, on the host of member 0.
	Port int
	// Notice is the signal that announces the end; the zero value for none.
	Notice Notice
	// CPULimit and MemoryLimit are the greatest amounts of each member where they are
	// greater than the requests; 0 stands for the request.
	CPULimit    resource.Millicores
	MemoryLimit resource.Bytes
	// Stdin: sessions that attach send the standard input of the command; otherwise it is
	// empty. TTY: the command has a terminal.
	Stdin, TTY bool
	// Members are those on the agent's host, ascending by Index.
	Members []StartMember
}

// HasContainer reports whether the command runs in a root file system of its own.
func (s *Start) HasContainer() bool { return s.Rootfs != "" || s.Bundle != "" }

// Mount is a folder or a file of a host at a place in a root file system. Both paths are
// absolute and clean.
type Mount struct {
	Source, Target string
	ReadOnly       bool
}

// MaxMounts bounds the mounts of a Start.
const MaxMounts = 32

// Notice is a signal that announces the end of work to its members. Each start of a
// member gets the signal at most once.
type Notice struct {
	// Signal is its number, 1 to 64; 0 for none.
	Signal int
	// Before is the time from the signal to the end, at least a millisecond.
	Before time.Duration
	// After is the time from the receipt of the Start to the signal; 0 where no end is
	// known, or the end is too near: an eviction alone sends the signal then.
	After time.Duration
}

// MaxNotice bounds both times of a Notice.
const MaxNotice = 100 * 365 * 24 * time.Hour

// StartMember is one start of one member.
type StartMember struct{ Index, Restart int }

func (Start) command() {}

// WorkPhase is the stage of a member's work.
type WorkPhase uint8

// The phases.
const (
	WorkStarting WorkPhase = iota + 1 // attached; a process may exist
	WorkRunning
	WorkEnded // nothing of it runs, and the end is durable
)

// String returns the phase's name.
func (p WorkPhase) String() string {
	switch p {
	case WorkStarting:
		return "starting"
	case WorkRunning:
		return "running"
	case WorkEnded:
		return "ended"
	}
	return fmt.Sprintf("WorkPhase(%d)", uint8(p))
}

// WorkState is how far the work of one member is.
type WorkState struct {
	Member  int
	Restart int
	Phase   WorkPhase
	// Code, Signal, Reason and Message are set at the end. Only the reason Completed
	// with code 0 is a success.
	Code    int
	Signal  int
	Reason  string
	Message string
	// Signaled: the member has got the signal of Start.Notice.
	Signaled bool
	// EpilogFault says how the host's epilog after the member has failed; "" for not at all.
	EpilogFault string
	// Use is the measured use, nil where nothing is measured yet. It is immutable.
	Use *WorkUse
}

// UnknownKills stands for a number of kills that nobody counts, MaxKills bounds the
// number.
const (
	UnknownKills = -1
	MaxKills     = 1 << 30
)

// WorkUse is the measured use of a member's work since its start. Sums and peaks never
// fall.
type WorkUse struct {
	// CPU is the time of processors.
	CPU time.Duration
	// Memory is in use now, PeakMemory is the most.
	Memory, PeakMemory resource.Bytes
	// OOMKills are the processes that the kernel has killed for lack of memory in the
	// member's cgroup; UnknownKills without a cgroup.
	OOMKills int
	// Devices are ascending by UUID.
	Devices []DeviceUse
}

// DeviceUse is the use of one device or MIG instance by a member.
type DeviceUse struct {
	UUID string
	// Busy is the time during which the device computed: the sum of part times time.
	// Measured is the time that Busy is a part of: while the driver has reported the use
	// of the device, and the member was alone on it.
	Busy, Measured     time.Duration
	Memory, PeakMemory resource.Bytes
}

// Compare orders states by member and restart.
func (s WorkState) Compare(o WorkState) int {
	return cmp.Or(cmp.Compare(s.Member, o.Member), cmp.Compare(s.Restart, o.Restart))
}

// WorkCompleted is the reason of an end that the command itself has chosen.
const WorkCompleted = "Completed"

// PrologFailed is the reason of a member that was not started because the prolog of its
// host has failed.
const PrologFailed = "PrologFailed"

// HostFault says how a script of the host has failed around the member; "" for not at all.
func (s WorkState) HostFault() string {
	if s.Phase == WorkEnded && s.Reason == PrologFailed {
		return s.Message
	}
	return s.EpilogFault
}

// IsSuccess reports whether the member has done its work.
func (s WorkState) IsSuccess() bool {
	return s.Phase == WorkEnded && s.Reason == WorkCompleted && s.Code == 0
}

// Worked is the state of a transaction's work on one node.
type Worked struct {
	Node   resource.NodeID
	Tx     resource.TxID
	States []WorkState // ascending
}

// NodeID returns Node.
func (e Worked) NodeID() resource.NodeID { return e.Node }
