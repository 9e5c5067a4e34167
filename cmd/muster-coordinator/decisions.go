package main

import (
	"errors"
	"fmt"

	"github.com/musterd/muster/cmd/configfile"
	"github.com/musterd/muster/coordinator/daemon"
	"github.com/musterd/muster/resource"
)

// decisionsConfig bounds the account of this coordinator's decisions.
type decisionsConfig struct {
	Files   int               `json:"files"` // 0 = no account
	MaxSize configfile.Scalar `json:"maxSize"`
}

// The bounds of an account: a file holds at least the order of a long queue.
const (
	maxDecisionFiles = 10_000
	minDecisionSize  = 1 << 20
	maxDecisionSize  = 1 << 40
)

func (d decisionsConfig) check() (daemon.Decisions, error) {
	var errs []error
	if d.Files < 0 || d.Files > maxDecisionFiles {
		errs = append(errs, fmt.Errorf("decisions.files: %d is outside 0..%d; 0 keeps none", d.Files, maxDecisionFiles))
	}
	size, err := resource.ParseQuantity(string(d.MaxSize), 1)
	switch {
	case err != nil:
		errs = append(errs, fmt.Errorf("decisions.maxSize: %w", err))
	case size < minDecisionSize || size > maxDecisionSize:
		errs = append(errs, fmt.Errorf("decisions.maxSize: %s is outside 1Mi..1Ti", d.MaxSize))
	}
	out := daemon.Decisions{Files: d.Files, MaxBytes: size}
	if d.Files == 0 {
		out.Files = -1
	}
	return out, errors.Join(errs...)
}
