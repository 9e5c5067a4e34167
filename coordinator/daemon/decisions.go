package daemon

import (
	"path/filepath"

	"github.com/musterd/muster/coordinator/decisions/logfile"
	"github.com/musterd/muster/coordinator/lead"
)

// Decisions bounds the account of what this coordinator decides while it leads,
// in the folder decisions of DataDir. The zero value is the default.
type Decisions struct {
	Files    int   // kept; negative: no account
	MaxBytes int64 // of a file
}

// openDecisions opens the account, nil for none. It is evidence: a coordinator
// that cannot keep it says so and leads all the same.
func (d *Daemon) openDecisions() lead.DecisionLog {
	c := d.config
	if c.Decisions.Files < 0 || c.DataDir == "" {
		return nil
	}
	log, err := logfile.Open(logfile.Config{
		Dir: filepath.Join(c.DataDir, "decisions"), Files: c.Decisions.Files, MaxBytes: c.Decisions.MaxBytes, Logger: d.log,
	})
	if err != nil {
		d.log.Error("decisions_not_kept", "error", err)
		return nil
	}
	d.decisions = log
	return log
}
