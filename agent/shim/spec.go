// Package shim is the supervisor of one member's process. It starts the command,
// keeps the output, passes signals on, and writes down how the command ended and the
// processor time and memory that it took. A shim outlives the agent that started it: its
// truth is a folder, which any later agent reads, and in which the agent notes the use of
// the devices. A command with a root file system of its own runs in a container that the shim
// has the host's crun set up. It decides nothing about grants.
//
// The package imports the standard library and x/sys alone, and is small on
// purpose: a host runs one shim for each member.
package shim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"
)

// version is the version of all files of a folder.
const version = 1

// Bounds of a Spec.
const (
	// MaxSpec bounds the file of a spec, in bytes.
	MaxSpec = 1 << 20
	// maxRecord bounds every other file of a folder that is read, in bytes, but those of
	// a Use.
	maxRecord = 64 << 10
)

// DefaultLogBytes and DefaultLogFiles are the output that is kept of one member.
const (
	DefaultLogBytes = 16 << 20 // of one file
	DefaultLogFiles = 4
)

// Spec says what is started, and how.
type Spec struct {
	Version int `json:"version"`
	// Args are the command and its arguments; the first is looked up in the PATH of
	// Env unless it has a slash. None is the command of the container's bundle.
	Args []string `json:"args"`
	// Env is the whole environment, as NAME=VALUE.
	Env []string `json:"env,omitempty"`
	// Dir is the working directory, an absolute path; "" is that of the container's image.
	Dir string `json:"dir"`
	// AnyDir: without a directory at Dir the command begins in /.
	AnyDir bool `json:"anyDir,omitempty"`
	// User is the user that the command runs as; nil is the shim's own.
	User *User `json:"user,omitempty"`
	// CPUs are the CPUs that the command may run on; none means no restriction.
	CPUs []int `json:"cpus,omitempty"`
	// NUMANodes are the memory nodes that the command takes its memory from as long as
	// they have some; none means no preference.
	NUMANodes []int `json:"numaNodes,omitempty"`
	// Cgroup is a folder of the unified hierarchy that is the member's alone: the command
	// is started in a folder below it. "" is the shim's own cgroup.
	Cgroup string `json:"cgroup,omitempty"`
	// Limits are the files of the command's cgroup that are written before the start, by
	// name, such as memory.max. A limit that cannot be written keeps the command from
	// starting.
	Limits map[string]string `json:"limits,omitempty"`
	// Devices are the UUIDs of the GPUs and MIG instances of the member. The agent
	// measures their use; the shim does nothing with them.
	Devices []string `json:"devices,omitempty"`
	// Container has the command run in a root file system of its own; nil in the host's.
	Container *Container `json:"container,omitempty"`
	// Notice is a signal that announces the end of the command; nil for none.
	Notice *Notice `json:"notice,omitempty"`
	// Stdin: sessions that attach send the command's standard input. Otherwise it is empty.
	Stdin bool `json:"stdin,omitempty"`
	// TTY: the command has a terminal.
	TTY bool `json:"tty,omitempty"`
	// LogBytes is the size at which a log file is followed by the next one, and
	// LogFiles how many are kept; 0 is the default.
	LogBytes int64 `json:"logBytes,omitempty"`
	LogFiles int   `json:"logFiles,omitempty"`
}

// User is a user by numbers.
type User struct {
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	Groups []uint32 `json:"groups,omitempty"`
}

// ParseSpec reads a spec. The error names the field.
func ParseSpec(data []byte) (Spec, error) {
	s, err := decode[Spec](data, MaxSpec)
	switch {
	case err != nil:
		return Spec{}, fmt.Errorf("spec: %w", err)
	case s.Version != version:
		return Spec{}, fmt.Errorf("spec: version %d, this program reads version %d", s.Version, version)
	case len(s.Args) == 0 && !s.hasBundle() || len(s.Args) > 0 && s.Args[0] == "":
		return Spec{}, errors.New("spec: args: no command")
	case !filepath.IsAbs(s.Dir) && (s.Dir != "" || s.Container == nil):
		return Spec{}, fmt.Errorf("spec: dir %q: want an absolute path", s.Dir)
	case s.LogBytes < 0 || s.LogFiles < 0:
		return Spec{}, fmt.Errorf("spec: logBytes %d or logFiles %d is negative", s.LogBytes, s.LogFiles)
	case s.Cgroup != "" && !filepath.IsAbs(s.Cgroup):
		return Spec{}, fmt.Errorf("spec: cgroup %q: want an absolute path", s.Cgroup)
	}
	if err := errors.Join(s.Notice.check(), checkLimits(s.Cgroup, s.Limits), s.Container.check()); err != nil {
		return Spec{}, err
	}
	for i, text := range append(append([]string(nil), s.Args...), s.Env...) {
		if strings.ContainsRune(text, 0) {
			return Spec{}, fmt.Errorf("spec: text %d of args and env has a zero byte", i)
		}
	}
	if err := checkVariables("env", s.Env); err != nil {
		return Spec{}, err
	}
	for _, cpu := range s.CPUs {
		if cpu < 0 || cpu >= maxCPU {
			return Spec{}, fmt.Errorf("spec: cpus: %d is outside 0..%d", cpu, maxCPU-1)
		}
	}
	for _, node := range s.NUMANodes {
		if node < 0 || node >= maxCPU {
			return Spec{}, fmt.Errorf("spec: numaNodes: %d is outside 0..%d", node, maxCPU-1)
		}
	}
	return s, nil
}

