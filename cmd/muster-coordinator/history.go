package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/musterd/muster/cmd/configfile"
	"github.com/musterd/muster/coordinator/daemon"
	"github.com/musterd/muster/coordinator/history/usage/pricefile"
	"github.com/musterd/muster/coordinator/history/warehouse"
)

// historyConfig is where the history is kept.
type historyConfig struct {
	DSN       string              `json:"dsn"`     // "" = no history
	DSNFile   string              `json:"dsnFile"` // instead of dsn
	SpoolDir  string              `json:"spoolDir"`
	SpoolWait configfile.Duration `json:"spoolWait"`
	Prices    string              `json:"prices"` // a file; "" = costs stay as they are
	Retention retentionConfig     `json:"retention"`
	Redis     redisConfig         `json:"redis"`
}

// retentionConfig is how long rows of the history stay.
type retentionConfig struct {
	CompletedAllocations configfile.Duration `json:"completedAllocations"`
	Heartbeats           configfile.Duration `json:"heartbeats"`
	UsageHourly          configfile.Duration `json:"usageHourly"`
	PreemptionEvents     configfile.Duration `json:"preemptionEvents"`
	AuditLogs            configfile.Duration `json:"auditLogs"`
	QuotaHistory         configfile.Duration `json:"quotaHistory"`
}

// defaultRetention are the periods of the specification.
func defaultRetention() retentionConfig {
	days := func(n int) configfile.Duration { return configfile.DurationOf(time.Duration(n) * 24 * time.Hour) }
	return retentionConfig{
		CompletedAllocations: days(730), Heartbeats: days(30), UsageHourly: days(1095), PreemptionEvents: days(365), AuditLogs: days(2555), QuotaHistory: days(1095),
	}
}

func (r retentionConfig) check() (warehouse.Retention, error) {
	var errs []error
	of := func(name string, d configfile.Duration) time.Duration {
		value, err := d.Check("history.retention."+name, warehouse.LeastKept, warehouse.MostKept)
		errs = append(errs, err)
		return value
	}
	keep := warehouse.Retention{
		Completed: of("completedAllocations", r.CompletedAllocations), Heartbeats: of("heartbeats", r.Heartbeats), UsageHourly: of("usageHourly", r.UsageHourly),
		Preemptions: of("preemptionEvents", r.PreemptionEvents), Audit: of("auditLogs", r.AuditLogs), Quotas: of("quotaHistory", r.QuotaHistory),
	}
	return keep, errors.Join(errs...)
}

// mostSpoolWait bounds the wait for the spool of another coordinator.
const mostSpoolWait = 7 * 24 * time.Hour

// mostDSN bounds a DSN, in bytes.
const mostDSN = 4096

func (h historyConfig) check() (daemon.History, error) {
	var errs []error
	out := daemon.History{DSN: h.DSN, SpoolDir: h.SpoolDir}
	if h.SpoolDir != "" && !filepath.IsAbs(h.SpoolDir) {
		errs = append(errs, fmt.Errorf("history.spoolDir: %q: want an absolute path, or \"\" for the folder history of dataDir", h.SpoolDir))
	}
	wait, err := h.SpoolWait.Check("history.spoolWait", time.Minute, mostSpoolWait)
	errs = append(errs, err)
	out.SpoolWait = wait
	if h.Prices != "" {
		prices, err := pricefile.Read(h.Prices)
		if err != nil {
			errs = append(errs, fmt.Errorf("history.prices: %w", err))
		}
		out.Prices = &prices
	}
	out.Retention, err = h.Retention.check()
	errs = append(errs, err)
	out.Redis, err = h.Redis.check()
	errs = append(errs, err)
	switch {
	case h.DSN != "" && h.DSNFile != "":
		errs = append(errs, errors.New("history.dsnFile: history.dsn is set too: want one of them"))
	case h.DSNFile != "":
		text, err := readPassword(h.DSNFile)
		if err != nil {
			errs = append(errs, fmt.Errorf("history.dsnFile: %w", err))
		}
		out.DSN = text
	}
	if len(out.DSN) > mostDSN {
		errs = append(errs, fmt.Errorf("history.dsn: %d bytes, want at most %d", len(out.DSN), mostDSN))
		out.DSN = ""
	}
	if d := out.DSN; d != "" && !strings.HasPrefix(d, "sqlite:/") && !strings.HasPrefix(d, "postgres://") && !strings.HasPrefix(d, "postgresql://") && !strings.Contains(d, "dbname=") {
		// The text may have a password.
		errs = append(errs, errors.New(`history.dsn: want "sqlite:/PATH", "postgres://USER@HOST/DATABASE" or "host=HOST dbname=DATABASE"; the value is not shown, as it may have a password`))
	}
	return out, errors.Join(errs...)
}
