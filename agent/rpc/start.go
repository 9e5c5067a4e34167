package rpc

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
)

// startOf reads a Start. The limits of its fields are those of package limits.
func startOf(m *musterv1.Start) (*grant.Start, error) {
	s := &grant.Start{
		Tx: resource.TxID(m.GetTx()), Epoch: resource.Epoch(m.GetEpoch()), Args: m.GetArgs(), Env: m.GetEnv(), Dir: m.GetDir(),
		First: int(m.GetFirstMember()), Rank: int(m.GetRank()), Hosts: m.GetHosts(), Port: int(m.GetPort()),
		CPULimit: resource.Millicores(m.GetCpuLimitMillis()), MemoryLimit: resource.Bytes(m.GetMemoryLimitBytes()), Stdin: m.GetStdin(), TTY: m.GetTty(), Rootfs: m.GetRootfs(), Bundle: m.GetBundle(),
	}
	switch {
	case len(s.Args) == 0 && s.Bundle == "" || len(s.Args) > 0 && s.Args[0] == "":
		return nil, fmt.Errorf("start.args: %d arguments, want a command", len(s.Args))
	case s.Dir != "" && !strings.HasPrefix(s.Dir, "/"):
		return nil, fmt.Errorf("start.dir: %q is not an absolute path", s.Dir)
	case s.Rootfs != "" && !isClean(s.Rootfs):
		return nil, fmt.Errorf("start.rootfs: %q is no absolute path without dots", s.Rootfs)
	case s.Bundle != "" && !isClean(s.Bundle):
		return nil, fmt.Errorf("start.bundle: %q is no absolute path without dots", s.Bundle)
	case s.Rootfs != "" && s.Bundle != "":
		return nil, fmt.Errorf("start.bundle: %q, and rootfs is %q: want one of both", s.Bundle, s.Rootfs)
	case len(m.GetMounts()) > 0 && !s.HasContainer():
		return nil, fmt.Errorf("start.mounts: %d mounts without a root file system", len(m.GetMounts()))
	case len(m.GetMembers()) == 0 || len(m.GetMembers()) > ledger.MaxMembers:
		return nil, fmt.Errorf("start.members: %d, outside 1..%d", len(m.GetMembers()), ledger.MaxMembers)
	}
	if n := m.GetNotice(); n.GetSignal() != 0 {
		const longest = int64(grant.MaxNotice / time.Millisecond)
		if n.GetBeforeMillis() < 1 || n.GetBeforeMillis() > longest || n.GetAfterMillis() > longest {
			return nil, fmt.Errorf("start.notice: before_millis %d outside 1..%d, or after_millis %d above that", n.GetBeforeMillis(), longest, n.GetAfterMillis())
		}
		s.Notice = grant.Notice{
			Signal: int(n.GetSignal()), Before: time.Duration(n.GetBeforeMillis()) * time.Millisecond, After: time.Duration(n.GetAfterMillis()) * time.Millisecond,
		}
	}
	for i, text := range append(append([]string(nil), s.Args...), s.Env...) {
		if strings.ContainsRune(text, 0) {
			return nil, fmt.Errorf("start: text %d of args and env has a zero byte", i)
		}
	}
	for i, mount := range m.GetMounts() {
		if !isClean(mount.GetSource()) || !isClean(mount.GetTarget()) {
			return nil, fmt.Errorf("start.mounts[%d]: %q at %q: want absolute paths without dots", i, mount.GetSource(), mount.GetTarget())
		}
		s.Mounts = append(s.Mounts, grant.Mount{Source: mount.GetSource(), Target: mount.GetTarget(), ReadOnly: mount.GetReadOnly()})
	}
	for i, v := range s.Env {
		if name, _, ok := strings.Cut(v, "="); !ok || name == "" {
			return nil, fmt.Errorf("start.env[%d]: want NAME=VALUE", i)
		}
	}
	for i, member := range m.GetMembers() {
		s.Members = append(s.Members, grant.StartMember{Index: int(member.GetMember()), Restart: int(member.GetRestart())})
		if i > 0 && s.Members[i].Index <= s.Members[i-1].Index {
			return nil, fmt.Errorf("start.members[%d]: member %d follows member %d, want ascending", i, s.Members[i].Index, s.Members[i-1].Index)
		}
	}
	if last := s.Members[len(s.Members)-1].Index; s.Rank > 0 && s.Rank+last >= len(s.Hosts) {
		return nil, fmt.Errorf("start.rank: %d with member %d, of %d hosts", s.Rank, last, len(s.Hosts))
	}
	return s, needTx("start", m.GetTx())
}

// isClean reports whether a path is absolute and has no dots.
func isClean(path string) bool {
	return filepath.IsAbs(path) && filepath.Clean(path) == path && !strings.ContainsRune(path, 0)
}
