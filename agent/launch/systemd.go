package launch

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	systemd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"

	"github.com/musterd/muster/agent/bounds"
)

// Systemd starts transient services by the host's systemd (org.freedesktop.systemd1(5)).
type Systemd struct {
	// Connect opens a connection; nil is systemd's own socket, which is root's alone.
	Connect func(context.Context) (*systemd.Conn, error)
	// Hierarchy is the folder of the unified hierarchy; "" has none.
	Hierarchy string
}

// Hierarchy is the folder of the unified hierarchy as systemd mounts it, "" where it
// mounts another one.
func Hierarchy() string {
	var stat unix.Statfs_t
	if err := unix.Statfs(hierarchy, &stat); err != nil || stat.Type != unix.CGROUP2_SUPER_MAGIC {
		return ""
	}
	return hierarchy
}

// members are the controllers that limit or count a member.
var members = []string{"cpu", "cpuset", "hugetlb", "memory", "pids"}

// Controllers are those that members get.
func (s *Systemd) Controllers() (bounds.Controllers, error) {
	if s.Hierarchy == "" {
		return nil, nil
	}
	data, err := os.ReadFile(filepath.Join(s.Hierarchy, "cgroup.controllers"))
	if err != nil {
		return nil, err
	}
	var has bounds.Controllers
	for _, name := range members {
		if slices.Contains(strings.Fields(string(data)), name) {
			has = append(has, name)
		}
	}
	return has, nil
}

// Start implements [Starter]: it returns once the shim's program runs.
func (s *Systemd) Start(ctx context.Context, u Unit) error {
	if err := s.passHugetlb(); err != nil {
		return err
	}
	return s.job(ctx, u.Name, s.properties(&u))
}

