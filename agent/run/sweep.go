package run

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/musterd/muster/agent/shim"
)

// Kept bounds the folders of ended members, which hold their output.
type Kept struct {
	For   time.Duration // after the end; 0 is DefaultKept
	Bytes int64         // of all output together; 0 is DefaultKeptBytes
}

// DefaultKept and DefaultKeptBytes are the default of Kept.
const (
	DefaultKept      = 24 * time.Hour
	DefaultKeptBytes = 2 << 30
)

// sweepEvery is the time between two looks at the folders of ended members.
const sweepEvery = 10 * time.Minute

// sweep removes folders of ended members that are too old, and the oldest ones where
// all together are too large. Folders of transactions that are still reported stay.
func (r *Runner) sweep(now time.Time) {
	entries, err := os.ReadDir(r.config.Root)
	if err != nil {
		r.log.Warn("run_folders_not_listed", "error", err)
		return
	}
	type old struct {
		folder shim.Folder
		at     time.Time
		bytes  int64
	}
	var ended []old
	var sum int64
	for _, e := range entries {
		id, err := parseName(e.Name())
		if err != nil || r.Has(id.tx) {
			continue
		}
		f := shim.Folder(filepath.Join(r.config.Root, e.Name()))
		if exit, err := f.Exit(); err == nil {
			bytes := f.LogBytes()
			ended = append(ended, old{f, exit.At, bytes})
			sum += bytes
		}
	}
	slices.SortFunc(ended, func(a, b old) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.folder, b.folder)) })
	for _, o := range ended {
		if now.Sub(o.at) < cmp.Or(r.config.Kept.For, DefaultKept) && sum <= cmp.Or(r.config.Kept.Bytes, DefaultKeptBytes) {
			continue
		}
		sum -= o.bytes
		if err := os.RemoveAll(string(o.folder)); err != nil {
			r.log.Warn("run_folder_not_removed", "folder", string(o.folder), "error", err)
		}
	}
}
