package gate_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/gate"
	"github.com/musterd/muster/coordinator/service"
)

// jobs creates jobs, and counts those under way.
type jobs struct {
	service.Service
	takes time.Duration

	mu        sync.Mutex
	now, most map[string]int
	made      int
}

func (j *jobs) CreateJob(ctx context.Context, _ service.Create, _ *api.Job) (*api.Job, error) {
	tenant := string(service.CallerOf(ctx).Tenant)
	j.mu.Lock()
	if j.now == nil {
		j.now, j.most = map[string]int{}, map[string]int{}
	}
	j.made++
	j.now[tenant]++
	j.most[tenant] = max(j.most[tenant], j.now[tenant])
	j.mu.Unlock()
	time.Sleep(j.takes)
	j.mu.Lock()
	j.now[tenant]--
	j.mu.Unlock()
	return new(api.Job), nil
}

func jobOf(members int32) *api.Job {
	j := new(api.Job)
	j.Spec.Parallelism = &members
	return j
}

func callOf(t *testing.T, c service.Caller) context.Context {
	return service.WithCaller(t.Context(), c)
}

func limited() *gate.Gate { return gate.New(&gate.Rates{Requests: gate.DefaultRequests}) }

// A tenant's large jobs cost units, which come back with time. Other tenants, administrators
// and requests by way of another coordinator keep theirs.
func TestMembersAreCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, made := limited(), new(jobs)
		s := service.Sighted(made, service.Access{}, g)
		create := func(c service.Caller, members int32) error {
			_, err := s.CreateJob(callOf(t, c), service.Create{}, jobOf(members))
			return err
		}
		eve := service.Caller{Principal: of("a", "eve")}
		n := 0
		for ; create(eve, 1000) == nil; n++ {
			if n > 100 {
				t.Fatal("a tenant has any number of members")
			}
		}
		if n != 10 {
			t.Errorf("%d jobs of 1,000 members at once, want 10", n)
		}
		err := create(eve, 1)
		if status, is := err.(*api.Status); !is || status.Code != 429 || status.RetryAfterSeconds != 1 || !strings.Contains(status.Message, "Tenant 'a' has used up its share of work") {
			t.Errorf("beyond the units: %v", err)
		}
		for name, c := range map[string]service.Caller{
			"another user of the tenant": {Principal: of("a", "bob")},
		} {
			if create(c, 1) == nil {
				t.Errorf("%s is let in", name)
			}
		}
		for name, c := range map[string]service.Caller{
			"another tenant": {Principal: of("b", "eve")}, "an administrator": {Principal: root}, "a request of another coordinator": {Principal: of("a", "eve"), Via: "c2"},
		} {
			if err := create(c, 1000); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		time.Sleep(time.Second)
		if err := create(eve, 1000); err != nil {
			t.Errorf("after a second: %v", err)
		}
		if create(eve, 1) == nil {
			t.Error("a second gives back more than its units")
		}
		time.Sleep(time.Hour)
		for n = 0; create(eve, 1000) == nil; n++ {
		}
		if n != 10 {
			t.Errorf("after an hour %d jobs at once, want 10", n)
		}
	})
}

// A coordinator gives its share, a raised tenant has more, and a tenant without a limit has
// any number of units.
func TestTheShareOfUnits(t *testing.T) {
	for name, c := range map[string]struct {
		rates *gate.Rates
		want  int
	}{
		"four coordinators":  {&gate.Rates{Requests: gate.DefaultRequests, Live: func() int { return 4 }}, 3},
		"a raised limit":     {&gate.Rates{Requests: 3 * gate.DefaultRequests}, 30},
		"a low limit":        {&gate.Rates{Requests: 10}, 10},
		"no limit":           {&gate.Rates{}, 200},
		"one coordinator":    {&gate.Rates{Requests: gate.DefaultRequests}, 10},
		"no live one, so me": {&gate.Rates{Requests: gate.DefaultRequests, Live: func() int { return 0 }}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, n := gate.New(c.rates), 0
				for ; n < 200 && g.Charge(service.Caller{Principal: of("a", "x")}, 1000) == nil; n++ {
				}
				if n != c.want {
					t.Errorf("%d charges of 1,000, want %d", n, c.want)
				}
			})
		})
	}
}

// Large requests of a tenant are decided on singly, large requests of several tenants side
// by side, and a refused request leaves no place taken.
func TestLargeRequestsOfATenantAreDecidedSingly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, made := limited(), &jobs{takes: 500 * time.Millisecond}
		s := service.Sighted(made, service.Access{}, g)
		var wg sync.WaitGroup
		refused := make(chan string, 100)
		for i := range 16 {
			tenant := fmt.Sprint("t", i%2)
			wg.Go(func() {
				_, err := s.CreateJob(callOf(t, service.Caller{Principal: of(tenant, "x")}), service.Create{}, jobOf(500))
				if err != nil {
					refused <- err.Error()
				}
			})
		}
		wg.Wait()
		if made.most["t0"] != 1 || made.most["t1"] != 1 {
			t.Errorf("at a time %v, want one of each tenant", made.most)
		}
		if made.made+len(refused) != 16 || len(refused) == 0 || !strings.Contains(<-refused, "another large request of tenant t") {
			t.Errorf("%d were made, %d refused", made.made, len(refused))
		}
		for range 4 {
			if _, err := s.CreateJob(callOf(t, service.Caller{Principal: of("t0", "x")}), service.Create{}, jobOf(500)); err != nil {
				t.Errorf("later: %v", err)
			}
		}
	})
}

// A request is charged once, however often the codec serves the request.
func TestARequestIsChargedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := service.Sighted(new(jobs), service.Access{}, limited())
		ctx := callOf(t, service.Caller{Principal: of("a", "x")})
		for range 100 {
			if _, err := s.CreateJob(ctx, service.Create{}, jobOf(1000)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Over any time a tenant has at most the saved units, the units of the time, and the cost of
// a single request; and a tenant is let in after the Retry-After.
func TestUnitsAreConserved(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(*testing.T) {
			g, began := limited(), time.Now()
			var taken, greatest gate.Work
			for range rapid.IntRange(1, 200).Draw(rt, "requests") {
				cost := gate.Work(rapid.IntRange(1, 9000).Draw(rt, "cost"))
				status := g.Charge(service.Caller{Principal: of("a", "x")}, cost)
				if status == nil {
					taken, greatest = taken+cost, max(greatest, cost)
				} else {
					time.Sleep(time.Duration(status.RetryAfterSeconds) * time.Second)
					if again := g.Charge(service.Caller{Principal: of("a", "x")}, 1); again != nil {
						rt.Fatalf("after the Retry-After: %v", again)
					}
					taken++
				}
				time.Sleep(time.Duration(rapid.IntRange(0, 3000).Draw(rt, "millis")) * time.Millisecond)
				if most := gate.Work(10_000+1000*time.Since(began).Seconds()) + greatest + 1; taken > most {
					rt.Fatalf("%d units were taken in %s, want at most %d", taken, time.Since(began), most)
				}
			}
		})
	})
}

func TestYAMLCostsMore(t *testing.T) {
	if gate.OfJSON(0) != 0 || gate.OfJSON(1) != 1 || gate.OfJSON(1024) != 1 || gate.OfJSON(1025) != 2 || gate.OfYAML(2048) != 16 {
		t.Errorf("%d %d %d %d %d", gate.OfJSON(0), gate.OfJSON(1), gate.OfJSON(1024), gate.OfJSON(1025), gate.OfYAML(2048))
	}
}
