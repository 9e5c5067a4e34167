package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/musterd/muster/cmd/configfile"
	"github.com/musterd/muster/coordinator/daemon"
	"github.com/musterd/muster/resource"
)

// auditConfig bounds the files of the requests that this coordinator refuses.
type auditConfig struct {
	Dir     string            `json:"dir"`   // "" = the folder audit of dataDir
	Files   int               `json:"files"` // 0 = no files
	MaxSize configfile.Scalar `json:"maxSize"`
}

// maxAuditFiles bounds the files; their size has the bounds of an account.
const maxAuditFiles = 10_000

func (a auditConfig) check() (daemon.Audit, error) {
	var errs []error
	if a.Files < 0 || a.Files > maxAuditFiles {
		errs = append(errs, fmt.Errorf("audit.files: %d is outside 0..%d; 0 keeps none", a.Files, maxAuditFiles))
	}
	if a.Dir != "" && !filepath.IsAbs(a.Dir) {
		errs = append(errs, fmt.Errorf("audit.dir: %q: want an absolute path, or \"\" for the folder audit of dataDir", a.Dir))
	}
	size, err := resource.ParseQuantity(string(a.MaxSize), 1)
	switch {
	case err != nil:
		errs = append(errs, fmt.Errorf("audit.maxSize: %w", err))
	case size < minDecisionSize || size > maxDecisionSize:
		errs = append(errs, fmt.Errorf("audit.maxSize: %s is outside 1Mi..1Ti", a.MaxSize))
	}
	out := daemon.Audit{Dir: a.Dir, Files: a.Files, MaxBytes: size}
	if a.Files == 0 {
		out.Files = -1
	}
	return out, errors.Join(errs...)
}
