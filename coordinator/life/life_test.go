package life_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/life"
)

func TestTheDelayDoublesUpToSixMinutes(t *testing.T) {
	want := []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 320 * time.Second, 6 * time.Minute, 6 * time.Minute}
	for i, d := range want {
		if got := life.Delay(i + 1); got != d {
			t.Errorf("before retry %d a unit waits %s, want %s", i+1, got, d)
		}
	}
	if got := life.Delay(1 << 30); got != 6*time.Minute {
		t.Errorf("before a late retry a unit waits %s", got)
	}
}

func TestJudge(t *testing.T) {
	ok := func(member int) life.Exit { return life.Exit{Member: member, Success: true} }
	bad := func(member int) life.Exit { return life.Exit{Member: member} }
	lost := func(member int) life.Exit { return life.Exit{Member: member, Blameless: true} }
	for name, c := range map[string]struct {
		policy life.OnFailure
		exits  []life.Exit // of three members
		want   life.Verdict
		member int
	}{
		"nothing has ended":                                 {"", nil, life.Runs, 0},
		"two of three have succeeded":                       {"", []life.Exit{ok(0), ok(2)}, life.Runs, 0},
		"all have succeeded":                                {"", []life.Exit{ok(0), ok(1), ok(2)}, life.Succeeded, 0},
		"the first failure ends the unit":                   {"", []life.Exit{ok(0), bad(2)}, life.Failed, 2},
		"of several failures the smallest index counts":     {"", []life.Exit{bad(2), bad(1)}, life.Failed, 1},
		"a host that restarts is no failure":                {"", []life.Exit{ok(0), lost(1)}, life.Lost, 1},
		"a failure counts beside a host that restarts":      {"", []life.Exit{lost(0), bad(1)}, life.Failed, 1},
		"an ignored failure lets the others go on":          {life.Ignore, []life.Exit{bad(0)}, life.Runs, 0},
		"with ignored failures the last exit ends the unit": {life.Ignore, []life.Exit{bad(0), ok(1), ok(2)}, life.Failed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got, member := (life.Policy{OnFailure: c.policy}).Judge(3, c.exits); got != c.want || member != c.member {
				t.Errorf("verdict %d on member %d, want %d on %d", got, member, c.want, c.member)
			}
		})
	}
}

