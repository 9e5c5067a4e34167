package cli

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterd/muster/coordinator/decisions"
	"github.com/musterd/muster/coordinator/decisions/logfile"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/resource"
)

// teller is a leader without a cluster (decisions.Words, sched.Trial).
type teller struct {
	room    *sched.Room
	tracker *decisions.Tracker
	tx      resource.TxID
}

func newTeller(epoch resource.Epoch, tx resource.TxID, log *logfile.Log) *teller {
	l := &teller{room: sched.NewRoom(), tx: tx}
	l.tracker = decisions.NewTracker(epoch, l.room, l, log.Append)
	return l
}

func (l *teller) offer(k queue.Key, gpus int) {
	demand := place.Unit{Members: 1, Request: resource.Request{GPUs: gpus}}
	l.room.Offer(k, sched.Traits{Demand: fmt.Sprint(gpus), Namespace: "ml", Priority: k.Priority}, &demand)
}

// Try places what is small.
func (l *teller) Try(k queue.Key, _ bool) *sched.Evidence {
	if strings.Contains(k.Path, "big") {
		return &sched.Evidence{Code: sched.NoPlace}
	}
	l.place(k)
	return nil
}

func (l *teller) place(k queue.Key) {
	l.tracker.Placed(decisions.Placement{Key: k, Tx: l.tx, Kind: decisions.Plain})
	l.room.Remove(k)
}

func (l *teller) Wait(string, *sched.Evidence)   {}
func (l *teller) Held(string) decisions.Evidence { return decisions.Evidence{} }
func (l *teller) Asleep(*sched.Class, *sched.Evidence) (string, func() string) {
	return "", func() string { return "want 64 GPUs, 12 are free" }
}

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
	l := newTeller(7, "s1", log)
	l.offer(big, 64)
	l.offer(small, 1)
	if reason {
		l.room.Pass(2, l)
	} else {
		l.place(small)
	}
	l.tracker.Committed("s1", 41)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// restored is account with a reason, and then a term of a store that has gone
// back, in which the same unit is placed again.
func restored(t *testing.T) string {
	t.Helper()
	dir := account(t, true)
	log, err := logfile.Open(logfile.Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	l := newTeller(5, "s2", log)
	l.tracker.Restored(decisions.Restored{By: "coordinator c1", Before: 41, After: 6})
	l.offer(queue.Key{Epoch: 3, Counter: 2, Path: "ml/alloc/small/0"}, 1)
	l.room.Pass(1, l)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestDecisions(t *testing.T) {
	format1 := filepath.Join("..", "..", "..", "coordinator", "decisions", "testdata", "format1")
	right, wrong, back := account(t, true), account(t, false), restored(t)
	file := func(dir string) string { return filepath.Join(dir, "0000000000000007-000001.jsonl") }
	for name, test := range map[string]struct {
		args                []string
		wantCode            int
		wantOut, wantStderr string // parts of them
	}{
		"a right account": {args: []string{"check", right}, wantOut: "files 1, terms 1, records 10, lost 0\nplacements 1, verified 1, preemptions 0, claims 0\n" +
			"commits 1, aborts 0, ends 0\npassed over: 1 asleep; at most 1 at once\nviolations 0\n"},
		"a file": {args: []string{"check", file(right)}, wantOut: "violations 0\n"},
		"files of format 1": {
			args: []string{"check", format1}, wantCode: ExitFailed, wantStderr: "muster: 4 violations in 186 records\n",
			wantOut: "wrong.jsonl:9: stale: ns/alloc/u2/0: placed at generation 2; 1 ahead were not tried again at it: ns/alloc/u1/0\n",
		},
		"a unit of format 1": {
			args:    []string{"show", format1 + "/wrong.jsonl", "--unit", "ns/u2"},
			wantOut: "ns/alloc/u2/0  position 3  placed as b at generation 2, ahead of it 1 infeasible, 1 backoff; v of priority -1 gives way\n",
		},
		"an overtaking": {
			args: []string{"check", wrong}, wantCode: ExitFailed, wantStderr: "muster: 1 violations in 9 records\n",
			wantOut: file(wrong) + ":9: untried: ml/alloc/small/0: placed at position 2; the classes of 1 ahead were not tried: ml/job/big/0\n",
		},
		"no such folder": {args: []string{"check", right + "/none"}, wantCode: ExitFailed, wantStderr: "no such file"},
		"an empty one":   {args: []string{"check", t.TempDir()}, wantCode: ExitFailed, wantStderr: "there is no file *.jsonl in it"},
		"no folder":      {args: []string{"check"}, wantCode: ExitMisused, wantStderr: "want DIR|FILE…"},
		"a unit by its name": {
			args:    []string{"show", right, "--unit", "ml/big"},
			wantOut: "ml/job/big/0  position 1  passed over with class 1: no-place: want 64 GPUs, 12 are free\n",
		},
		"a unit by its path": {
			args:    []string{"show", right, "--unit", "ml/alloc/small/0"},
			wantOut: "ml/alloc/small/0  position 2  placed as s1, ahead of it 1 asleep\n",
		},
		"a store that was restored": {
			args: []string{"check", back},
			wantOut: filepath.Join(back, "r000001-0000000000000005-000001.jsonl") + ":3: not verifiable: the store was restored from a backup, as coordinator c1 noticed: " +
				"what was decided before this term may be decided again\nfiles 2, terms 2, records 16, lost 0\n",
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
