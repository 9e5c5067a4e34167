package attach

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/resource"
)

// This file judges who may attach which processes.

// Hierarchy is the folder of the unified hierarchy of cgroups; "" where there is none.
func Hierarchy() string {
	for _, path := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		var stat unix.Statfs_t
		if err := unix.Statfs(path, &stat); err == nil && stat.Type == unix.CGROUP2_SUPER_MAGIC {
			return path
		}
	}
	return ""
}

// peerOf is the user that has opened a connection.
func peerOf(c net.Conn) (uint32, error) {
	conn, ok := c.(*net.UnixConn)
	if !ok {
		return 0, fmt.Errorf("a connection of %T", c)
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var peer *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) { peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err := errors.Join(err, failed); err != nil {
		return 0, err
	}
	return peer.Uid, nil
}

// mayAttach reports whether a user may attach to the grants of a tenant: root, the agent's
// own user, and the user of the tenant.
func (s *Server) mayAttach(uid uint32, tenant resource.TenantID) bool {
	if isTrusted(uid) {
		return true
	}
	account, err := s.Users.Of(tenant)
	return err == nil && account.ID.UID == uid
}

func isTrusted(uid uint32) bool { return uid == 0 || int(uid) == os.Geteuid() }

// process identifies a process of the caller's own: the agent kills it where it outlives
// the grace of the grant.
func (s *Server) process(pid int, uid uint32) (*shim.Process, error) {
	p, owner, err := shim.Judge(pid, s.BootID)
	switch {
	case errors.Is(err, shim.ErrNoProcess):
		return nil, refuse(http.StatusUnprocessableEntity, "pid %d: there is no such process on this host, or it has ended", pid)
	case err != nil:
		return nil, err
	case uid != 0 && owner != uid:
		return nil, refuse(http.StatusForbidden, "pid %d is a process of user %d, and user %d may attach processes of its own alone", pid, owner, uid)
	}
	above, err := ancestors(os.Getpid())
	if err != nil {
		return nil, err
	}
	if slices.Contains(above, pid) {
		return nil, refuse(http.StatusUnprocessableEntity, "pid %d is the agent, or the agent runs below it", pid)
	}
	return &p, nil
}

// ancestors are a process and all processes above it.
func ancestors(pid int) ([]int, error) {
	var list []int
	for pid > 1 && !slices.Contains(list, pid) {
		list = append(list, pid)
		parent, err := shim.Parent(pid)
		if err != nil && len(list) == 1 {
			return nil, err
		}
		pid = parent // 0 where it has ended meanwhile
	}
	return list, nil
}

// cgroup identifies a folder of the hierarchy that is the caller's own.
func (s *Server) cgroup(path string, uid uint32) (*shim.Group, error) {
	below, ok := strings.CutPrefix(path, s.Hierarchy+"/")
	if s.Hierarchy == "" {
		return nil, refuse(http.StatusUnprocessableEntity, "cgroup %.80q: this host has no unified hierarchy of cgroups; attach a pid", path)
	} else if !ok || below == "" {
		return nil, refuse(http.StatusUnprocessableEntity, "cgroup %.80q: want a folder below %s", path, s.Hierarchy)
	}
	g, owner, err := shim.JudgeGroup(path, s.BootID)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, refuse(http.StatusUnprocessableEntity, "cgroup %.80q: there is no such folder", path)
	case err != nil:
		return nil, err
	case uid != 0 && owner != uid:
		return nil, refuse(http.StatusForbidden, "cgroup %.80q belongs to user %d, and user %d may attach folders of its own alone", path, owner, uid)
	}
	own, err := OwnCgroup(s.Hierarchy)
	if err != nil {
		return nil, err
	}
	if own == path || strings.HasPrefix(own, path+"/") {
		return nil, refuse(http.StatusUnprocessableEntity, "cgroup %.80q has the agent itself", path)
	}
	return &g, nil
}

// OwnCgroup is the folder of this process in the unified hierarchy at a path.
func OwnCgroup(hierarchy string) (string, error) {
	if hierarchy == "" {
		return "", errors.New("this host has no unified hierarchy of cgroups")
	}
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(data)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return filepath.Join(hierarchy, path), nil
		}
	}
	return "", errors.New("/proc/self/cgroup names no folder of the unified hierarchy")
}

// ParseStatus reads an exit status: a number, or the name of a signal, as systemd sets
// EXIT_STATUS.
func ParseStatus(text string) (int, error) {
	if n, err := strconv.Atoi(text); err == nil && n >= 0 && n <= 255 {
		return n, nil
	}
	if n := unix.SignalNum("SIG" + strings.TrimPrefix(text, "SIG")); n > 0 {
		return 128 + int(n), nil
	}
	return 0, fmt.Errorf("%.80q is no exit code of 0 to 255, and no signal such as KILL", text)
}