func TestAfterFailure(t *testing.T) {
	for name, c := range map[string]struct {
		policy  life.Policy
		retries int
		want    life.Next
	}{
		"the first failure is retried":       {life.Policy{BackoffLimit: 2}, 0, life.Next{Retry: 1}},
		"the last retry":                     {life.Policy{BackoffLimit: 2}, 1, life.Next{Retry: 2}},
		"the limit is reached":               {life.Policy{BackoffLimit: 2}, 2, life.Next{Exhausted: true}},
		"without retries":                    {life.Policy{}, 0, life.Next{Exhausted: true}},
		"the job fails with its member":      {life.Policy{OnFailure: life.FailJob, BackoffLimit: 2}, 0, life.Next{}},
		"an ignored failure is not repeated": {life.Policy{OnFailure: life.Ignore, BackoffLimit: 2}, 0, life.Next{}},
	} {
		if got := c.policy.AfterFailure(c.retries); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestEndOf(t *testing.T) {
	const w, a, d, b, o, c = life.Waiting, life.Active, life.Done, life.Broken, life.Overdue, life.Abandoned
	for name, test := range map[string]struct {
		policy life.OnFailure
		units  []life.State
		want   life.End
	}{
		"units run":                                     {"", []life.State{d, a}, life.End{Success: true, Of: 0, Reason: life.CompletionsReached}},
		"all have succeeded":                            {"", []life.State{d, d}, life.End{Over: true, Success: true, Of: 1, Reason: life.CompletionsReached}},
		"a failure stops the others":                    {"", []life.State{a, b, w}, life.End{Stops: true, Of: 1, Reason: life.BackoffLimitExceeded}},
		"and is the job's once they have ended":         {"", []life.State{c, b, d}, life.End{Stops: true, Over: true, Of: 1, Reason: life.BackoffLimitExceeded}},
		"the job fails with its member":                 {life.FailJob, []life.State{b}, life.End{Stops: true, Over: true, Reason: life.MemberFailed}},
		"an ignored failure stops nobody":               {life.Ignore, []life.State{b, a}, life.End{Of: 0, Reason: life.NoMemberSucceeded}},
		"an ignored failure beside a success":           {life.Ignore, []life.State{b, d}, life.End{Over: true, Success: true, Of: 1, Reason: life.CompletionsReached}},
		"all failures are ignored":                      {life.Ignore, []life.State{b, b}, life.End{Over: true, Reason: life.NoMemberSucceeded}},
		"time over is a failure that nobody may ignore": {life.Ignore, []life.State{b, o, a}, life.End{Stops: true, Of: 1}},
		"its owner alone has ended it":                  {"", []life.State{c, c}, life.End{Success: true, Reason: life.CompletionsReached}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (life.Policy{OnFailure: test.policy}).EndOf(test.units); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

// TestAJobRunsToItsEnd plays the life of jobs at random. Never more units run than the
// parallelism allows, a job is never without a unit that runs, waits or is delayed before
// it is over, no more retries follow than the limit allows, and every job comes to an end.
func TestAJobRunsToItsEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := life.Policy{
			OnFailure:    rapid.SampledFrom([]life.OnFailure{"", life.Restart, life.FailJob, life.Ignore}).Draw(t, "onFailure"),
			BackoffLimit: rapid.IntRange(0, 4).Draw(t, "limit"),
			Parallelism:  rapid.IntRange(0, 3).Draw(t, "parallelism"),
		}
		units := make([]life.State, rapid.IntRange(1, 6).Draw(t, "units"))
		retries, failures := 0, 0
		for step := 0; ; step++ {
			if step > 500 {
				t.Fatalf("no end: %v", units)
			}
			for i, may := range p.MayStart(units) {
				if may {
					units[i] = life.Active
				}
			}
			active := 0
			for _, s := range units {
				if s == life.Active {
					active++
				}
			}
			if p.Parallelism > 0 && active > p.Parallelism {
				t.Fatalf("%d units run, parallelism %d", active, p.Parallelism)
			}
			e := p.EndOf(units)
			if e.Over {
				if e.Success != slices.Contains(units, life.Done) && p.OnFailure == life.Ignore {
					t.Fatalf("success %t of %v", e.Success, units)
				}
				if p.OnFailure != life.Ignore && e.Success != !slices.Contains(units, life.Broken) {
					t.Fatalf("success %t of %v", e.Success, units)
				}
				break
			}
			if e.Stops {
				for i, s := range units {
					if !s.Ended() {
						units[i] = life.Abandoned
					}
				}
				continue
			}
			if active == 0 && !slices.Contains(units, life.Delayed) {
				t.Fatalf("nothing goes on in %v", units)
			}
			at := rapid.IntRange(0, len(units)-1).Draw(t, fmt.Sprint("unit of step ", step))
			switch units[at] {
			case life.Delayed:
				units[at] = life.Waiting
			case life.Active:
				if rapid.Bool().Draw(t, "succeeds") {
					units[at] = life.Done
					continue
				}
				failures++
				if next := p.AfterFailure(retries); next.Retry > 0 {
					retries, units[at] = next.Retry, life.Delayed
				} else {
					units[at] = life.Broken
				}
			}
		}
		if retries > p.BackoffLimit || retries > failures {
			t.Fatalf("%d retries after %d failures, limit %d", retries, failures, p.BackoffLimit)
		}
	})
}

func ExamplePolicy_AfterFailure() {
	p := life.Policy{BackoffLimit: 2}
	for retries := range 3 {
		if next := p.AfterFailure(retries); next.Retry > 0 {
			fmt.Printf("retry %d after %s\n", next.Retry, life.Delay(next.Retry))
		} else {
			fmt.Println("the job fails")
		}
	}
	// Output:
	// retry 1 after 10s
	// retry 2 after 20s
	// the job fails
}
