package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// This file is about work that a launcher of its own has started on the resources of a
// member. Such work has a folder like other work, and no shim.

const attachedFile = "attached"

// MaxAttached bounds the processes and the cgroups that launchers attach to one member,
// maxRoots the processes that a folder notes: an attached process that ends leaves the
// processes that it has started.
const (
	MaxAttached = 64
	maxRoots    = 512
	// maxPath bounds the path of a cgroup, in bytes, and maxAttachedFile the file.
	maxPath         = 4096
	maxAttachedFile = 256*maxRoots + 2*maxPath*MaxAttached
)

// Attached is the work of a launcher of its own.
type Attached struct {
	Version int `json:"version"`
	// Processes count with all their descendants that one of the looks finds, ascending.
	Processes []Process `json:"processes,omitempty"`
	// Cgroups count with all processes in them and below them.
	Cgroups []Group `json:"cgroups,omitempty"`
	// Code is the exit code that the launcher has reported; nil while there is none.
	Code *int `json:"code,omitempty"`
	// Before is what the processes and cgroups had spent when they were attached: that is no
	// use of the member.
	Before Spent `json:"before,omitzero"`
}

// Group names a folder of the unified hierarchy beyond the reuse of its path.
type Group struct {
	Path string `json:"path"`
	// ID is the number of the folder, which the kernel uses once between two boots.
	ID uint64 `json:"id"`
	// BootID is the kernel's boot.
	BootID string `json:"bootID"`
}

// ParseAttached reads an agent's note. The error names the field.
func ParseAttached(data []byte) (Attached, error) {
	a, err := decode[Attached](data, maxAttachedFile)
	switch {
	case err != nil:
		return Attached{}, fmt.Errorf("attached: %w", err)
	case a.Version != version:
		return Attached{}, fmt.Errorf("attached: version %d, this program reads version %d", a.Version, version)
	case len(a.Processes) > maxRoots || len(a.Cgroups) > MaxAttached:
		return Attached{}, fmt.Errorf("attached: %d processes and %d cgroups, want at most %d and %d", len(a.Processes), len(a.Cgroups), maxRoots, MaxAttached)
	case a.Code != nil && (*a.Code < 0 || *a.Code > 255):
		return Attached{}, fmt.Errorf("attached: code %d is outside 0..255", *a.Code)
	}
	if a.Before.CPUMillis < 0 || a.Before.OOMKills < 0 || a.Before.PeakBytes < 0 {
		return Attached{}, fmt.Errorf("attached: before: %+v: want nothing negative", a.Before)
	}
	if len(a.Processes) == 0 {
		a.Processes = nil
	}
	if len(a.Cgroups) == 0 {
		a.Cgroups = nil
	}
	for _, p := range a.Processes {
		if p.PID < 2 || p.BootID == "" {
			return Attached{}, fmt.Errorf("attached: pid %d of boot %q: want a process and a boot id", p.PID, p.BootID)
		}
	}
	for _, g := range a.Cgroups {
		if !filepath.IsAbs(g.Path) || filepath.Clean(g.Path) != g.Path || len(g.Path) > maxPath || strings.ContainsRune(g.Path, 0) || g.BootID == "" {
			return Attached{}, fmt.Errorf("attached: cgroup %.80q of boot %q: want an absolute path and a boot id", g.Path, g.BootID)
		}
	}
	return a, nil
}

// WriteAttached notes durably what is attached.
func (f Folder) WriteAttached(a Attached) error {
	a.Version = version
	return f.write(attachedFile, a)
}

// Attached returns what is attached; fs.ErrNotExist where nothing is.
func (f Folder) Attached() (Attached, error) {
	return read(f, attachedFile, maxAttachedFile, ParseAttached)
}

// ErrNoProcess is wrapped by Judge where there is no such process.
var ErrNoProcess = errors.New("there is no such process")

// Judge identifies a live process and its user. A descriptor of the process is open
// meanwhile, so both are of the same process.
func Judge(pid int, bootID string) (p Process, uid uint32, err error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil { // a thread has no descriptor either
		return Process{}, 0, fmt.Errorf("pid %d: %w: %w", pid, ErrNoProcess, err)
	}
	defer unix.Close(fd)
	path := "/proc/" + strconv.Itoa(pid)
	if p, err = Identify(pid, bootID); err == nil {
		uid, err = ownerOf(path)
	}
	if err != nil || hasEnded(fd) { // errors.Join leaves nil out
		return Process{}, 0, fmt.Errorf("pid %d: %w", pid, errors.Join(ErrNoProcess, err))
	}
	return p, uid, nil
}

func ownerOf(path string) (uint32, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, fmt.Errorf("%s has no owner", path)
	}
	return stat.Uid, nil
}