// Run implements [Starter]. A run of the same name that goes on is awaited: an agent that
// starts anew asks again.
func (s *Systemd) Run(ctx context.Context, run Script) error {
	for {
		err := s.job(ctx, run.Unit, scriptProperties(&run))
		if exists := (dbus.Error{}); !errors.As(err, &exists) || exists.Name != "org.freedesktop.systemd1.UnitExists" {
			return err
		}
		select {
		case <-time.After(existsRetry):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// existsRetry is the pause between two tries to start a unit of a name that is in use.
const existsRetry = 200 * time.Millisecond

// job starts a transient unit and waits for the result of its job.
func (s *Systemd) job(ctx context.Context, name string, properties []systemd.Property) error {
	connect := s.Connect
	if connect == nil {
		connect = systemd.NewSystemdConnectionContext
	}
	conn, err := connect(ctx)
	if err != nil {
		return fmt.Errorf("connect to systemd: %w", err)
	}
	defer conn.Close()
	result := make(chan string, 1) // the library sends one
	if _, err := conn.StartTransientUnitContext(ctx, name, "fail", properties, result); err != nil {
		return err
	}
	select {
	case text := <-result:
		if text != "done" {
			return fmt.Errorf("systemd has answered %q: see journalctl -u %s", text, name)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// scriptProperties describe the service of a script: the job ends with the script.
func scriptProperties(run *Script) []systemd.Property {
	var list []systemd.Property
	for _, p := range []struct {
		name  string
		value any
	}{
		{"Description", "Script of the host around work of Muster"},
		{"Slice", Slice},
		{"Type", "oneshot"},
		{"ExecStart", []execCommand{{run.Path, []string{run.Path}, false}}},
		{"WorkingDirectory", "/"},
		{"Environment", append([]string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, run.Env...)},
		{"TimeoutStartUSec", uint64(run.Limit.Microseconds())},
		{"KillMode", "control-group"},
		{"TimeoutStopUSec", uint64(1e6)},
		{"CollectMode", "inactive-or-failed"},
	} {
		list = append(list, systemd.Property{Name: p.name, Value: dbus.MakeVariant(p.value)})
	}
	return list
}

// passHugetlb passes the controller of huge pages on to the slice: systemd knows nothing
// of it, and leaves it as it is.
func (s *Systemd) passHugetlb() error {
	if s.Hierarchy == "" {
		return nil
	}
	for _, dir := range []string{s.Hierarchy, filepath.Join(s.Hierarchy, Slice)} {
		has, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
		switch {
		case errors.Is(err, fs.ErrNotExist): // there was no member yet; the next start finds it
			return nil
		case err != nil:
			return err
		case !slices.Contains(strings.Fields(string(has)), "hugetlb"):
			return nil
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+hugetlb"), 0); err != nil {
			return err
		}
	}
	return nil
}

// ownMemory and ownTasks are the shim's own part of the limits of a service.
const (
	ownMemory = 16 << 20
	ownTasks  = 32
)

// rights are those of a shim: to become the user of the command, to signal the command, and to
// take these rights from the command.
const rights = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_KILL | 1<<unix.CAP_SETPCAP

// execCommand is one command of ExecStart.
type execCommand struct {
	Path   string
	Args   []string
	Unsafe bool // a failure is no failure of the unit
}

// deviceRule is one rule of DeviceAllow.
type deviceRule struct{ Path, Access string }

// properties describe the service. The limits of the kernel that systemd knows stand
// here, with a margin for the shim; the shim writes all limits into the cgroup of the
// command itself, which is delegated.
func (s *Systemd) properties(u *Unit) []systemd.Property {
	var list []systemd.Property
	set := func(name string, value any) {
		list = append(list, systemd.Property{Name: name, Value: dbus.MakeVariant(value)})
	}
	set("Description", "Work of Muster")
	set("Slice", Slice)
	set("Type", "exec")
	set("ExecStart", []execCommand{{u.Args[0], u.Args, false}})
	set("WorkingDirectory", "/")
	set("User", fmt.Sprint(u.UID))
	set("Group", fmt.Sprint(u.GID))
	set("CapabilityBoundingSet", uint64(rights))
	set("AmbientCapabilities", uint64(rights))
	set("NoNewPrivileges", true)
	set("Environment", []string{"GOMAXPROCS=2"})
	set("UMask", uint32(0o22))
	set("LimitMEMLOCK", uint64(math.MaxUint64)) // pinned memory of RDMA and CUDA
	set("LimitNOFILE", uint64(1<<20))
	// The end of the shim is the end of the member: whatever is left is killed. A stop of
	// the unit, as at a shutdown, is a SIGTERM for the shim, which gives the command 30 s.
	set("KillMode", "mixed")
	set("TimeoutStopUSec", uint64(45e6))
	set("CollectMode", "inactive-or-failed")
	set("OOMPolicy", "continue")
	for i, name := range []string{"StandardInputFileDescriptor", "StandardOutputFileDescriptor", "StandardErrorFileDescriptor"} {
		set(name, dbus.UnixFD(u.Files[i].Fd()))
	}
	if s.Hierarchy == "" {
		return list
	}
	set("Delegate", true)
	b := &u.Bounds
	if len(b.CPUs) > 0 {
		set("AllowedCPUs", mask(b.CPUs))
	}
	if len(b.Nodes) > 0 {
		set("AllowedMemoryNodes", mask(b.Nodes))
	}
	if b.Millicores > 0 {
		set("CPUQuotaPerSecUSec", uint64(b.Millicores)*1000)
	}
	if b.Memory > 0 {
		set("MemoryMax", uint64(b.Memory)+ownMemory)
	}
	set("TasksMax", uint64(math.MaxUint64))
	if b.Tasks > 0 {
		list[len(list)-1].Value = dbus.MakeVariant(uint64(b.Tasks) + ownTasks)
	}
	if b.Devices != nil {
		rules := []deviceRule{}
		for _, path := range b.Devices {
			rules = append(rules, deviceRule{path, "rwm"})
		}
		set("DevicePolicy", "closed")
		set("DeviceAllow", rules)
	}
	return list
}

// mask is a set of numbers as systemd has it: bit 0 of byte 0 is 0.
func mask(ids []int) []byte {
	var words []uint64
	for _, id := range ids {
		for len(words) <= id/64 {
			words = append(words, 0)
		}
		words[id/64] |= 1 << (id % 64)
	}
	var bytes []byte
	for _, w := range words {
		bytes = binary.LittleEndian.AppendUint64(bytes, w)
	}
	return bytes
}
