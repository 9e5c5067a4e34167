package run

import (
	"cmp"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterd/muster/agent/outputs"
	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/grant"
)

// Kept bounds the folders of ended members, which hold their output. Live members share Bytes
// once more.
type Kept struct {
	For   time.Duration // after the end; 0 is DefaultKept
	Bytes int64         // of all output together; 0 is DefaultKeptBytes
}

// DefaultKept and DefaultKeptBytes are the default of Kept.
const (
	DefaultKept      = 24 * time.Hour
	DefaultKeptBytes = 2 << 30
)

const (
	// sweepEvery is the time between two looks at all folders, lookEvery the time between two
	// looks at the room of the file system.
	sweepEvery = time.Minute
	lookEvery  = 5 * time.Second
	// mostFolders bounds the folders of ended members.
	mostFolders = 4096
)

// limits are those of the output on this host.
func (r *Runner) limits() outputs.Limits {
	return outputs.Limits{
		For: cmp.Or(r.config.Kept.For, DefaultKept), Bytes: cmp.Or(r.config.Kept.Bytes, DefaultKeptBytes),
		MemberBytes: shim.DefaultLogBytes * shim.DefaultLogFiles, Folders: mostFolders,
	}
}

// missing is the room lacking in the file system of the folders.
func (r *Runner) missing() outputs.Missing {
	var stat unix.Statfs_t
	if unix.Statfs(r.config.Root, &stat) != nil {
		return outputs.Missing{}
	}
	return outputs.Short(int64(stat.Blocks)*stat.Bsize, int64(stat.Bavail)*stat.Bsize, int64(stat.Files), int64(stat.Ffree))
}

// sweep removes folders of ended members beyond the limits, and gives each live member a share
// of the room. Folders of reported transactions stay, and their output counts as output of
// live members.
func (r *Runner) sweep(now time.Time) {
	r.sweeping.Lock()
	defer r.sweeping.Unlock()
	list := r.members()
	limits := r.limits()
	d := outputs.Decide(now, list, limits, r.missing())
	for _, name := range d.Remove {
		folder := filepath.Join(r.config.Root, name)
		if err := os.RemoveAll(folder); err != nil {
			r.log.Warn("run_folder_not_removed", "folder", folder, "error", err)
		}
	}
	for _, m := range list {
		if bytes, live := d.Shares[m.Name]; live {
			r.giveShare(m, bytes, limits.MemberBytes)
		}
	}
}

// giveShare has a live member keep so much output.
func (r *Runner) giveShare(m outputs.Member, bytes, most int64) {
	f := shim.Folder(filepath.Join(r.config.Root, m.Name))
	if _, err := f.Exit(); err == nil { // no supervisor obeys any more
		f.TrimLogs(bytes)
		return
	}
	old, err := f.Share()
	if err == nil && old.Bytes == bytes || err != nil && bytes == most {
		return
	}
	if err := f.WriteShare(shim.Share{Tenant: m.Tenant, Bytes: bytes}); err != nil {
		r.log.Warn("share_not_written", "folder", string(f), "error", err)
	}
}

// members are the folders of all starts. An ended member changes no more, and is read once.
func (r *Runner) members() []outputs.Member {
	entries, err := os.ReadDir(r.config.Root)
	if err != nil {
		r.log.Warn("run_folders_not_listed", "error", err)
		return nil
	}
	var list []outputs.Member
	known := map[string]outputs.Member{}
	for _, e := range entries {
		id, err := parseName(e.Name())
		if err != nil {
			continue
		}
		m, was := r.ended[e.Name()]
		if !was {
			m = r.memberOf(e.Name())
		}
		if !m.Ended.IsZero() {
			known[e.Name()] = m
		}
		if r.Has(id.tx) {
			m.Ended = time.Time{}
		} else if m.Ended.IsZero() {
			continue // of no transaction, without an end
		}
		list = append(list, m)
	}
	r.ended = known
	return list
}

// memberOf reads a folder.
func (r *Runner) memberOf(name string) outputs.Member {
	f := shim.Folder(filepath.Join(r.config.Root, name))
	m := outputs.Member{Name: name, Bytes: f.LogBytes()}
	if s, err := f.Share(); err == nil {
		m.Tenant = s.Tenant
	}
	if exit, err := f.Exit(); err == nil {
		m.Ended = exit.At
	}
	return m
}

// firstShare is the share of a member at the start. The other members of the tenant keep larger
// shares until the next sweep.
func (r *Runner) firstShare(s Start) shim.Share {
	r.mu.Lock()
	defer r.mu.Unlock()
	live := []outputs.Member{{Name: "new", Tenant: string(s.Tenant)}}
	for _, tasks := range r.tasks {
		for _, t := range tasks {
			if t.member != nil && t.phase != grant.WorkEnded && t.folder != s.Folder {
				live = append(live, outputs.Member{Name: t.id.name(), Tenant: string(t.member.Tenant)})
			}
		}
	}
	return shim.Share{Tenant: string(s.Tenant), Bytes: outputs.Decide(time.Time{}, live, r.limits(), outputs.Missing{}).Shares["new"]}
}

// makeRoom removes output of ended members where the file system has no room.
func (r *Runner) makeRoom() {
	select {
	case r.lookNow <- struct{}{}:
	default: // a look is coming
	}
}
