// Package handoff writes the resources of a committed transaction on this host
// to files that a launcher reads: one JSON document per transaction and one
// environment file per member. It decides nothing: the journal is the truth,
// and these files are derived from it.
package handoff

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// schemaVersion is the version of the JSON document.
const schemaVersion = 1

// cdiVendor names NVIDIA's devices in the Container Device Interface.
const cdiVendor = "nvidia.com/gpu="

// Grant is all that a transaction holds on this host.
type Grant struct {
	Tx      resource.TxID
	Unit    resource.UnitUID
	Name    string            // of the unit, "" where it is not known
	Tenant  resource.TenantID // "" where it is not known
	Node    resource.NodeID
	Members []grant.Member // ascending by Index
	// End is the notice of the grant's end; zero without a notice.
	End End
}

// End is the notice of a grant's end. A launcher compares UptimeSeconds, rounded down, with
// the first number of /proc/uptime.
type End struct {
	GraceSeconds  int64 `json:"graceSeconds"`  // from the notice on
	UptimeSeconds int64 `json:"uptimeSeconds"` // the end of the grace
}

// document is the JSON form of a Grant.
type document struct {
	Version     int               `json:"version"`
	Transaction resource.TxID     `json:"transaction"`
	Unit        resource.UnitUID  `json:"unit"`
	Name        string            `json:"name,omitempty"`
	Tenant      resource.TenantID `json:"tenant,omitempty"`
	Node        resource.NodeID   `json:"node"`
	End         End               `json:"end,omitzero"`
	Members     []member          `json:"members"`
}

type member struct {
	Member      int                 `json:"member"`
	Assignment  resource.Assignment `json:"assignment"`
	Environment map[string]string   `json:"environment"`
	CDIDevices  []string            `json:"cdiDevices,omitempty"`
}

// Devices are the UUIDs of an assignment's GPUs, and then of its MIG instances.
func Devices(a resource.Assignment) []string {
	var uuids []string
	for _, g := range a.GPUs {
		uuids = append(uuids, g.UUID)
	}
	for _, g := range a.MIG {
		uuids = append(uuids, g.UUID)
	}
	return uuids
}

// NUMANodes are the nodes of a member's memory and huge pages.
func NUMANodes(a resource.Assignment) bitset.Set {
	var nodes bitset.Set
	for _, m := range a.Memory {
		nodes.Add(m.Node)
	}
	for _, h := range a.Hugepages {
		nodes.Add(h.Node)
	}
	return nodes
}

// Environment is the environment for a member's processes, as in
// docs/assignments.md. Lists are in ascending order; GPUs of a member that has
// none are hidden by an empty CUDA_VISIBLE_DEVICES.
func Environment(a resource.Assignment) map[string]string {
	uuids := Devices(a)
	var share resource.Milli
	for _, g := range a.GPUs {
		if g.Milli < resource.WholeDevice {
			share += g.Milli
		}
	}
	var memory resource.Bytes
	for _, m := range a.Memory {
		memory += m.Bytes
	}
	huge := map[resource.Bytes]resource.Bytes{}
	for _, h := range a.Hugepages {
		huge[h.Size] += h.Bytes
	}
	env := map[string]string{
		"CUDA_VISIBLE_DEVICES": strings.Join(uuids, ","),
		"MUSTER_CPUS":          a.CPUSet().String(),
		"MUSTER_NUMA_NODES":    NUMANodes(a).String(),
		"MUSTER_MEMORY_BYTES":  strconv.FormatInt(int64(memory), 10),
		"MUSTER_CDI_DEVICES":   strings.Join(CDIDevices(a), ","),
	}
	if share > 0 {
		env["MUSTER_GPU_MILLI"] = strconv.FormatInt(int64(share), 10)
	}
	for size, bytes := range huge {
		env["MUSTER_HUGEPAGES_"+resource.FormatBytes(size)] = strconv.FormatInt(int64(bytes), 10)
	}
	return env
}

// CDIDevices returns the fully qualified names of the assignment's GPUs and
// MIG instances, as `nvidia-ctk cdi generate --device-name-strategy=uuid`
// gives them: the UUID of either.
func CDIDevices(a resource.Assignment) []string {
	var names []string
	for _, g := range a.GPUs {
		names = append(names, cdiVendor+g.UUID)
	}
	for _, g := range a.MIG {
		names = append(names, cdiVendor+g.UUID)
	}
	return names
}

// Options of Open; the zero value is the default.
type Options struct {
	// FS replaces how the files are changed; nil is the operating system's.
	FS FS
	// Mode holds the permissions of the files; 0 is DefaultMode. The folder's
	// follow: users who may read a file may list and enter the folder.
	Mode fs.FileMode
}

// DefaultMode lets the agent's user write and the folder's group read.
const DefaultMode fs.FileMode = 0o640

// Dir is a folder of assignment files. Its methods may block on the disk and
// must not run at the same time.
type Dir struct {
	path string
	fs   FS
	mode fs.FileMode
	room int64 // size of RoomFile, in bytes
	kept int64 // its size as far as this Dir knows
	// reserved: the last Reserve succeeded, and kept has not shrunk since. short:
	// the room was used or missing, and has not been whole since.
	reserved, short bool
}