// checkVariables judges a list of NAME=VALUE.
func checkVariables(field string, list []string) error {
	for _, text := range list {
		if name, _, ok := strings.Cut(text, "="); !ok || name == "" || strings.ContainsRune(text, 0) {
			return fmt.Errorf("spec: %s %q: want NAME=VALUE", field, text)
		}
	}
	return nil
}

// hasBundle reports whether the container has a command of its own.
func (s *Spec) hasBundle() bool { return s.Container != nil && s.Container.Bundle != "" }

func (s *Spec) logBytes() int64 {
	if s.LogBytes == 0 {
		return DefaultLogBytes
	}
	return s.LogBytes
}

func (s *Spec) logFiles() int {
	if s.LogFiles == 0 {
		return DefaultLogFiles
	}
	return s.LogFiles
}

// Process names a process beyond the reuse of its number.
type Process struct {
	Version int `json:"version"`
	PID     int `json:"pid"`
	// Start is the process's start time in clock ticks since the boot of BootID.
	Start  uint64 `json:"start"`
	BootID string `json:"bootID"`
}

// ParseProcess reads what a shim wrote about itself or its command.
func ParseProcess(data []byte) (Process, error) {
	p, err := decode[Process](data, maxRecord)
	switch {
	case err != nil:
		return Process{}, fmt.Errorf("process: %w", err)
	case p.Version != version:
		return Process{}, fmt.Errorf("process: version %d, this program reads version %d", p.Version, version)
	case p.PID < 2 || p.BootID == "":
		return Process{}, fmt.Errorf("process: pid %d of boot %q: want a process and a boot id", p.PID, p.BootID)
	}
	return p, nil
}

// Reason says how a command ended.
type Reason string

// The reasons.
const (
	// Completed: the command ended by itself, with a code or by a signal.
	Completed Reason = "Completed"
	// Stopped: the command ended after it was asked to.
	Stopped Reason = "Stopped"
	// Killed: the command did not end within its grace.
	Killed Reason = "Killed"
	// NotStarted: there was no process.
	NotStarted Reason = "NotStarted"
	// PrologFailed: there was no process, since the host's prolog has failed. It is no
	// fault of the command.
	PrologFailed Reason = "PrologFailed"
	// SupervisorLost: the shim ended before its command. Nothing says how the
	// command ended, and what was left of it was killed.
	SupervisorLost Reason = "SupervisorLost"
	// NodeRestarted: the host was started anew. Nothing says how the command ended.
	NodeRestarted Reason = "NodeRestarted"
)

var reasons = map[Reason]bool{Completed: true, Stopped: true, Killed: true, NotStarted: true, PrologFailed: true, SupervisorLost: true, NodeRestarted: true}

// Exit is how a command ended.
type Exit struct {
	Version int `json:"version"`
	// Code is the exit code; 128 + Signal where a signal ended the command, and
	// UnknownCode where the code is unknown.
	Code   int    `json:"code"`
	Signal int    `json:"signal,omitempty"`
	Reason Reason `json:"reason"`
	// Message is for people, where the reason needs one.
	Message string `json:"message,omitempty"`
	// At is the time of the host's clock, for people.
	At time.Time `json:"at"`
}

// UnknownCode is the code of an end that nobody saw. It is never 0: what is unknown
// is no success.
const UnknownCode = 255

// IsSuccess reports whether the command has done its work.
func (e Exit) IsSuccess() bool { return e.Reason == Completed && e.Code == 0 }

// ParseExit reads what a shim, or an agent in its place, wrote about the end.
func ParseExit(data []byte) (Exit, error) {
	e, err := decode[Exit](data, maxRecord)
	switch {
	case err != nil:
		return Exit{}, fmt.Errorf("exit: %w", err)
	case e.Version != version:
		return Exit{}, fmt.Errorf("exit: version %d, this program reads version %d", e.Version, version)
	case !reasons[e.Reason]:
		return Exit{}, fmt.Errorf("exit: reason %q is not known", e.Reason)
	case e.Code < 0 || e.Code > 255 || e.Signal < 0 || e.Signal > 64:
		return Exit{}, fmt.Errorf("exit: code %d and signal %d: want 0..255 and 0..64", e.Code, e.Signal)
	case e.Code == 0 && (e.Signal != 0 || e.Reason == SupervisorLost || e.Reason == NodeRestarted || e.Reason == NotStarted || e.Reason == PrologFailed):
		return Exit{}, fmt.Errorf("exit: code 0 with signal %d and reason %s", e.Signal, e.Reason)
	}
	return e, nil
}

// decode reads one JSON value without unknown fields.
func decode[T any](data []byte, most int) (T, error) {
	var value, zero T
	if len(data) > most {
		return zero, fmt.Errorf("%d bytes, want at most %d", len(data), most)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&value); err != nil {
		return zero, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return zero, errors.New("data follows the value")
	}
	return value, nil
}
