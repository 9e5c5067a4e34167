package daemon

import (
	"cmp"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/coordinator/audit"
)

// Audit bounds the files of the requests that this coordinator refuses. The zero value
// is the default: the folder audit of DataDir.
type Audit struct {
	Dir      string
	Files    int   // kept; negative: refusals are in memory alone
	MaxBytes int64 // of a file
}

// openAudit opens the audit. A coordinator that cannot keep the files does not start:
// nobody would see who knocks.
func (d *Daemon) openAudit(registry prometheus.Registerer) (err error) {
	c := d.config
	files := audit.Config{Files: c.Audit.Files, MaxBytes: c.Audit.MaxBytes}
	if c.Audit.Files >= 0 && (c.Audit.Dir != "" || c.DataDir != "") {
		files.Dir = cmp.Or(c.Audit.Dir, filepath.Join(c.DataDir, "audit"))
	}
	d.audit, err = audit.Open(c.ID, files, registry, d.log)
	return err
}
