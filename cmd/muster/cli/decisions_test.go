package cli

import (
	"encoding/json"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterd/muster/coordinator/decisions"
	"github.com/musterd/muster/coordinator/decisions/logfile"
	"github.com/musterd/muster/coordinator/queue"
)

// account writes a log in which one unit overtakes another, with or without a
// reason.
func account(t *testing.T, reason bool) string {
	t.Helper()
	dir := t.TempDir()
	log, err := logfile.Open(logfile.Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	big, small := queue.Key{Epoch: 7, Counter: 1, Path: "ml/job/big/0"}, queue.Key{Epoch: 7, Counter: 2, Path: "ml/alloc/small/0"}
	tracker := decisions.NewTracker(7, 1, nil, log.Append)
	tracker.Arrived(big)
	tracker.Arrived(small)
	if reason {
		tracker.Skipped(big, decisions.Evidence{Why: decisions.Infeasible}, func() string { return "want 64 GPUs, 12 are free" })
	}
	tracker.Placed(decisions.Placement{Key: small, Tx: "s1", Kind: decisions.Plain})
	tracker.Committed("s1", 41)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// restored is account with a reason, and then a term of a store that has gone
// back, in which the same unit ends and is placed again.
func restored(t *testing.T) string {
	t.Helper()
	dir := account(t, true)
	log, err := logfile.Open(logfile.Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	small := queue.Key{Epoch: 3, Counter: 2, Path: "ml/alloc/small/0"}
	tracker := decisions.NewTracker(5, 1, nil, log.Append)
	tracker.Restored(decisions.Restored{By: "coordinator c1", Before: 41, After: 6})
	tracker.Arrived(small)
	tracker.Placed(decisions.Placement{Key: small, Tx: "s2", Kind: decisions.Plain})
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestDecisions(t *testing.T) {
	right, wrong, back := account(t, true), account(t, false), restored(t)
	file := func(dir string) string { return filepath.Join(dir, "0000000000000007-000001.jsonl") }
	for name, test := range map[string]struct {
		args                []string
		wantCode            int
		wantOut, wantStderr string // parts of them
	}{
		"a right account": {args: []string{"check", right}, wantOut: "files 1, terms 1, records 6, lost 0\nplacements 1, verified 1, preemptions 0, claims 0\n" +
			"commits 1, aborts 0, ends 0\npassed over: 1 infeasible; at most 1 at once\nviolations 0\n"},
		"a file": {args: []string{"check", file(right)}, wantOut: "violations 0\n"},
		"an overtaking": {
			args: []string{"check", wrong}, wantCode: ExitFailed, wantStderr: "muster: 1 violations in 5 records\n",
			wantOut: file(wrong) + ":5: untried: ml/alloc/small/0: placed at position 2; 1 ahead were not tried: ml/job/big/0\n",
		},
		"no such folder": {args: []string{"check", right + "/none"}, wantCode: ExitFailed, wantStderr: "no such file"},
		"an empty one":   {args: []string{"check", t.TempDir()}, wantCode: ExitFailed, wantStderr: "there is no file *.jsonl in it"},
		"no folder":      {args: []string{"check"}, wantCode: ExitMisused, wantStderr: "want DIR|FILE…"},
		"a unit by its name": {
			args:    []string{"show", right, "--unit", "ml/big"},
			wantOut: "ml/job/big/0  position 1  passed over: infeasible at generation 1: want 64 GPUs, 12 are free\n",
		},
		"a unit by its path": {
			args:    []string{"show", right, "--unit", "ml/alloc/small/0"},
			wantOut: "ml/alloc/small/0  position 2  placed as s1 at generation 1, ahead of it 1 infeasible\n",
		},
		"a store that was restored": {
			args: []string{"check", back},
			wantOut: filepath.Join(back, "r000001-0000000000000005-000001.jsonl") + ":3: not verifiable: the store was restored from a backup, as coordinator c1 noticed: " +
				"what was decided before this term may be decided again\nfiles 2, terms 2, records 10, lost 0\n",
		},
		"a unit of a store that was restored": {
			args: []string{"show", back, "--unit", "ml/small"},
			wantOut: "every unit  position -  the store was restored from a backup: it was at revision 41 and is at 6 without what was written up to then; " +
				"coordinator c1 noticed it, in term 5\n",
		},
		"an unknown unit of a store that was restored": {args: []string{"show", back, "--unit", "ml/none"}, wantCode: ExitFailed, wantStderr: `nothing is said about "ml/none"`},
		"an unknown unit": {args: []string{"show", right, "--unit", "ml/none"}, wantCode: ExitFailed, wantStderr: `nothing is said about "ml/none"`},
		"no unit":         {args: []string{"show", right}, wantCode: ExitMisused, wantStderr: "--unit: not set"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := newShell(t, nil).run(t.Context(), "", append([]string{"decisions"}, test.args...)...)
			if code != test.wantCode || !strings.Contains(stdout, test.wantOut) || !strings.Contains(stderr, test.wantStderr) {
				t.Errorf("exit %d\n%s%s\nwant exit %d\n%s%s", code, stdout, stderr, test.wantCode, test.wantOut, test.wantStderr)
			}
			if code != ExitDone && test.wantOut == "" && stdout != "" {
				t.Errorf("of what was not read it says\n%s", stdout)
			}
		})
	}
	_, stdout, _ := newShell(t, nil).run(t.Context(), "", "decisions", "check", wrong, "-o", "json")
	var r decisions.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || len(r.Violations) != 1 || r.Violations[0].Rule != decisions.RuleUntried {
		t.Errorf("as JSON: %v\n%s", err, stdout)
	}
}