// Open makes the folder if it is missing and sets its permissions if it is the
// agent's own. It keeps no room yet, see Reserve.
func Open(path string, o Options) (*Dir, error) {
	d := &Dir{path: path, fs: o.FS, mode: o.Mode, room: DefaultRoom}
	if d.fs == nil {
		d.fs = osFS{}
	}
	if d.mode == 0 {
		d.mode = DefaultMode
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("assignment folder: %w", err)
	}
	if err := d.protect(); err != nil {
		return nil, fmt.Errorf("assignment folder: %w", err)
	}
	return d, nil
}

// protect sets the folder's permissions and keeps its setgid bit, which gives
// new files the folder's group. The folder of another user stays as it is.
func (d *Dir) protect() error {
	info, err := os.Stat(d.path)
	if err != nil {
		return err
	}
	want := 0o300 | d.mode | d.mode&0o444>>2 // users who may read a file may list and enter the folder
	if info.Mode()&(fs.ModePerm|fs.ModeSetgid) == want|info.Mode()&fs.ModeSetgid {
		return nil
	}
	if err := os.Chmod(d.path, want|info.Mode()&fs.ModeSetgid); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// base is a file name without its ending. Dots that path elements could
// misuse cannot stand alone, as every name has an ending.
func base(tx resource.TxID) string { return url.PathEscape(string(tx)) }

// JSONPath is where the document of a transaction is.
func (d *Dir) JSONPath(tx resource.TxID) string { return filepath.Join(d.path, base(tx)+".json") }

// EnvPath is where a member's environment is: TX.env where the transaction has
// one member on this host, TX.MEMBER.env where it has several.
func (d *Dir) EnvPath(g Grant, member int) string {
	if len(g.Members) == 1 {
		return filepath.Join(d.path, base(g.Tx)+".env")
	}
	return filepath.Join(d.path, fmt.Sprintf("%s.%d.env", base(g.Tx), member))
}

// Paths are all files of a grant, the document first.
func (d *Dir) Paths(g Grant) []string {
	paths := []string{d.JSONPath(g.Tx)}
	for _, m := range g.Members {
		paths = append(paths, d.EnvPath(g, m.Index))
	}
	return paths
}

// Write puts the files of a grant, each whole or not at all, the JSON document
// last. It may be repeated.
func (d *Dir) Write(g Grant) error {
	doc := document{Version: schemaVersion, Transaction: g.Tx, Unit: g.Unit, Name: g.Name, Tenant: g.Tenant, Node: g.Node, End: g.End}
	for _, m := range g.Members {
		env := Environment(m.Assignment)
		doc.Members = append(doc.Members, member{m.Index, m.Assignment, env, CDIDevices(m.Assignment)})
		if err := d.put(d.EnvPath(g, m.Index), envFile(env)); err != nil {
			return err
		}
	}
	data, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return fmt.Errorf("assignment of %s: %w", g.Tx, err)
	}
	return d.put(d.JSONPath(g.Tx), append(data, '\n'))
}

// envFile is in the format that systemd's EnvironmentFile and a shell read.
func envFile(env map[string]string) []byte {
	keys := make([]string, 0, len(env))
	for k := range env {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	var b []byte
	for _, k := range keys {
		b = append(b, k...)
		b = append(b, '=')
		b = append(b, env[k]...)
		b = append(b, '\n')
	}
	return b
}

// put replaces a file unless it is there as it should be: replacing costs a
// file system that flushes on rename (ext4) most of a millisecond, and after a
// restart nearly all are. On a full disk it uses the room.
func (d *Dir) put(path string, data []byte) error {
	if d.has(path, data) {
		return nil
	}
	temporary := path + ".tmp"
	for {
		err := d.fs.WriteFile(temporary, data, d.mode)
		if err == nil {
			err = d.fs.Rename(temporary, path)
		}
		switch {
		case err == nil:
			return nil
		case !diskFull(err) || !d.spend(len(data)):
			return fmt.Errorf("assignment file: %w", err)
		}
	}
}

// has reports whether a file is there with these bytes and the permissions that
// it should have.
func (d *Dir) has(path string, data []byte) bool {
	info, err := os.Stat(path)
	if err != nil || info.Size() != int64(len(data)) || info.Mode().Perm() != d.mode {
		return false
	}
	old, err := os.ReadFile(path)
	return err == nil && bytes.Equal(old, data)
}

// Remove takes away the files of a grant; missing files are no error.
func (d *Dir) Remove(g Grant) error {
	var errs []error
	for _, p := range d.Paths(g) {
		if err := d.fs.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("assignment file: %w", err))
		}
	}
	return errors.Join(errs...)
}

// Prune removes the files that belong to none of the given grants.
func (d *Dir) Prune(grants []Grant) error {
	keep := map[string]bool{}
	for _, g := range grants {
		for _, p := range d.Paths(g) {
			keep[p] = true
		}
	}
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return fmt.Errorf("assignment folder: %w", err)
	}
	var errs []error
	for _, e := range entries {
		path := filepath.Join(d.path, e.Name())
		ours := slices.Contains([]string{".json", ".env", ".tmp"}, filepath.Ext(e.Name()))
		if ours && !keep[path] && e.Type().IsRegular() {
			errs = append(errs, d.fs.Remove(path))
		}
	}
	return errors.Join(errs...)
}
