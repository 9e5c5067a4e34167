package batch_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/musterd/muster/coordinator/lead/batch"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// TestTranscripts replays what happens to writes and shows the effects that a
// Batcher asks for. Rewrite with -rewrite.
//
//	new max=4                  a Batcher of Txns with at most 4 operations
//	submit 1 if=(a,b) put=(c)  a write with token 1; "any-epoch" for a fence, "once" for Write.Once
//	next                       sends what may be sent
//	answer 1 landed at=7       the store's answer to Txn 1: landed, failed,
//	                           refused, full or lost
//	key 1 held                 the leader's key is held, changed or unread
//	pause-over 1
//	give-up
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		var b *batch.Batcher
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			for _, e := range input(t, &b, d) {
				fmt.Fprintln(&out, show(e))
			}
			return out.String()
		})
	})
}

func input(t *testing.T, b **batch.Batcher, d *datadriven.TestData) []batch.Effect {
	t.Helper()
	var id uint64
	if d.Cmd != "new" && len(d.CmdArgs) > 0 {
		id, _ = strconv.ParseUint(d.CmdArgs[0].Key, 10, 64)
	}
	switch d.Cmd {
	case "new":
		var most int
		d.ScanArgs(t, "max", &most)
		*b = batch.New(batch.Config{Held: record.CreateRevIs("leader", 1), MaxOps: most, FirstReread: 10 * time.Millisecond, LastReread: time.Second})
		return nil
	case "submit":
		w := batch.Write{Token: id, AnyEpoch: d.HasArg("any-epoch"), Once: d.HasArg("once")}
		for _, a := range d.CmdArgs[1:] {
			for _, v := range a.Vals {
				if a.Key == "if" {
					w.Compares = append(w.Compares, record.Absent(v))
				} else {
					w.Ops = append(w.Ops, record.Put(v, nil))
				}
			}
		}
		return (*b).Submit(w, nil)
	case "next":
		return (*b).Next(nil)
	case "answer":
		return (*b).Answered(batch.ID(id), storeAnswer(t, d), nil)
	case "key":
		switch {
		case d.HasArg("held"):
			return (*b).KeyRead(batch.ID(id), batch.Held, nil, nil)
		case d.HasArg("changed"):
			return (*b).KeyRead(batch.ID(id), batch.Changed, errDeposed, nil)
		}
		return (*b).KeyRead(batch.ID(id), batch.Unread, nil, nil)
	case "pause-over":
		return (*b).PauseOver(batch.ID(id), nil)
	case "give-up":
		return (*b).GiveUp(errOver, nil)
	}
	d.Fatalf(t, "command %q is unknown", d.Cmd)
	return nil
}

func storeAnswer(t *testing.T, d *datadriven.TestData) batch.StoreAnswer {
	t.Helper()
	var at int64
	d.MaybeScanArgs(t, "at", &at)
	for word, a := range map[string]batch.StoreAnswer{
		"landed":  {Result: batch.Landed, Revision: resource.Revision(at)},
		"failed":  {Result: batch.CompareFailed, Revision: resource.Revision(at)},
		"refused": {Result: batch.Refused, Err: errRefused},
		"full":    {Result: batch.Full, Err: errFull},
		"lost":    {Result: batch.Lost, Err: errLost},
	} {
		if d.HasArg(word) {
			return a
		}
	}
	d.Fatalf(t, "no result in %q", d.Input)
	return batch.StoreAnswer{}
}

// show prints an effect.
func show(e batch.Effect) string {
	switch e.Kind {
	case batch.Send:
		var compares, puts []string
		for _, c := range e.Txn.If {
			compares = append(compares, c.Key)
		}
		for _, o := range e.Txn.Then {
			puts = append(puts, o.Key)
		}
		return fmt.Sprintf("send %d: if %s put %s", e.ID, strings.Join(compares, ","), strings.Join(puts, ","))
	case batch.ReadKey:
		return fmt.Sprintf("read the leader's key for %d after %v", e.ID, e.After)
	case batch.Pause:
		return fmt.Sprintf("pause %d for %v", e.ID, e.After)
	case batch.Depose:
		return fmt.Sprintf("depose: %v", e.Err)
	}
	outcome := map[txn.Outcome]string{txn.Landed: "Landed", txn.Conflict: "Conflict", txn.Unknown: "Unknown"}[e.Outcome]
	cause := ""
	if e.Err != nil {
		cause = ": " + e.Err.Error()
	}
	return fmt.Sprintf("answer write %d: %s at %d%s", e.Token, outcome, e.Revision, cause)
}
