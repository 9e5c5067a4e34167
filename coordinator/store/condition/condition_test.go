package condition_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/condition"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/resource"
)

// slow is a store whose next reads take a time, and end with an error.
type slow struct {
	store.Store
	takes time.Duration
	err   error
}

func (s *slow) Get(ctx context.Context, key string) (record.KV, bool, resource.Revision, error) {
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return record.KV{}, false, 0, ctx.Err()
	}
	if s.err != nil {
		return record.KV{}, false, 0, s.err
	}
	return s.Store.Get(ctx, key)
}

// TestSilence: a store is silent while a call waits, and for some seconds after a late
// answer; an answer in time ends the silence, and a client that gives up is no silence.
func TestSilence(t *testing.T) {
	for name, c := range map[string]struct {
		takes          time.Duration
		err            error
		gives          time.Duration // the client's patience
		during, after  bool          // silent 2 s after the begin of the call, and at its end
		longAfterwards bool          // silent 6 s later
	}{
		"an answer in time":      {takes: time.Second, gives: time.Hour},
		"a late answer":          {takes: 3 * time.Second, gives: time.Hour, during: true, after: true},
		"no answer":              {takes: 3 * time.Second, err: record.ErrUnknownOutcome, gives: time.Hour, during: true, after: true},
		"a client without time":  {takes: time.Hour, gives: time.Second},
		"a client that gives up": {takes: time.Hour, gives: 3 * time.Second, during: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				under := &slow{Store: mem.Open(mem.Options{}), takes: c.takes, err: c.err}
				defer func() { _ = under.Close() }()
				s := condition.Observe(under, nil)
				ctx, give := context.WithCancel(t.Context())
				time.AfterFunc(c.gives, give)
				ended := make(chan struct{})
				go func() { defer close(ended); _, _, _, _ = s.Get(ctx, "a") }()
				<-time.After(condition.Slow)
				synctest.Wait()
				judge(t, s, "during the call", c.during)
				<-ended
				judge(t, s, "after the call", c.after)
				<-time.After(6 * time.Second)
				judge(t, s, "6 s later", c.longAfterwards)
				under.takes, under.err = 0, nil
				if _, _, _, err := s.Get(t.Context(), "a"); err != nil {
					t.Fatal(err)
				}
				judge(t, s, "after an answer", false)
				give()
			})
		})
	}
}

func judge(t *testing.T, s *condition.Store, when string, silent bool) {
	t.Helper()
	if is := errors.As(s.Fault(), new(*condition.SilentError)); is != silent {
		t.Errorf("%s the fault is %v, want silence: %v", when, s.Fault(), silent)
	}
}

// TestSlowAnswers: an answer after half a second is late for some seconds, until the next
// answer in time, and no fault.
func TestSlowAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under := &slow{Store: mem.Open(mem.Options{})}
		defer func() { _ = under.Close() }()
		s := condition.Observe(under, nil)
		for _, step := range []struct {
			takes, after time.Duration
			late         bool
		}{
			{takes: condition.Late - 1}, {takes: condition.Late, late: true}, {takes: condition.Late, after: 5 * time.Second}, {takes: 0},
			{takes: condition.Late, late: true}, {takes: 0},
		} {
			under.takes = step.takes
			if _, _, _, err := s.Get(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			<-time.After(step.after)
			late := errors.As(s.Late(), new(*condition.LateError))
			if late != step.late || s.Fault() != nil {
				t.Errorf("%v after an answer in %v: late %v, fault %v; want late %v and no fault", step.after, step.takes, s.Late(), s.Fault(), step.late)
			}
		}
	})
}

