package shim

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Marker is the variable that names the folder in the environment of the command and
// of what the command starts.
const Marker = "MUSTER_RUN"

// maxCPU bounds the ids of CPUs: the size of the kernel's set in x/sys.
const maxCPU = 1024

// Identify returns the identity of a live process.
func Identify(pid int, bootID string) (Process, error) {
	stat, err := readStat(pid)
	if err != nil {
		return Process{}, err
	}
	return Process{Version: version, PID: pid, Start: stat.start, BootID: bootID}, nil
}

// IsAlive reports whether the process exists and has not ended.
func (p Process) IsAlive(bootID string) bool {
	if p.BootID != bootID {
		return false
	}
	stat, err := readStat(p.PID)
	return err == nil && stat.start == p.Start && stat.state != 'Z' && stat.state != 'X'
}

// BootID is the id of the kernel's present boot.
func BootID() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(data)), nil
}

// stat is the part of /proc/PID/stat that is of use here.
type stat struct {
	state                  byte
	parent, group, session int
	start                  uint64
	// time is the processor time in ticks, childTime that of children that have ended;
	// pages are resident.
	time, childTime uint64
	pages           int64
}

func readStat(pid int) (stat, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, err
	}
	return parseStat(data)
}

// parseStat reads proc_pid_stat(5). The command's name, in brackets, may have blanks
// and brackets itself.
func parseStat(data []byte) (stat, error) {
	end := bytes.LastIndexByte(data, ')')
	if end < 0 {
		return stat{}, errors.New("stat: no name in brackets")
	}
	fields := strings.Fields(string(data[end+1:]))
	if len(fields) < 22 || len(fields[0]) != 1 {
		return stat{}, fmt.Errorf("stat: %d fields after the name, want at least 22", len(fields))
	}
	s := stat{state: fields[0][0]}
	var err1, err2, err3 error
	s.parent, err1 = strconv.Atoi(fields[1])
	s.group, err2 = strconv.Atoi(fields[2])
	s.session, err3 = strconv.Atoi(fields[3])
	if err := errors.Join(err1, err2, err3); err != nil {
		return stat{}, err
	}
	if s.start, err1 = strconv.ParseUint(fields[19], 10, 64); err1 != nil {
		return stat{}, err1
	}
	for i, to := range map[int]*uint64{11: &s.time, 12: &s.time, 13: &s.childTime, 14: &s.childTime} {
		n, err := strconv.ParseUint(fields[i], 10, 56)
		if err != nil {
			return stat{}, fmt.Errorf("stat: field %d: %w", i+3, err)
		}
		*to += n
	}
	s.pages, err1 = strconv.ParseInt(fields[21], 10, 48)
	return s, err1
}

// ignores reports whether a process ignores a signal.
func ignores(pid int, s unix.Signal) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(data), "\nSigIgn:\t")
	text, _, _ := strings.Cut(rest, "\n")
	set, err := strconv.ParseUint(text, 16, 64)
	return err == nil && set>>(s-1)&1 == 1
}

// processes lists the numbers of all processes.
func processes() ([]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return nil, err
	}
	var list []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			list = append(list, pid)
		}
	}
	slices.Sort(list)
	return list, nil
}

// descendants lists the live processes below a process. A subreaper has all that
// were ever started below it.
func descendants(of int) []int {
	all, err := processes()
	if err != nil {
		return nil
	}
	parents := map[int]int{}
	for _, pid := range all {
		if s, err := readStat(pid); err == nil && s.state != 'Z' && s.state != 'X' {
			parents[pid] = s.parent
		}
	}
	var list []int
	for _, pid := range all {
		for at, steps := parents[pid], 0; at > 1 && steps < len(all); at, steps = parents[at], steps+1 {
			if at == of {
				list = append(list, pid)
				break
			}
		}
	}
	return list
}

// remains lists the live processes that a folder's lost shim has left: those of the
// shim's session, and those that name the folder in their environment.
func (f Folder) remains(shim Process, bootID string) []int {
	if shim.BootID != bootID {
		return nil
	}
	all, err := processes()
	if err != nil {
		return nil
	}
	marker := []byte(Marker + "=" + string(f))
	// A session of this number is another one where a process has the number and is
	// not the shim.
	leader, err := readStat(shim.PID)
	ours := err != nil || leader.start == shim.Start
	var list []int
	for _, pid := range all {
		s, err := readStat(pid)
		if err != nil || pid == os.Getpid() || pid == shim.PID || s.state == 'Z' || s.state == 'X' {
			continue
		}
		if ours && s.session == shim.PID && s.start >= shim.Start || hasVariable(pid, marker) {
			list = append(list, pid)
		}
	}
	// The ending first process of a container waits for the others, without an
	// environment.
	if first, err := f.Started(); err == nil && first.IsAlive(bootID) && !slices.Contains(list, first.PID) {
		list = append(list, first.PID)
	}
	return list
}

func hasVariable(pid int, text []byte) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for _, v := range bytes.Split(data, []byte{0}) {
		if bytes.Equal(v, text) {
			return true
		}
	}
	return false
}

// killWait is the pause between two rounds of kills.
const killWait = 20 * time.Millisecond

// KillRemains kills what a lost shim has left, until nothing is left or the rounds
// are over. It returns the processes that are still there. Only the owner of the
// lock may call it.
func (f Folder) KillRemains(bootID string, rounds int) ([]int, error) {
	shim, err := f.Begun()
	if err != nil {
		return nil, err
	}
	spec, specErr := f.Spec()
	group := spec.Cgroup
	if specErr != nil {
		group = ""
	}
	for range rounds {
		killCgroup(group)
		left := f.remains(shim, bootID)
		if len(left) == 0 && !isPopulated(group) {
			removeCgroup(group)
			return nil, nil
		}
		for _, pid := range left {
			_ = unix.Kill(pid, unix.SIGKILL) // it may have ended by itself
		}
		time.Sleep(killWait)
	}
	return append(f.remains(shim, bootID), processesIn(workFolder(group))...), nil
}