// hasEnded reports whether the process of a descriptor has ended.
func hasEnded(fd int) bool {
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, 0)
	return err == nil && n > 0
}

// JudgeGroup identifies a folder of the unified hierarchy and its owner.
func JudgeGroup(path, bootID string) (g Group, uid uint32, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return Group{}, 0, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() {
		return Group{}, 0, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	}
	return Group{Path: path, ID: stat.Ino, BootID: bootID}, stat.Uid, nil
}

// isThere reports whether the folder is still the same one.
func (g Group) isThere(bootID string) bool {
	now, _, err := JudgeGroup(g.Path, bootID)
	return err == nil && now == g
}

// Watch looks at the attached work of one member. It has one owner.
type Watch struct {
	bootID string
	known  map[Process]bool // seen alive at the last look
	meter  meter
}

// NewWatch returns a Watch for the kernel's present boot.
func NewWatch(bootID string) *Watch { return &Watch{bootID: bootID} }

// Look is the state of attached work at one moment.
type Look struct {
	// Alive are the processes, ascending.
	Alive []Process
	// Populated: a cgroup has live processes, also where none of them can be seen.
	Populated bool
	// Roots are the processes to note in the place of Attached.Processes: those that
	// live, and those whose ancestors have all ended.
	Roots []Process
	// MemoryBytes is the memory in use, and Spent all that the work has spent, as far as the
	// looks of one Watch have found it. HasKills: Spent.OOMKills counts, by a cgroup.
	// HasPeak: Spent.PeakBytes does, of the one cgroup that has all processes.
	MemoryBytes       int64
	Spent             Spent
	HasKills, HasPeak bool
}

// Runs reports whether anything of the work is alive.
func (l Look) Runs() bool { return l.Populated || len(l.Alive) > 0 }

// Look finds the processes of attached work in a sample.
func (w *Watch) Look(a Attached, sample Sample) Look {
	alive := map[int]Process{}
	counted := map[Process]stat{}
	add := func(pid int) {
		s, ok := sample.all[pid]
		if !ok || pid == os.Getpid() {
			return
		}
		p := Process{Version: version, PID: pid, Start: s.start, BootID: w.bootID}
		counted[p] = s
		if s.state != 'Z' && s.state != 'X' {
			alive[pid] = p
		}
	}
	addTree := func(p Process) {
		s, ok := sample.all[p.PID]
		if !ok || s.start != p.Start || p.BootID != w.bootID {
			return
		}
		add(p.PID) // of a zombie the descendants count alone
		for _, pid := range sample.Below(p.PID) {
			add(pid)
		}
	}
	var look Look
	for _, p := range a.Processes {
		addTree(p)
	}
	for p := range w.known {
		addTree(p)
	}
	w.known = map[Process]bool{}
	for pid, p := range alive {
		w.known[p] = true
		if _, below := alive[sample.all[pid].parent]; !below || slices.Contains(a.Processes, p) {
			look.Roots = append(look.Roots, p)
		}
	}
	slices.SortFunc(look.Roots, func(a, b Process) int { return a.PID - b.PID })
	look.Roots = look.Roots[:min(len(look.Roots), maxRoots)]
	for _, g := range a.Cgroups {
		if !g.isThere(w.bootID) || !isPopulated(g.Path) {
			continue
		}
		look.Populated = true
		for _, pid := range processesBelow(g.Path) {
			add(pid)
		}
	}
	for _, p := range alive {
		look.Alive = append(look.Alive, p)
	}
	slices.SortFunc(look.Alive, func(a, b Process) int { return a.PID - b.PID })
	w.measure(&look, a, counted)
	return look
}

// Signal sends a signal to a process, and to no other that has its number by now. The
// error is nil where the process has ended.
func (p Process) Signal(s syscall.Signal) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	} else if err != nil {
		return fmt.Errorf("signal %d to process %d: %w", s, p.PID, err)
	}
	defer unix.Close(fd)
	if stat, err := readStat(p.PID); err != nil || stat.start != p.Start {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, s, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal %d to process %d: %w", s, p.PID, err)
	}
	return nil
}

// KillGroups kills all processes of the attached cgroups, as far as this process may.
func (a Attached) KillGroups(bootID string) {
	for _, g := range a.Cgroups {
		if g.isThere(bootID) {
			killCgroup(g.Path)
		}
	}
}

// processesBelow are the processes of a folder and of all folders below it.
func processesBelow(path string) []int {
	list := processesIn(path)
	entries, err := os.ReadDir(path)
	if err != nil {
		return list
	}
	for _, e := range entries {
		if e.IsDir() {
			list = append(list, processesBelow(filepath.Join(path, e.Name()))...)
		}
	}
	return list
}

// Parent is the parent of a process.
func Parent(pid int) (int, error) {
	stat, err := readStat(pid)
	return stat.parent, err
}