// TestALookFindsTheFault: also where the coordinator itself makes no calls.
func TestALookFindsTheFault(t *testing.T) {
	for name, c := range map[string]struct {
		takes time.Duration
		err   error
		want  func(error) bool
	}{
		"well":                 {0, nil, func(err error) bool { return err == nil }},
		"without space":        {0, record.ErrNoSpace, func(err error) bool { return errors.Is(err, record.ErrNoSpace) }},
		"to be read alone":     {0, record.ErrReadOnly, func(err error) bool { return errors.Is(err, record.ErrReadOnly) }},
		"without answers":      {time.Hour, nil, func(err error) bool { return errors.As(err, new(*condition.SilentError)) }},
		"with a late answer":   {condition.Late, nil, func(err error) bool { return err == nil }},
		"with another refusal": {0, record.ErrDuplicateKey, func(err error) bool { return err == nil }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := condition.Observe(answering{takes: c.takes, err: c.err}, nil)
				<-time.After(time.Minute)
				began := time.Now()
				if err := s.Look(t.Context()); !c.want(err) || time.Since(began) > 5*condition.Slow/4 {
					t.Errorf("%v after %v", err, time.Since(began))
				}
				if err := s.Look(t.Context()); !c.want(err) {
					t.Errorf("a second look at once: %v", err)
				}
			})
		})
	}
}

// answering is a store whose Txns have an answer after a time.
type answering struct {
	store.Store
	takes time.Duration
	err   error
}

func (a answering) Txn(ctx context.Context, _ record.Txn) (record.TxnResult, error) {
	select {
	case <-time.After(a.takes):
		return record.TxnResult{}, a.err
	case <-ctx.Done():
		return record.TxnResult{}, errors.Join(record.ErrUnknownOutcome, ctx.Err())
	}
}

// TestDeletionsWithoutSpace: deletions beside an entry of the audit are done, and no
// other change; the fault ends with the next look once there is space.
func TestDeletionsWithoutSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under := mem.Open(mem.Options{})
		defer func() { _ = under.Close() }()
		var lines bytes.Buffer
		s := condition.Observe(under, slog.New(slog.NewTextHandler(&lines, nil)))
		send := func(ops ...record.Op) error {
			_, err := s.Txn(t.Context(), record.Txn{Then: ops})
			return err
		}
		has := func(key string) bool {
			_, found, _, err := s.Get(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			return found
		}
		a, b := record.Root+"a", record.Root+"b"
		entry := record.Audit{Actor: record.Actor{ID: "1", Person: "ann"}, Verb: "delete", Kind: "jobs", Name: "j"}
		note := record.Put(record.AuditKey(&entry), record.MustEncode(entry))
		if err := send(record.Put(a, nil), record.Put(b, nil)); err != nil {
			t.Fatal(err)
		}
		under.SetFull(true)
		if err := s.Fault(); err != nil {
			t.Errorf("before a write: %v", err)
		}
		for name, ops := range map[string][]record.Op{
			"an entry alone":     {note},
			"a put beside":       {record.Delete(b), record.Put(a, nil), note},
			"a put and no entry": {record.Delete(b), record.Put(a, nil)},
		} {
			if err := send(ops...); !errors.Is(err, record.ErrNoSpace) || !has(b) {
				t.Errorf("%s: %v, want a refusal for want of space and no deletion", name, err)
			}
		}
		if lines.Len() != 0 {
			t.Errorf("refused changes have lines: %s", &lines)
		}
		if err := send(record.Delete(a), note); err != nil || has(a) {
			t.Errorf("a deletion and its entry: %v, want the deletion", err)
		}
		if line := lines.String(); strings.Count(line, "audit_left_out") != 1 || !strings.Contains(line, "person=ann") {
			t.Errorf("the log has %q, want a line audit_left_out with the person", line)
		}
		if err := s.Look(t.Context()); !errors.Is(err, record.ErrNoSpace) {
			t.Errorf("a look without space: %v", err)
		}
		under.SetFull(false)
		<-time.After(3 * time.Second)
		if err := s.Fault(); !errors.Is(err, record.ErrNoSpace) {
			t.Errorf("before a write or a look: %v", err)
		}
		if err := s.Look(t.Context()); err != nil || has(record.Root+"probe") {
			t.Errorf("a look with space again: %v; the probe writes no key", err)
		}
	})
}
